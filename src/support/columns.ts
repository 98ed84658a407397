/**
 * Plain data with typed arrays, to write to a file: JSON, in which each array is the number of a column, and the bytes
 * of all columns. A column is the differences of its values as variable-length integers, which compress well when times
 * repeat. Int32Array is exact. Float64Array is exact for whole numbers, and otherwise keeps multiples of 1e-6: of
 * times in milliseconds, nanoseconds.
 */
import { at, invariant } from "./invariant.ts";

export interface EncodedColumns {
  readonly json: string;
  readonly bytes: Uint8Array;
}

type Column = Int32Array | Float64Array;

const columnKey = "$column";

interface ColumnHead {
  readonly kind: "int32" | "float64";
  readonly length: number;
  /** Values are whole multiples of 1 / scale. */
  readonly scale: number;
}

interface Document {
  readonly value: unknown;
  readonly columns: readonly ColumnHead[];
}

/** `value`: objects, arrays, strings, finite numbers, booleans, null, Int32Array and Float64Array. `asText` may change strings. */
export function encodeColumns(value: object, asText = (text: string): string => text): EncodedColumns {
  const columns: Column[] = [];
  const heads: ColumnHead[] = [];
  const json = JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === "string") return asText(each);
    if (!(each instanceof Int32Array || each instanceof Float64Array)) return each;
    const scale = each.every((number) => Number.isInteger(number)) ? 1 : 1e6;
    heads.push({ kind: each instanceof Int32Array ? "int32" : "float64", length: each.length, scale });
    return { [columnKey]: columns.push(each) - 1 };
  });
  return { json: `{"columns":${JSON.stringify(heads)},"value":${json}}`, bytes: columnBytes(columns, heads) };
}

/** The data that was encoded; the caller names its type. */
export function decodeColumns<T extends object>({ json, bytes }: EncodedColumns): T {
  const { columns, value } = JSON.parse(json) as Document;
  let next = 0;
  const signed = (): number => {
    let [low, factor] = [0, 1];
    for (;;) {
      const byte = at(bytes, next++);
      low += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
      factor *= 128;
    }
    return low % 2 === 0 ? low / 2 : -(low + 1) / 2;
  };
  const arrays = columns.map(({ kind, length, scale }): Column => {
    const column = kind === "int32" ? new Int32Array(length) : new Float64Array(length);
    let last = 0;
    for (let i = 0; i < length; i++) {
      last += signed();
      column[i] = last / scale;
    }
    return column;
  });
  return revived(value, arrays) as T;
}

/** Bytes of seven bits each, the lowest first; the sign is the lowest bit of a value. */
function columnBytes(columns: readonly Column[], heads: readonly ColumnHead[]): Uint8Array {
  let bytes = new Uint8Array(1024);
  let length = 0;
  for (const [i, column] of columns.entries()) {
    const { scale } = at(heads, i);
    let last = 0;
    for (const value of column) {
      if (length + 8 > bytes.length) {
        const more = new Uint8Array(2 * bytes.length);
        more.set(bytes);
        bytes = more;
      }
      const whole = Math.round(value * scale);
      const difference = whole - last;
      last = whole;
      let left = difference < 0 ? -2 * difference - 1 : 2 * difference;
      invariant(left <= Number.MAX_SAFE_INTEGER, "differences of a column are exact", { value });
      while (left >= 128) {
        bytes[length++] = 128 + (left % 128);
        left = Math.floor(left / 128);
      }
      bytes[length++] = left;
    }
  }
  return bytes.subarray(0, length);
}

function revived(value: unknown, columns: readonly Column[]): unknown {
  if (Array.isArray(value)) return value.map((each) => revived(each, columns));
  if (typeof value !== "object" || value === null) return value;
  const entries: [string, unknown][] = Object.entries(value);
  const [first] = entries;
  if (first?.[0] === columnKey && typeof first[1] === "number") return at(columns, first[1]);
  return Object.fromEntries(entries.map(([key, each]) => [key, revived(each, columns)]));
}

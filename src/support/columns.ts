/**
 * Plain data with typed arrays as JSON. A typed array is the differences of its values, which compress well when times
 * repeat. Int32Array is exact. Float64Array is exact for whole numbers, and otherwise keeps multiples of 1e-6: of times
 * in milliseconds, nanoseconds.
 */

interface Column {
  readonly $column: "int32" | "float64";
  /** Values are whole multiples of 1 / scale. */
  readonly scale: number;
  readonly differences: readonly number[];
}

/** `value`: objects, arrays, strings, finite numbers, booleans, null, Int32Array and Float64Array. `asText` may change strings. */
export function encodeColumns(value: object, asText = (text: string): string => text): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (typeof each === "string") return asText(each);
    return each instanceof Int32Array || each instanceof Float64Array ? columnOf(each) : each;
  });
}

/** The data that was encoded; the caller names its type. */
export function decodeColumns<T extends object>(json: string): T {
  return revived(JSON.parse(json)) as T;
}

/** Not by JSON.parse, which would call for every number of a column. */
function revived(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revived);
  if (typeof value !== "object" || value === null) return value;
  if (isColumn(value)) return valuesOf(value);
  return Object.fromEntries(Object.entries(value).map(([key, each]: [string, unknown]) => [key, revived(each)]));
}

function columnOf(values: Int32Array | Float64Array): Column {
  const scale = values.every((value) => Number.isInteger(value)) ? 1 : 1e6;
  let last = 0;
  const differences = Array.from(values, (value) => {
    const before = last;
    last = Math.round(value * scale);
    return last - before;
  });
  return { $column: values instanceof Int32Array ? "int32" : "float64", scale, differences };
}

function isColumn(value: object): value is Column {
  return "$column" in value;
}

function valuesOf({ $column, scale, differences }: Column): Int32Array | Float64Array {
  const values = $column === "int32" ? new Int32Array(differences.length) : new Float64Array(differences.length);
  let sum = 0;
  for (const [i, difference] of differences.entries()) values[i] = (sum += difference) / scale;
  return values;
}

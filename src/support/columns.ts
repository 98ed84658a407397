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
  return JSON.parse(json, (_, each: unknown) => (isColumn(each) ? valuesOf(each) : each)) as T;
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

function isColumn(value: unknown): value is Column {
  return typeof value === "object" && value !== null && "$column" in value;
}

function valuesOf({ $column, scale, differences }: Column): Int32Array | Float64Array {
  let sum = 0;
  const values = differences.map((difference) => (sum += difference) / scale);
  return $column === "int32" ? Int32Array.from(values) : Float64Array.from(values);
}

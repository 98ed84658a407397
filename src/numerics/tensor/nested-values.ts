/**
 * Nested arrays as users write tensors, one level per axis: `[[1, 2], [3, 4]]`. Converts them to a shape and row-major
 * values, and back.
 */
import { fail } from "../../diagnostics/diagnostic.ts";

/** Numbers, nested once per axis: `[[1, 2], [3, 4]]`. A plain number is a scalar tensor. int64 uses bigints. */
export type NestedValues = number | bigint | boolean | readonly NestedValues[];

export type PlainValue = number | bigint | boolean;

function isNested(values: NestedValues): values is readonly NestedValues[] {
  return Array.isArray(values);
}

/** The extents, from the first entry of each level. Throws `bad-extent`. */
export function shapeOfNested(values: NestedValues): readonly number[] {
  if (!isNested(values)) return [];
  const [first] = values;
  if (first !== undefined) return [values.length, ...shapeOfNested(first)];
  return fail({
    code: "bad-extent",
    message: "a tensor has no elements along an axis",
    place: { kind: "call", text: "Tensor.from(values)" },
    found: "an empty array",
    expected: "at least one element per axis",
    help: "give every axis an extent of at least 1",
  });
}

/** The values in row-major order. Throws `shape-mismatch` if the nesting differs from `shape`. */
export function flattenNested(values: NestedValues, shape: readonly number[], depth = 0): PlainValue[] {
  const extent = shape[depth];
  if (!isNested(values)) return extent === undefined ? [values] : ragged(shape);
  if (values.length !== extent) return ragged(shape);
  return values.flatMap((entry) => flattenNested(entry, shape, depth + 1));
}

function ragged(shape: readonly number[]): never {
  return fail({
    code: "shape-mismatch",
    message: "the rows of a tensor have different lengths",
    place: { kind: "call", text: "Tensor.from(values)" },
    found: "nested arrays of different lengths or depths",
    expected: `the shape [${shape.join(", ")}] in every row`,
    help: "give every row the same number of entries",
  });
}

/** Row-major values in nested arrays. */
export function nestValues(flat: readonly PlainValue[], shape: readonly number[]): NestedValues {
  const [extent, ...inner] = shape;
  if (extent === undefined) return flat[0] ?? 0;
  const span = inner.reduce((product, size) => product * size, 1);
  return Array.from({ length: extent }, (_, i) => nestValues(flat.slice(i * span, (i + 1) * span), inner));
}

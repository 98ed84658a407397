/** What ops that read indices share: checks of index tensors. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../../call.ts";

/** The dtype of the first operand; the second has the indices. Throws `dtype-mismatch`. */
export function indexedDType(_: unknown, operands: readonly Tensor[], place: Call): DType {
  requireIndex(at(operands, 1), place);
  return at(operands, 0).dtype;
}

/** Throws `dtype-mismatch`. */
export function requireIndex({ id, dtype }: Tensor, place: Call): void {
  if (dtypes[dtype].family === "integer") return;
  reject(place, {
    code: "dtype-mismatch",
    message: "indices are not integers",
    found: `T${id} ${dtype}`,
    expected: "int or int64",
    help: 'make the indices integers: fusion.input([8], "int64"), or cast(index, "int64")',
  });
}

/** Throws `shape-mismatch` unless the tensors have equal extents on all axes but `axis`. */
export function requireAlike(a: Tensor, b: Tensor, axis: number | null, place: Call): void {
  const [own, other] = [a, b].map(({ domain }) => withoutReductions(domain.logical));
  const fits =
    own?.length === other?.length &&
    own?.every(({ extent }, i) => i === axis || !extentsDiffer(extent, other?.[i]?.extent ?? extent)) === true;
  if (fits) return;
  reject(place, {
    code: "shape-mismatch",
    message: axis === null ? "indices and source differ in shape" : `indices differ in another axis than ${axis}`,
    found: `${shapeText(a)} and ${shapeText(b)}`,
    expected: axis === null ? "equal extents" : `equal extents on every axis but ${axis}`,
    help: "expand or slice the indices",
  });
}

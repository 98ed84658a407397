/**
 * The axes of an elementwise op over two tensors of equal rank. Two axes join when they have the same extent or
 * one of them is a broadcast or has the constant extent 1; then the other's extent holds.
 */
import { at } from "../../support/invariant.ts";
import { type Call, reject, shapeText } from "./call.ts";
import { type AxisShape, isUnitAxis, type Tensor, withoutReductions } from "../domain.ts";
import { extentsDiffer } from "../scalar/fold.ts";

export function binaryAxes(a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  const left = withoutReductions(a.domain.logical);
  const right = withoutReductions(b.domain.logical);
  if (left.length !== right.length) {
    reject(place, {
      code: "shape-mismatch",
      message: "the operands have different numbers of axes",
      found: `${shapeText(a)} and ${shapeText(b)}`,
      expected: "operands with the same number of axes",
      help: "add the missing axes with broadcast()",
    });
  }
  return left.map((axis, i) => {
    const other = at(right, i);
    return joinAxes(axis, other) ?? rejectJoin(a, b, i, place);
  });
}

/** The axis that two operands share; null when their extents are known to contradict. A constant extent wins over a symbol. */
export function joinAxes(a: AxisShape, b: AxisShape): AxisShape | null {
  const iterType = a.iterType === "broadcast" && b.iterType === "broadcast" ? "broadcast" : "iteration";
  if (isUnitAxis(a) && isUnitAxis(b)) return { extent: a.extent, iterType };
  if (isUnitAxis(a)) return { extent: b.extent, iterType };
  if (isUnitAxis(b)) return { extent: a.extent, iterType };
  if (extentsDiffer(a.extent, b.extent)) return null;
  return { extent: b.extent.kind === "constant" ? b.extent : a.extent, iterType };
}

export function rejectJoin(a: Tensor, b: Tensor, axis: number, place: Call): never {
  return reject(place, {
    code: "shape-mismatch",
    message: `the operands have different extents along axis ${axis} of the result`,
    found: `${shapeText(a)} and ${shapeText(b)}`,
    expected: "equal extents, or a broadcast axis or extent 1 in one of them",
    help: "reshape, slice or broadcast one of the operands",
  });
}

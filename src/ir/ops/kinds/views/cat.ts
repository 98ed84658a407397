/** Joins tensors along an axis, in order. */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer, foldAdd } from "../../../scalar/fold.ts";
import { type Call, rankOf, reject, resolveAxis, shapeText } from "../../call.ts";
import { commonDType } from "../../dtype-rules.ts";
import { type Axes, elementWork, type OpBase, type OpRow, type SpecOf } from "../../row.ts";
import { countOf, moves, shifted, zip } from "../families.ts";

export interface CatOp extends OpBase {
  readonly kind: "Cat";
  readonly axis: number;
}

/** Throws `axis-out-of-range`, `shape-mismatch`. */
export function catSpec(tensors: readonly Tensor[], axis: number, place: Call): SpecOf<CatOp> {
  const resolved = resolveAxis(axis, rankOf(at(tensors, 0)), place);
  joinedAxes(tensors, resolved, place);
  return { kind: "Cat", axis: resolved };
}

export const catRow: OpRow<CatOp> = {
  ...moves,
  operands: [1, Number.MAX_SAFE_INTEGER],
  dtype: commonDType,
  shape: ({ axis }, operands, place) => ({ axes: joinedAxes(operands, axis, place) }),
  respec: ({ axis }, operands, _, place) => catSpec(operands, axis, place),
  pairs: ({ axis }, operands, output) =>
    operands.flatMap((axes, operand) => zip(operand, axes, withoutReductions(output)).toSpliced(axis, 1)),
  whole: ({ axis }, operands) => operands.map((axes, operand) => ({ operand, axis: at(axes, axis) })),
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => elementWork * countOf(output),
};

function joinedAxes(operands: readonly Tensor[], axis: number, place: Call): readonly AxisShape[] {
  const shapes = operands.map(({ domain }) => withoutReductions(domain.logical));
  const [first = [], ...others] = shapes;
  const misfit = others.findIndex(
    (axes) => axes.length !== first.length || axes.some((own, i) => i !== axis && differ(own, at(first, i))),
  );
  if (misfit >= 0) {
    reject(place, {
      code: "shape-mismatch",
      message: `cat joins tensors that differ in another axis than ${axis}`,
      found: `${shapeText(at(operands, 0))} and ${shapeText(at(operands, misfit + 1))}`,
      expected: `equal extents on every axis but ${axis}`,
      help: "slice, pad or expand one of the tensors",
    });
  }
  return first.map((own, i): AxisShape => {
    const column = shapes.map((axes) => at(axes, i));
    return i === axis
      ? { extent: column.map(({ extent }) => extent).reduce(foldAdd), iterType: "iteration" }
      : commonAxis(own, column);
  });
}

function differ(a: AxisShape, b: AxisShape): boolean {
  return extentsDiffer(a.extent, b.extent);
}

/** A constant extent takes precedence over a symbol. */
function commonAxis({ extent }: AxisShape, column: Axes): AxisShape {
  const known = column.find((axis: IterDomain) => axis.extent.kind === "constant");
  const isBroadcast = column.every(({ iterType }) => iterType === "broadcast");
  return { extent: known?.extent ?? extent, iterType: isBroadcast ? "broadcast" : "iteration" };
}

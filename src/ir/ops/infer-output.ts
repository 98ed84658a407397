/**
 * What an op puts out: the dtype and the axes of its output, from its spec and operands. One rule per kind of op, used
 * by the Fusion API and by hand-built host programs. Operands count without their reduced axes.
 *
 * Axes that an op joins must have equal extents. Symbolic extents are taken as equal; record and oracle check the sizes.
 * Source of the rules: nvFuser's ops (newOutputDomain, newForMatmul, newForLinear, newForReduction).
 */
import type { DType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import type { Call } from "./call.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../domain.ts";
import { linearAxes, matmulAxes } from "./infer-contraction.ts";
import { binaryAxes } from "./infer-pointwise.ts";
import type { OpSpec } from "./op-spec.ts";
import { requireDTypes } from "./op-dtypes.ts";
import { constant } from "../scalar/scalar.ts";

export interface OutputShape {
  readonly dtype: DType;
  /** The output's logical domain. */
  readonly axes: readonly AxisShape[];
  /** Axis i takes the (numbering[i])-th new IterDomain number; in axis order where absent. */
  readonly numbering?: readonly number[];
}

/** Throws `shape-mismatch` and `dtype-mismatch`. */
export function inferOutput(spec: OpSpec, operands: readonly Tensor[], place: Call): OutputShape {
  const dtype = requireDTypes(spec, operands, place);
  const first = at(operands, 0);
  const input = withoutReductions(first.domain.logical);
  switch (spec.kind) {
    case "Set":
    case "Unary":
    case "Cast":
      return { dtype, axes: input };
    case "Binary":
      return { dtype, axes: binaryAxes(first, at(operands, 1), place) };
    case "Reduction":
      return { dtype, axes: input.map((axis, i) => (spec.axes.includes(i) ? reduced(axis) : axis)) };
    case "Broadcast":
      return { dtype, axes: broadcastAxes(input, spec.flags) };
    case "Squeeze":
      return { dtype, axes: input.filter((_, i) => !spec.axes.includes(i)) };
    case "Permute":
      // nvFuser makes the axes in the input's order and then reorders them.
      return { dtype, axes: spec.order.map((axis) => at(input, axis)), numbering: spec.order };
    case "Reshape":
      return { dtype, axes: spec.extents.map((extent) => ({ extent, iterType: "iteration" })) };
    case "Slice":
      return { dtype, axes: input.map((axis, i) => sliced(axis, at(spec.ranges, i))) };
    case "Select":
      return { dtype, axes: input.filter((_, i) => i !== spec.axis) };
    case "Matmul":
      return { dtype, axes: matmulAxes(first, at(operands, 1), place) };
    case "Linear":
      return { dtype, axes: linearAxes(first, at(operands, 1), operands[2] ?? null, place) };
    default:
      return unreachable(spec);
  }
}

function reduced({ extent }: IterDomain): AxisShape {
  return { extent, iterType: "reduction" };
}

function broadcastAxes(input: readonly IterDomain[], flags: readonly boolean[]): readonly AxisShape[] {
  const own = input.values();
  return flags.flatMap((flag): readonly AxisShape[] => {
    if (flag) return [{ extent: constant(1), iterType: "broadcast" }];
    const next = own.next();
    return next.done === true ? [] : [next.value];
  });
}

function sliced(axis: IterDomain, { start, stop }: { readonly start: number; readonly stop: number }): AxisShape {
  return { extent: constant(stop - start), iterType: axis.iterType };
}

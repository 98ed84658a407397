/**
 * What is moved where a Set moves what another op makes of it, if that op waits (routing.ts):
 *
 *   T3[_, _] = Set(T0[DIDx, _]); T4[_, DIDx] = Set(T3), T3 unused else   ->   T4[_, DIDx] = Set(T0)
 *   T4 = Set(expand(T0))                                                 ->   T4 = expand(T3), T3 = Set(T0)
 *   T4 = Set(reshape(T0)), the whole of it, where others read T0         ->   T4 = reshape(T3), T3 = Set(T0)
 *
 * So a gather that is only scattered again is an all-to-all, or nothing; a stretched tensor moves before it is stretched;
 * and what is gathered for a reshape is what other readers gather. The backward pass of a linear has such pairs: its
 * operand's gradient reads the tokens, and its weight's gradient reads them as one axis of rows.
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { coversShares, layout, type Layout, layoutOf } from "../../ir/layout.ts";
import type { ExpandOp } from "../../ir/ops/kinds/views/expand.ts";
import type { ReshapeOp } from "../../ir/ops/kinds/views/reshape.ts";
import type { Op, SetOp } from "../../ir/ops/op.ts";
import { wholeAxis } from "../../ir/parts.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import type { Routing } from "./routing.ts";
import { isResharding, sameMesh } from "./sharding.ts";

/** Another tensor to move, to `place`, and the view of it that is then wanted. */
type Source =
  | { readonly id: TensorId; readonly view: null }
  | { readonly id: TensorId; readonly view: ExpandOp | ReshapeOp; readonly place: Layout };

/** Whether the op waits until it is known whether its result is only moved. */
export function maybeSource({ tensors, readOnce, readers, late, options }: Routing, op: Op): boolean {
  const [source] = op.inputs;
  if (options.nvfuserLimits || source === undefined || late.has(source)) return false;
  const [from, to] = [at(tensors, source), at(tensors, op.output)];
  switch (op.kind) {
    case "Set": {
      const [before, after] = [layoutOf(from), layoutOf(to)];
      if (before === null || after === null || !readOnce.has(op.output) || to.memory !== "global") return false;
      const isJoined = coversShares(after, before) && !coversShares(before, after);
      return isJoined && before.mesh.equals(after.mesh) && streamAxis(to) === null;
    }
    case "Expand":
      return [from, to].every((tensor) => streamAxis(tensor) === null) && !isResharding(op, tensors);
    case "Reshape":
      return (readers.get(source)?.length ?? 0) > 1 && !isResharding(op, tensors);
    default:
      return false;
  }
}

/** Null if the Set moves its operand. */
export function sourceOf({ waiting, tensors }: Routing, set: SetOp): Source | null {
  const view = waiting.get(at(set.inputs, 0))?.op;
  if (view === undefined) return null;
  const id = at(view.inputs, 0);
  const [stretched, to] = [at(tensors, view.output), at(tensors, set.output)];
  const [between, after] = [layoutOf(stretched), layoutOf(to)];
  if (between === null || after === null) return null;
  switch (view.kind) {
    case "Set":
      return between.mesh.equals(after.mesh) && !coversShares(after, between) ? { id, view: null } : null;
    case "Expand": {
      const before = withoutReductions(at(tensors, id).domain.logical);
      const isStretched = (axis: number): boolean => !sameScalar(at(before, axis).extent, at(after.axes, axis).extent);
      const cut = [...between.shares.values(), ...after.shares.values()];
      const isFree = to.memory === "global" && streamAxis(to) === null && !cut.some(({ axis }) => isStretched(axis));
      const axes = after.axes.map((axis, i) => (isStretched(i) ? wholeAxis(at(before, i).extent) : axis));
      return isFree ? { id, view, place: layout(after.mesh, axes) } : null;
    }
    case "Reshape": {
      const source = at(tensors, id);
      const isWhole = after.shares.size === 0 && to.memory === "global" && streamAxis(to) === null;
      if (!isWhole || !sameMesh(source.mesh, to.mesh)) return null;
      const axes = withoutReductions(source.domain.logical).map(({ extent }) => wholeAxis(extent));
      return { id, view, place: layout(after.mesh, axes) };
    }
    default:
      return null;
  }
}

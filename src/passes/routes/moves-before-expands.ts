/**
 * Moves a tensor before it is stretched.
 *
 *   T1 = expand(T0[1, N], [M, N]); T2 = Set(T1) on another mesh
 * becomes
 *   T3[1, N] = Set(T0); T2 = expand(T3, [M, N])
 */
import { withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Layout, layoutOf } from "../../ir/layout.ts";
import type { ExpandOp } from "../../ir/ops/kinds/views/expand.ts";
import type { SetOp } from "../../ir/ops/op.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion } from "../edit/tensor-edit.ts";
import { withoutDeadOps } from "../prepare/remove-dead-ops.ts";
import { moveTo } from "./layouts.ts";
import { isResharding } from "./sharding.ts";
import { streamAxis } from "../../ir/stream.ts";

export function movesBeforeExpands(fusion: FusionData): FusionData {
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const edit = editFusion(fusion);
  for (const op of fusion.ops) {
    const expand = op.kind === "Set" ? producers.get(at(op.inputs, 0)) : undefined;
    const place = op.kind === "Set" && expand?.kind === "Expand" ? placeBefore(op, expand, fusion) : null;
    if (place === null || expand === undefined) {
      edit.ops.push(op);
      continue;
    }
    const source = at(edit.tensors, at(expand.inputs, 0));
    const moved = addSerialTensor(edit, source, withoutReductions(source.domain.logical), place.mesh);
    moveTo(edit, moved, moved.domain.logical, place, null);
    edit.ops.push({ kind: "Set", inputs: [source.id], output: moved.id });
    edit.ops.push({ ...expand, inputs: [moved.id], output: op.output });
  }
  return edit.tensors.length === fusion.tensors.length ? fusion : withoutDeadOps({ ...fusion, ...edit });
}

/** How the operand of the expand lies where the Set moves its result; null if devices or chunks share a stretched axis. */
function placeBefore(set: SetOp, expand: ExpandOp, { tensors }: FusionData): Layout | null {
  const [from, stretched, to] = [at(expand.inputs, 0), expand.output, set.output].map((id) => at(tensors, id));
  if (from === undefined || stretched === undefined || to === undefined || !isResharding(set, tensors)) return null;
  if (to.memory !== "global" || [from, stretched, to].some((tensor) => streamAxis(tensor) !== null)) return null;
  const [before, after] = [from, to].map(({ domain }) => withoutReductions(domain.logical));
  const [place, kept] = [layoutOf(to), layoutOf(stretched)];
  if (place === null || kept === null || before === undefined || isResharding(expand, tensors)) return null;
  const isStretched = (axis: number): boolean => !sameScalar(at(before, axis).extent, at(after ?? [], axis).extent);
  return [...place.shares.values(), ...kept.shares.values()].some(({ axis }) => isStretched(axis)) ? null : place;
}

/**
 * Replaces every Set, reduction or squeeze that no one communication carries by a chain that goes one step at a time.
 *
 *   T1[_, _] = Set(T0[DIDy a, DIDx b])
 * becomes
 *   T2[DIDy a, _] = Set(T0)
 *   T1[_, _] = Set(T2)
 *
 * resharding-route.ts chooses the way. All tensors of a chain have the Stream axis of its end, so that one loop holds them, but where a
 * DID type cuts that axis: a Set that makes a Stream axis of whole shares is a point-to-point loop, what is cut otherwise is put together
 * before the loop.
 */
import { isWholeAxis } from "../../ir/axis-shards.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op, ReductionOp, SetOp, SqueezeOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { placementsOf } from "../communicate/communication-plan.ts";
import { cloneAxes, newTensor } from "../edit/fusion-edit.ts";
import { copyOf, type Placement, placed } from "./placement.ts";
import { reshardingRoute } from "./resharding-route.ts";
import { reshardingStep } from "./resharding-step.ts";
import { isResharding } from "./sharding.ts";

interface Edit {
  readonly tensors: Tensor[];
  readonly ops: Op[];
  /** Outputs of reductions that are now the first of a chain, with its last. */
  readonly ends: Map<TensorId, TensorId>;
  iterDomainCount: number;
}

/** The same Fusion where every op is one step already. */
export function inSingleSteps(fusion: FusionData): FusionData {
  const edit: Edit = {
    tensors: [...fusion.tensors],
    ops: [],
    ends: new Map(),
    iterDomainCount: fusion.iterDomainCount,
  };
  const renamed = (id: TensorId): TensorId => edit.ends.get(id) ?? id;
  for (const original of fusion.ops) {
    const op = original.inputs.some((id) => edit.ends.has(id))
      ? { ...original, inputs: original.inputs.map(renamed) }
      : original;
    if (op.kind === "Set") addSteps(op, edit);
    else if (op.kind === "Reduction" || op.kind === "Squeeze") addReducingSteps(op, edit);
    else edit.ops.push(op);
  }
  if (edit.ops.length === fusion.ops.length) return fusion;
  const { tensors, ops, iterDomainCount } = edit;
  return { ...fusion, tensors, ops, outputs: fusion.outputs.map(renamed), iterDomainCount };
}

function addSteps(op: SetOp, edit: Edit): void {
  const placements = isResharding(op, edit.tensors) ? placementsOf(op, edit.tensors) : null;
  if (placements === null) return void edit.ops.push(op);
  const { from, to } = placements;
  const end = at(edit.tensors, op.output);
  const stream = streamNumber(end);
  const route = reshardingStep(from, to, null) === null ? reshardingRoute(from, to, null) : [to];
  let last = at(op.inputs, 0);
  let before = from;
  for (const [i, place] of route.entries()) {
    const streams = stream === null || canStream(before, place, stream);
    if (i === route.length - 1 && streams) break;
    last = addSet(edit, last, end, place, streams ? stream : null);
    before = place;
  }
  edit.ops.push({ ...op, inputs: [last] });
}

/** The reduction goes to the first place of the way, and a Set (of several steps, where it takes them) from there. */
function addReducingSteps(op: ReductionOp | SqueezeOp, edit: Edit): void {
  const placements = isResharding(op, edit.tensors) ? placementsOf(op, edit.tensors) : null;
  if (placements === null || placements.reduced === null) return void edit.ops.push(op);
  const { from, to, reduced } = placements;
  const reduces = [...from.cuts.values()].some(({ axis }) => axis === reduced);
  if (!reduces || reshardingStep(from, to, reduced) !== null) return void edit.ops.push(op);
  const first = at(reshardingRoute(from, to, reduced), 0);
  const output = at(edit.tensors, op.output);
  const end = copyOf(output, edit.tensors.length, edit.iterDomainCount);
  edit.iterDomainCount += end.count;
  edit.tensors.push(end.tensor);
  const axes = withoutReductions(output.domain.logical);
  const streamed = streamNumber(output);
  const stream = streamed === null ? null : streamed < reduced ? streamed : streamed + 1;
  const streams = stream !== null && !cutsAxis(from, stream) && !cutsAxis(first, stream);
  const operandAxes = axes.map((axis): IterDomain | null => axis).toSpliced(reduced, 0, null);
  const { tensor, count } = placed(
    output.memory === "symmetric" ? { ...output, memory: "global" } : output,
    operandAxes,
    first,
    streams && streamed !== null ? at(axes, streamed).id : null,
    edit.iterDomainCount,
  );
  edit.iterDomainCount += count;
  edit.tensors[op.output] = tensor;
  edit.ops.push(op);
  edit.ends.set(op.output, end.tensor.id);
  addSteps({ kind: "Set", inputs: [op.output], output: end.tensor.id }, edit);
}

/** Sets `source` into a new tensor like `end`, at another place. */
function addSet(edit: Edit, source: TensorId, end: Tensor, place: Placement, stream: number | null): TensorId {
  const axes = cloneAxes(withoutReductions(end.domain.logical), edit.iterDomainCount, () => "Serial");
  edit.iterDomainCount += axes.length;
  const plain = newTensor(edit.tensors.length, end, axes, place.mesh);
  const { tensor, count } = placed(
    plain,
    axes,
    place,
    stream === null ? null : at(axes, stream).id,
    edit.iterDomainCount,
  );
  edit.iterDomainCount += count;
  edit.tensors.push(tensor);
  edit.ops.push({ kind: "Set", inputs: [source], output: tensor.id });
  return tensor.id;
}

/** The number of the axis with Stream, of those that the tensor has at run time; null where it has none. */
function streamNumber(tensor: Tensor): number | null {
  const number = withoutReductions(tensor.domain.logical).findIndex(({ parallelType }) => parallelType === "Stream");
  return number < 0 ? null : number;
}

/** Whether a Set between two places can go chunk by chunk along an axis: nothing cuts it, or its chunks are the shares of a mesh's devices. */
function canStream(before: Placement, after: Placement, stream: number): boolean {
  if (cutsAxis(after, stream)) return false;
  const own = [...before.cuts].filter(([, { axis }]) => axis === stream);
  return own.every(([type, cut]) => {
    const scattered = after.cuts.get(type);
    return isWholeAxis(cut) && (scattered === undefined || isWholeAxis(scattered));
  });
}

function cutsAxis({ cuts }: Placement, axis: number): boolean {
  return [...cuts.values()].some((cut) => cut.axis === axis);
}

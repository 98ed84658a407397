/**
 * Replaces every Set, reduction or squeeze that no single collective implements by a chain of ops with one collective
 * each.
 *
 *   T1[_, _] = Set(T0[DIDy a, DIDx b])
 * becomes
 *   T2[DIDy a, _] = Set(T0)
 *   T1[_, _] = Set(T2)
 *
 * resharding-route.ts chooses the chain. All its tensors have the Stream axis of the last one, so that one loop runs
 * them all. The exception is a tensor whose Stream axis a DID type cuts. A Set that turns whole shares into chunks is a
 * point-to-point loop; other shares are joined before the loop.
 */
import { isOneRun, isWholeAxis } from "../../ir/axis-shards.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { ReductionOp, SetOp, SqueezeOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { streamPart } from "../stream-loops/stream-part.ts";
import {
  addCopy,
  allowsStream,
  type Cut,
  moveTo,
  type Placement,
  placementsOf,
  type StreamCut,
  streamLike,
} from "./placement.ts";
import { isConstant } from "../../ir/scalar/fold.ts";
import { type AllowedSteps, reshardingRoute } from "./resharding-route.ts";
import { collectiveStep } from "./resharding-step.ts";
import { isResharding } from "./sharding.ts";

export const splitReshardings: Pass<"checked", "checked"> = {
  name: "split-reshardings",
  from: "checked",
  to: "checked",
  run: (fusion, { options: { nvfuserLimits } }) => {
    const edit = editFusion(fusion);
    // Maps the output of a reduction that now starts a chain to the chain's last tensor.
    const ends = new Map<TensorId, TensorId>();
    const renamed = (id: TensorId): TensorId => ends.get(id) ?? id;
    for (const original of fusion.ops) {
      const op = original.inputs.some((id) => ends.has(id))
        ? { ...original, inputs: original.inputs.map(renamed) }
        : original;
      if (op.kind === "Set") addSteps(edit, op, nvfuserLimits);
      else if (op.kind === "Reduction" || op.kind === "Squeeze") addReducingSteps(edit, op, ends, nvfuserLimits);
      else edit.ops.push(op);
    }
    if (edit.ops.length === fusion.ops.length) return fusion;
    return { ...fusion, ...edit, outputs: fusion.outputs.map(renamed) } satisfies FusionData;
  },
};

function addSteps(edit: FusionEdit, op: SetOp, nvfuserLimits: boolean): void {
  const placements = isResharding(op, edit.tensors) ? placementsOf(op, edit.tensors) : null;
  if (placements === null) return void edit.ops.push(op);
  const { from, to } = placements;
  const end = at(edit.tensors, op.output);
  const stream = streamOf(end);
  // No loop runs an AllToAllV along an axis that devices share: collectives go chunk by chunk.
  const isFree = stream === null || !(cutsAxis(from, stream.number) || cutsAxis(to, stream.number));
  const allowed: AllowedSteps = nvfuserLimits ? "nvfuser" : isFree ? "all" : "collectives";
  const isDirect = collectiveStep(from, to, null) !== null;
  const route = isDirect ? [to] : reshardingRoute(from, to, null, allowed);
  let last = at(op.inputs, 0);
  let before = from;
  for (const [i, place] of route.entries()) {
    const streams = stream === null || canStream(before, place, stream.number, stream.cut);
    if (i === route.length - 1 && streams) break;
    last = addSet(edit, last, end, place, streams ? (stream?.number ?? null) : null);
    before = place;
  }
  edit.ops.push({ ...op, inputs: [last] });
}

/** The op reduces into the first placement of the route. Sets continue from there. */
function addReducingSteps(
  edit: FusionEdit,
  op: ReductionOp | SqueezeOp,
  ends: Map<TensorId, TensorId>,
  nvfuserLimits: boolean,
): void {
  const placements = isResharding(op, edit.tensors) ? placementsOf(op, edit.tensors) : null;
  if (placements === null || placements.reduced === null) return void edit.ops.push(op);
  const { from, to, reduced } = placements;
  if (!cutsAxis(from, reduced) || collectiveStep(from, to, reduced) !== null) return void edit.ops.push(op);
  const first = at(reshardingRoute(from, to, reduced, nvfuserLimits ? "nvfuser" : "all"), 0);
  const output = at(edit.tensors, op.output);
  const end = addCopy(edit, output);
  const axes = withoutReductions(output.domain.logical);
  const stream = streamOf(output);
  const streams =
    stream !== null &&
    [from, first].every((place) =>
      allowsStream(place, stream.number < reduced ? stream.number : stream.number + 1, stream.cut),
    );
  const memory = output.memory === "symmetric" ? "global" : output.memory;
  moveTo(
    edit,
    { ...output, memory },
    axes.map((axis): IterDomain | null => axis).toSpliced(reduced, 0, null),
    first,
    streams ? stream.cut : null,
  );
  edit.ops.push(op);
  ends.set(op.output, end.id);
  addSteps(edit, { kind: "Set", inputs: [op.output], output: end.id }, nvfuserLimits);
}

/** Sets `source` into a new tensor like `end`, with another placement. */
function addSet(edit: FusionEdit, source: TensorId, end: Tensor, place: Placement, stream: number | null): TensorId {
  const tensor = addSerialTensor(edit, end, withoutReductions(end.domain.logical), place.mesh);
  const axes = tensor.domain.logical;
  moveTo(edit, tensor, axes, place, stream === null ? null : streamLike(end, streamPart(end), at(axes, stream)));
  edit.ops.push({ kind: "Set", inputs: [source], output: tensor.id });
  return tensor.id;
}

/** The Stream axis of a tensor, with its number among the axes that the tensor has at run time. Null if it has none. */
function streamOf(tensor: Tensor): { readonly number: number; readonly cut: StreamCut } | null {
  const part = streamPart(tensor);
  const cut = streamLike(tensor, part, part?.axis);
  const number = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === cut?.axis);
  return cut === null || number < 0 ? null : { number, cut };
}

/**
 * Whether a Set between two placements can go chunk by chunk along an axis: neither cuts it, but for parts of chunks,
 * or its shares are gathered. Indices of a whole axis are gathered from the devices that have one each.
 */
function canStream(before: Placement, after: Placement, stream: number, cut: StreamCut): boolean {
  if (!allowsStream(after, stream, cut)) return false;
  const own = [...before.cuts].filter(([, { axis }]) => axis === stream);
  if (cut.source.part.chunks === null) {
    return own.every(([type, share]) => {
      const scattered = after.cuts.get(type);
      return isWholeAxis(share) && (scattered === undefined || keepsOneRun(after, scattered));
    });
  }
  const [first] = own;
  const isGathered =
    first !== undefined &&
    own.length === 1 &&
    isConstant(first[1].outer, 1) &&
    !after.cuts.has(first[0]) &&
    cut.source.part.chunks.within.length === 0;
  return allowsStream(before, stream, cut) || (isGathered && !cutsAxis(after, stream));
}

/** Whether each device keeps one run of the axis of `cut`, which no other type cuts. */
function keepsOneRun({ cuts }: Placement, cut: Cut): boolean {
  return (
    isOneRun(cut, cut.source.axis, cut.devices) &&
    ![...cuts.values()].some((other) => other !== cut && other.axis === cut.axis)
  );
}

function cutsAxis({ cuts }: Placement, axis: number): boolean {
  return [...cuts.values()].some((cut) => cut.axis === axis);
}

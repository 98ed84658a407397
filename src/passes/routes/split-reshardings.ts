/**
 * Replaces every Set, reduction or squeeze that no single collective implements by a chain of ops with one collective
 * each.
 *
 *   T1[_, _] = Set(T0[DIDy a, DIDx b])
 * becomes
 *   T2[DIDy a, _] = Set(T0)
 *   T1[_, _] = Set(T2)
 *
 * route.ts chooses the chain. All its tensors have the Stream axis of the last one, so that one loop runs
 * them all. The exception is a tensor whose Stream axis a DID type cuts. A Set that turns whole shares into chunks is a
 * point-to-point loop; other shares are joined before the loop.
 *
 * A Set of what every device has already is marked local: each takes a view of its own part.
 */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { isView, type Layout, type LayoutShare } from "../../ir/layout.ts";
import type { ReductionOp, SetOp, SqueezeOp } from "../../ir/ops/op.ts";
import { isCut } from "../../ir/parts.ts";
import { isOneRun, isWhole, outermostTypes } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { type StreamPart, streamPart } from "../../ir/stream.ts";
import { addCopy, allowsStream, layoutsOf, moveTo, streamOn } from "./layouts.ts";
import { type AllowedSteps, reshardingRoute } from "./route.ts";
import { collectiveStep } from "./steps/step.ts";
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
    if (edit.ops.every((op, i) => op === fusion.ops[i])) return fusion;
    return { ...fusion, ...edit, outputs: fusion.outputs.map(renamed) } satisfies FusionData;
  },
};

function addSteps(edit: FusionEdit, op: SetOp, nvfuserLimits: boolean): void {
  const layouts = isResharding(op, edit.tensors) ? layoutsOf(op, edit.tensors) : null;
  if (layouts === null) return void edit.ops.push(op);
  const { from, to } = layouts;
  const end = at(edit.tensors, op.output);
  const stream = streamOf(end);
  // No loop runs an AllToAllV along an axis that devices share: collectives go chunk by chunk.
  const isFree = stream === null || !(cutsAxis(from, stream.number) || cutsAxis(to, stream.number));
  const allowed: AllowedSteps = nvfuserLimits ? "nvfuser" : isFree ? "all" : "collectives";
  const isDirect = collectiveStep(from, to) !== null;
  const route = isDirect ? [to] : reshardingRoute(from, to, allowed);
  let last = at(op.inputs, 0);
  let before = from;
  for (const [i, place] of route.entries()) {
    const streams = stream === null || canStream(before, place, stream.number, stream.part);
    if (i === route.length - 1 && streams) break;
    const next = addStop(edit, end, place, streams ? stream : null);
    addStep(edit, { kind: "Set", inputs: [last], output: next }, before, place, nvfuserLimits);
    [last, before] = [next, place];
  }
  addStep(edit, before === from ? op : { ...op, inputs: [last] }, before, to, nvfuserLimits);
}

/** A Set of what each device of the mesh has already sends nothing. nvFuser makes a Scatter of it. */
function addStep(edit: FusionEdit, op: SetOp, from: Layout, to: Layout, nvfuserLimits: boolean): void {
  const isLocal = !nvfuserLimits && isView(from, to);
  edit.ops.push(isLocal && isResharding(op, edit.tensors) ? { ...op, local: true } : op);
}

/** The op reduces into the first layout of the route. Sets continue from there. */
function addReducingSteps(
  edit: FusionEdit,
  op: ReductionOp | SqueezeOp,
  ends: Map<TensorId, TensorId>,
  nvfuserLimits: boolean,
): void {
  const layouts = isResharding(op, edit.tensors) ? layoutsOf(op, edit.tensors) : null;
  if (layouts === null || layouts.from.pending.length === 0) return void edit.ops.push(op);
  const { from, to } = layouts;
  if (collectiveStep(from, to) !== null) return void edit.ops.push(op);
  const first = at(reshardingRoute(from, to, nvfuserLimits ? "nvfuser" : "all"), 0);
  const output = at(edit.tensors, op.output);
  const end = addCopy(edit, output);
  const stream = streamOf(output);
  const streams = stream !== null && [from, first].every((place) => allowsStream(place, stream.number, stream.part));
  const memory = output.memory === "symmetric" ? "global" : output.memory;
  const axes = withoutReductions(output.domain.logical);
  moveTo(edit, { ...output, memory }, axes, first, streams ? stream.part : null);
  edit.ops.push(op);
  ends.set(op.output, end.id);
  addSteps(edit, { kind: "Set", inputs: [op.output], output: end.id }, nvfuserLimits);
}

/** A new tensor like `end`, with another layout. */
function addStop(edit: FusionEdit, end: Tensor, to: Layout, stream: Streamed | null): TensorId {
  const tensor = addSerialTensor(edit, end, withoutReductions(end.domain.logical), to.mesh);
  const axes = tensor.domain.logical;
  moveTo(edit, tensor, axes, to, stream === null ? null : streamOn(stream.part, at(axes, stream.number)));
  return tensor.id;
}

/** The Stream axis of a tensor, with its number among the axes that the tensor has at run time. */
interface Streamed {
  readonly number: number;
  readonly part: StreamPart;
}

function streamOf(tensor: Tensor): Streamed | null {
  const part = streamPart(tensor);
  const number = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === part?.axis.id);
  return part === null || number < 0 ? null : { number, part };
}

/**
 * Whether a Set between two layouts can go chunk by chunk along an axis: neither cuts it, but for parts of chunks, or
 * its shares are gathered. Indices of a whole axis are gathered from the devices that have one each.
 */
function canStream(before: Layout, after: Layout, stream: number, part: StreamPart): boolean {
  if (!allowsStream(after, stream, part)) return false;
  const own = [...before.shares.values()].filter(({ axis }) => axis === stream);
  if (part.chunks === null) {
    return own.every((share) => {
      const scattered = after.shares.get(share.type);
      return isWhole(share) && (scattered === undefined || isAloneInOneRun(after, scattered));
    });
  }
  const [first] = own;
  const isGathered =
    first !== undefined &&
    own.length === 1 &&
    outermostTypes(first.cut).length === 1 &&
    !after.shares.has(first.type) &&
    part.chunks.within.length === 0;
  return allowsStream(before, stream, part) || (isGathered && !cutsAxis(after, stream));
}

/** Whether each device keeps one run of the axis of the share, which no other type cuts. */
function isAloneInOneRun({ shares }: Layout, share: LayoutShare): boolean {
  const others = [...shares.values()].filter(({ axis, type }) => axis === share.axis && type !== share.type);
  return others.length === 0 && isOneRun(share, share.devices);
}

function cutsAxis({ axes }: Layout, axis: number): boolean {
  return isCut(at(axes, axis));
}

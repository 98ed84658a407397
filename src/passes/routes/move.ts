/**
 * Moves tensors from layout to layout: the steps of a route (route.ts) as ops, each of which one communication carries.
 *
 *   T1[_, _] = Set(T0[DIDy a, DIDx b])   ->   T2[DIDy a, _] = Set(T0); T1[_, _] = Set(T2)
 *
 * What several ops need in one place moves there once, also where only the first steps are the same. What goes in chunks
 * is as whole after its loop as what goes at once. What stands for a moved tensor may be a view of another one
 * (below).
 *
 * All tensors of a route have the Stream axis of the last one, so that one loop runs them all. The exception is a tensor
 * whose Stream axis a DID type cuts. A Set that turns whole shares into chunks is a point-to-point loop; other shares are
 * joined before the loop. A Set of what every device has already is marked local: each takes a view of its own part.
 */
import { type MemoryType, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { coversShares, isView, type Layout, layout, layoutOf, type LayoutShare } from "../../ir/layout.ts";
import type { ExpandOp, ReshapeOp } from "../../ir/ops/kinds/views/broadcast.ts";
import type { Op, ReductionOp, SetOp, SqueezeOp } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, isCut, wholeAxis } from "../../ir/parts.ts";
import { constantValue, sameScalar } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { didTypesOf, isOneRun, isWhole, outermostTypes } from "../../ir/shards.ts";
import { type Chunks, streamAxis, type StreamPart, streamPart, withStream } from "../../ir/stream.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addSerialTensor } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import { addCopy, allowsStream, layoutsOf, moveTo, streamOn, isResharding, sameMesh } from "./layouts.ts";
import { type AllowedSteps, reshardingRoute } from "./route.ts";
import { endOf, madeTensor, read, reading, type Routing } from "./routing.ts";
import { collectiveStep, reshardingStep } from "./steps/step.ts";

/** Where a tensor is to lie. `like` is what it is for, by default itself. */
export interface MoveTarget {
  readonly place: Layout;
  readonly stream: Streamed | null;
  readonly memory?: MemoryType;
  readonly like?: Tensor;
}

/** The Stream axis of a tensor, with its number among the axes that the tensor has at run time. */
export interface Streamed {
  readonly number: number;
  readonly part: StreamPart;
}

/** The tensor that has what `id` has, and lies as given. */
export function movedTo(routing: Routing, id: TensorId, target: MoveTarget): TensorId {
  const moved = stopAt(routing, endOf(routing, id), target, (set) => {
    moveInto(routing, set);
  });
  return endOf(routing, moved);
}

/** Moves the operand of a Set, as it lies, into its output. */
export function moveInto(routing: Routing, set: SetOp): void {
  const { tensors, outputs, ops } = routing;
  const moved = (): SetOp => reading(set, (id) => madeTensor(routing, id, set));
  if (!isResharding(set, tensors)) return void ops.push(moved());
  const [text, whole] = placeTexts(set, at(tensors, set.output));
  const known = movedAlready(routing, text);
  // An output is a copy.
  if (known !== null && outputs.has(set.output)) return void ops.push({ ...set, inputs: [known] });
  if (known !== null) return void routing.ends.set(set.output, known);
  const source = sourceOf(routing, set);
  if (source === null) addSteps(routing, moved());
  else if (source.view === null) moveInto(routing, { ...set, inputs: [source.id] });
  else
    ops.push({
      ...source.view,
      inputs: [movedTo(routing, source.id, { place: source.place, stream: null })],
      output: set.output,
    });
  remember(routing, set.output, text, whole);
}

/** A tensor that `id` was moved to already, or a new one that `make` moves it to. */
function stopAt(routing: Routing, id: TensorId, target: MoveTarget, make: (set: SetOp) => void): TensorId {
  const { place, stream, memory = "global", like = at(routing.tensors, id) } = target;
  const cuts = place.axes.map((cut, i) => (stream?.number === i ? (withStream(cut, stream.part) ?? cut) : cut));
  const [text, whole] = textsOf([id, place.mesh.toString(), memory, null], cuts);
  const known = movedAlready(routing, text);
  if (known !== null) return known;
  const end = addMoved(routing, like, target);
  make({ kind: "Set", inputs: [id], output: end });
  remember(routing, end, text, whole);
  return end;
}

/** A new tensor like `like` that lies as given. */
export function addMoved(routing: Routing, like: Tensor, { place, stream, memory = "global" }: MoveTarget): TensorId {
  const end = addSerialTensor(routing, like, withoutReductions(like.domain.logical), place.mesh);
  const axes = end.domain.logical;
  moveTo(routing, end, axes, place, stream === null ? null : streamOn(stream.part, at(axes, stream.number)));
  if (memory !== "global") routing.tensors[end.id] = { ...at(routing.tensors, end.id), memory };
  return end.id;
}

function movedAlready({ moved, position }: Routing, text: string): TensorId | null {
  const known = moved.get(text);
  return known === undefined || known.position > position ? null : known.id;
}

function remember(routing: Routing, id: TensorId, ...texts: readonly string[]): void {
  const { moved, position, options } = routing;
  if (options.nvfuserLimits) return;
  for (const text of texts) if (!moved.has(text)) moved.set(text, { id: endOf(routing, id), position });
}

/** See `textsOf`. */
function placeTexts({ inputs }: SetOp, { domain, mesh, memory }: Tensor): readonly [string, string] {
  const order = domain.allocation?.map(({ id }) => domain.loop.findIndex((axis) => axis.id === id)) ?? null;
  const cuts = domain.logical.map((axis) => cutOf(domain, axis));
  return textsOf([at(inputs, 0), mesh?.toString(), memory, order], cuts);
}

/**
 * A text that is equal for Sets that give each device the same, in the same chunks and the same memory; of a Set in
 * chunks also the text without them.
 */
function textsOf(where: readonly unknown[], cuts: readonly CutAxis[]): readonly [string, string] {
  const textOf = (axes: readonly CutAxis[]): string =>
    JSON.stringify([
      ...where,
      axes.map(({ parts }) => parts.map((part) => [part.type, printScalar(part.extent), printScalar(part.stride)])),
    ]);
  const whole = cuts.map((cut) => (isCut(cut) && didTypesOf(cut).length === 0 ? wholeAxis(cut.extent) : cut));
  return [textOf(cuts), textOf(whole)];
}

/** The steps of the route of a Set. */
function addSteps(routing: Routing, op: SetOp): void {
  const { tensors, options } = routing;
  const layouts = layoutsOf(op, tensors);
  invariant(layouts !== null, "a Set that reshards has layouts", op);
  const { from, to } = layouts;
  const end = at(tensors, op.output);
  const stream = streamOf(end);
  // No loop runs an AllToAllV along an axis that devices share: collectives go chunk by chunk.
  const isFree = stream === null || !(cutsAxis(from, stream.number) || cutsAxis(to, stream.number));
  const allowed: AllowedSteps = options.nvfuserLimits ? "nvfuser" : isFree ? "all" : "collectives";
  const isDirect = collectiveStep(from, to) !== null;
  const route = isDirect ? [to] : reshardingRoute(from, to, allowed);
  let last = at(op.inputs, 0);
  let before = from;
  for (const [i, place] of route.entries()) {
    const isInChunks = isFree || reshardingStep(before, place, options.nvfuserLimits)?.kind !== "AllToAllV";
    const streams = stream === null || (isInChunks && canStream(before, place, stream.number, stream.part, options));
    if (i === route.length - 1 && streams) break;
    const own = before;
    last = stopAt(routing, last, { place, stream: streams ? stream : null, like: end }, (set) => {
      addStep(routing, set, own, place);
    });
    before = place;
  }
  addStep(routing, before === from ? op : { ...op, inputs: [last] }, before, to);
}

/** A Set of what each device of the mesh has already sends nothing. nvFuser makes a Scatter of it. */
function addStep({ ops, tensors, options }: Routing, op: SetOp, from: Layout, to: Layout): void {
  const isLocal = !options.nvfuserLimits && isView(from, to) && isResharding(op, tensors);
  ops.push(isLocal ? { ...op, local: true } : op);
}

/** Adds a reduction over devices. It reduces into the first layout of its route. Sets continue from there. */
export function addReduction(routing: Routing, given: ReductionOp | SqueezeOp): void {
  const { tensors, ops, options } = routing;
  const op = reading(given, (id) => read(routing, id));
  const layouts = isResharding(op, tensors) ? layoutsOf(op, tensors) : null;
  if (layouts === null || layouts.from.pending.length === 0) return void ops.push(op);
  const { from, to } = layouts;
  if (collectiveStep(from, to) !== null) return void ops.push(op);
  const first = at(reshardingRoute(from, to, options.nvfuserLimits ? "nvfuser" : "all"), 0);
  const output = at(tensors, op.output);
  const end = addCopy(routing, output);
  const stream = streamOf(output);
  const streams = stream !== null && [from, first].every((place) => allowsStream(place, stream.number, stream.part));
  const memory = output.memory === "symmetric" ? "global" : output.memory;
  const axes = withoutReductions(output.domain.logical);
  moveTo(routing, { ...output, memory }, axes, first, streams ? stream.part : null);
  ops.push(op);
  routing.ends.set(op.output, end.id);
  moveInto(routing, { kind: "Set", inputs: [op.output], output: end.id });
}

function streamOf(tensor: Tensor): Streamed | null {
  const part = streamPart(tensor);
  const number = withoutReductions(tensor.domain.logical).findIndex(({ id }) => id === part?.axis.id);
  return part === null || number < 0 ? null : { number, part };
}

/**
 * Whether a Set between two layouts can go chunk by chunk along an axis: neither cuts it, but for parts of chunks, or
 * its shares are gathered, or exchanged for runs of another axis. Indices of a whole axis are gathered from the devices
 * that have one each.
 */
function canStream(before: Layout, after: Layout, stream: number, part: StreamPart, options: LoweringOptions): boolean {
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
    part.chunks.within.length === 0 &&
    (!after.shares.has(first.type) || (exchangesInLoops(options) && isExchanged(before, after, first, part.chunks)));
  return allowsStream(before, stream, part) || (isGathered && !cutsAxis(after, stream));
}

/** Whether loops exchange runs of axes, device by device. UCC has no sends and receives, and nvFuser no such loops. */
export function exchangesInLoops({ backend, p2p, nvfuserLimits }: LoweringOptions): boolean {
  return backend !== "ucc" && p2p !== "broadcast" && !nvfuserLimits;
}

/** Whether each device has one chunk, and gets a run of another axis in its place. */
function isExchanged(before: Layout, after: Layout, share: LayoutShare, { parts }: Chunks): boolean {
  const scattered = after.shares.get(share.type);
  return (
    scattered !== undefined &&
    scattered.axis !== share.axis &&
    !cutsAxis(before, scattered.axis) &&
    isAloneInOneRun(after, scattered) &&
    isAloneInOneRun(before, share) &&
    constantValue(parts) === share.devices
  );
}

/** Whether each device keeps one run of the axis of the share, which no other type cuts. */
function isAloneInOneRun({ shares }: Layout, share: LayoutShare): boolean {
  const others = [...shares.values()].filter(({ axis, type }) => axis === share.axis && type !== share.type);
  return others.length === 0 && isOneRun(share, share.devices);
}

function cutsAxis({ axes }: Layout, axis: number): boolean {
  return isCut(at(axes, axis));
}

// What is moved where a Set moves what another op makes of it, if that op waits (routing.ts):
//
//   T3[_, _] = Set(T0[DIDx, _]); T4[_, DIDx] = Set(T3), T3 unused else   ->   T4[_, DIDx] = Set(T0)
//   T4 = Set(expand(T0))                                                 ->   T4 = expand(T3), T3 = Set(T0)
//   T4 = Set(reshape(T0)), the whole of it, where others read T0         ->   T4 = reshape(T3), T3 = Set(T0)
//
// So a gather that is only scattered again is an all-to-all, or nothing; a stretched tensor moves before it is stretched;
// and what is gathered for a reshape is what other readers gather. The backward pass of a linear has such pairs: its
// operand's gradient reads the tokens, and its weight's gradient reads them as one axis of rows.

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
function sourceOf({ waiting, tensors }: Routing, set: SetOp): Source | null {
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
      // Whole along a stretched axis, the source is no more than a device's part of the result, if no part is empty.
      const isMore = [...after.shares.values()].some(
        ({ axis, devices }) => isStretched(axis) && !((constantValue(at(after.axes, axis).extent) ?? 0) >= devices),
      );
      const isCut = [...between.shares.values()].some(({ axis }) => isStretched(axis));
      const isFree = to.memory === "global" && streamAxis(to) === null && !isMore && !isCut;
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

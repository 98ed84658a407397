/**
 * Splits a reduction, matmul or linear over a sharded axis in two: each device reduces its own share, and one
 * collective then reduces these partial results.
 *
 *   T2[M, N, rK] = matmul(T0[M, K/DIDx], T1[K/DIDx, N])
 * becomes
 *   T3[M, N, DIDx, rK/D] = matmul(T0, T1)
 *   T2[M, N, rD] = reduction(T3, {2})
 *
 * A bias is added once, to the sum. Source: nvFuser's DecomposeReshardings
 * (decomposeRowParallelLinearWithBias, rFactorLoopSplits).
 */
import { isScaled } from "../../ir/ops/kinds/contractions.ts";
import { type AxisShape, type DIDType, isDID, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import {
  addShare,
  keepShares,
  layout,
  type Layout,
  layoutOf,
  type LayoutShare,
  sameLayout,
  sameShares,
} from "../../ir/layout.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { ContractionOp, LinearOp, MatmulOp, ReductionOp } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, isCut, rescaled, wholeAxis, withTypes } from "../../ir/parts.ts";
import { foldCeilDiv } from "../../ir/scalar/fold.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { didTypesOf, isWhole } from "../../ir/shards.ts";
import { streamPart } from "../../ir/stream.ts";
import { at, invariant } from "../../support/invariant.ts";
import { redomain, addSerialTensor, type FusionEdit } from "../edit/tensor-edit.ts";
import { type DeviceParts, reduceOverDevices } from "./merge-sums.ts";
import { addCopy, imagesOf, moveTo, streamOn, sameMesh } from "./layouts.ts";

/** Adds what computes the op, whose operands lie as `sharedPlaces` says. */
export function splitOverDevices(edit: FusionEdit, op: ReductionOp | ContractionOp): void {
  if (op.kind === "Reduction") splitReduction(edit, op);
  else splitContraction(edit, op);
}

/** An axis of a tensor of partial results. */
interface PartAxis {
  readonly shape: AxisShape;
  /** The number of an output axis, the DID type whose devices the axis numbers, or null for a reduced axis. */
  readonly slot: number | DIDType | null;
  readonly cut: CutAxis;
}

function splitReduction(edit: FusionEdit, op: ReductionOp): void {
  const output = at(edit.tensors, op.output);
  const source = at(edit.tensors, at(op.inputs, 0));
  const place = layoutOf(source);
  invariant(place !== null, "a shared operand has a mesh", op);
  // Each device has one index of an axis that one type cuts as a whole. Only the reduction over the devices reduces it.
  const overDevices = (number: number): LayoutShare | null => {
    const [first, ...others] = [...place.shares.values()].filter(({ axis }) => axis === number);
    return first !== undefined && others.length === 0 && isWhole(first) ? first : null;
  };
  let kept = 0;
  const parts = withoutReductions(source.domain.logical).flatMap((shape, number): readonly PartAxis[] => {
    const cut = at(place.axes, number);
    if (!op.axes.includes(number)) return [{ shape, slot: kept++, cut }];
    const whole = overDevices(number);
    return whole === null ? reducedParts(shape, cut, place) : [{ shape, slot: whole.type, cut }];
  });
  const own = op.axes.filter((number) => overDevices(number) === null);
  const slots = slotsOf(parts);
  if (own.length === 0) return reduceOverDevices(edit, { tensor: source.id, slots }, op.op, output);
  const made = addPartial(edit, output, place, parts);
  edit.ops.push({ ...op, axes: own, output: made.tensor });
  reduceOverDevices(edit, made, op.op, output);
}

function splitContraction(edit: FusionEdit, op: ContractionOp): void {
  const output = at(edit.tensors, op.output);
  const contraction = op.kind === "GroupedMatmul" ? op : withoutBias(op);
  const axes = withoutReductions(output.domain.logical);
  const pairs = axisMap(op, edit.tensors);
  const reduced = pairs.find(({ consumer }) => consumer.iterType === "reduction");
  invariant(reduced !== undefined, "a contraction has a contracted axis", op);
  const sources = contraction.inputs.map((id) => {
    const tensor = at(edit.tensors, id);
    return { own: withoutReductions(tensor.domain.logical), place: layoutOf(tensor) };
  });
  const { own, place } = at(sources, reduced.operand);
  invariant(place !== null, "a shared operand has a mesh", op);
  const contracted = at(
    place.axes,
    own.findIndex(({ id }) => id === reduced.producer.id),
  );
  const shared = new Set(didTypesOf(contracted));
  // The output's other axes are cut like the operands', then like the output's own.
  const known = sources.flatMap(({ own: from, place: other }, operand) =>
    [...(other?.shares.values() ?? [])].flatMap((share): readonly LayoutShare[] => {
      const pair = pairs.find((each) => each.operand === operand && each.producer.id === from[share.axis]?.id);
      const axis = pair === undefined || pair.broadcast ? -1 : axes.findIndex(({ id }) => id === pair.consumer.id);
      return axis < 0 ? [] : [{ ...share, axis }];
    }),
  );
  const wanted = output.mesh?.equals(place.mesh) === true ? [...(layoutOf(output)?.shares.values() ?? [])] : [];
  let made = layout(
    place.mesh,
    axes.map(({ extent }) => wholeAxis(extent)),
  );
  for (const share of [...known, ...wanted]) if (!shared.has(share.type)) made = addShare(made, share) ?? made;
  const parts = [
    ...axes.map((shape, slot): PartAxis => ({ shape, slot, cut: at(made.axes, slot) })),
    ...reducedParts(reduced.consumer, contracted, place),
  ];
  const partial = addPartial(edit, output, place, parts);
  edit.ops.push({ ...contraction, output: partial.tensor });
  const bias = op.kind === "Linear" && !isScaled(op) ? op.inputs[2] : undefined;
  if (bias === undefined) return reduceOverDevices(edit, partial, "sum", output);
  const sum = addCopy(edit, output, "sum");
  reduceOverDevices(edit, partial, "sum", sum);
  addBias(edit, sum.id, bias, output);
}

/**
 * The axes that replace a cut reduced axis: one per DID type, for the devices' results, and the share that each device
 * reduces.
 */
function reducedParts({ extent }: AxisShape, cut: CutAxis, { mesh }: Layout): readonly PartAxis[] {
  const types = didTypesOf(cut);
  const devices = types.reduce((count, type) => count * mesh.size(type), 1);
  const share = foldCeilDiv(extent, constant(devices));
  return [
    ...types.map((type): PartAxis => {
      const own = constant(mesh.size(type));
      return { shape: { extent: own, iterType: "iteration" }, slot: type, cut: wholeAxis(own, type) };
    }),
    { shape: { extent: share, iterType: "reduction" }, slot: null, cut: wholeAxis(share) },
  ];
}

function slotsOf(parts: readonly PartAxis[]): readonly (number | DIDType)[] {
  return parts.flatMap(({ slot }) => (slot === null ? [] : [slot]));
}

/**
 * Adds the tensor of partial results. It has the output's Stream axis, so that an iteration reduces the partial results
 * of its chunk.
 */
function addPartial(edit: FusionEdit, output: Tensor, { mesh }: Layout, parts: readonly PartAxis[]): DeviceParts {
  const tensor = addSerialTensor(
    edit,
    output,
    parts.map(({ shape }) => shape),
    mesh,
    "partial sum",
  );
  const slots = slotsOf(parts);
  const own = withoutReductions(tensor.domain.logical);
  const cuts = parts.flatMap(({ slot, cut }) => (slot === null ? [] : [cut]));
  const stream = streamPart(output);
  const streamed = withoutReductions(output.domain.logical).findIndex(({ id }) => id === stream?.axis.id);
  const axis = streamed < 0 ? undefined : own[slots.indexOf(streamed)];
  moveTo(edit, tensor, own, layout(mesh, cuts), streamOn(stream, axis));
  return { tensor: tensor.id, slots };
}

// The bias of a linear whose sum is split among devices or chunks. It is removed from the partial sums and added once.
//
//   T3 = linear(T0, T1, T2)     ->     T4 = linear(T0, T1); ...; T5[b, N] = broadcast(T2); T3 = add(T4, T5)

/** The op with only its two matrices. */
export function withoutBias<T extends MatmulOp | LinearOp>(op: T): T {
  if (isScaled(op)) return op;
  return {
    ...op,
    inputs: op.inputs.slice(0, 2),
    ...(op.orders === undefined ? {} : { orders: op.orders.slice(0, 2) }),
  };
}

/** Makes `output` the sum of `sum` and `bias`, whose axes are the last of `sum`'s. */
function addBias(edit: FusionEdit, sum: TensorId, bias: TensorId, output: Tensor): void {
  const axes = withoutReductions(output.domain.logical);
  redomain(
    edit,
    output,
    axes.map((axis) => ({ axis, model: cutOf(output.domain, axis) })),
  );
  const own = withoutReductions(at(edit.tensors, bias).domain.logical);
  const missing = axes.length - own.length;
  const inputs = [sum, missing === 0 ? bias : broadcastBias(edit, bias, missing, output)];
  edit.ops.push({ kind: "Binary", op: "add", inputs, output: output.id });
}

/** The bias with `missing` more axes in front, placed like the output along its own axes. */
function broadcastBias(edit: FusionEdit, bias: TensorId, missing: number, output: Tensor): TensorId {
  const source = at(edit.tensors, bias);
  const own = withoutReductions(source.domain.logical);
  const flags = Array.from({ length: missing + own.length }, (_, i) => i < missing);
  const place = layoutOf(
    output,
    withoutReductions(output.domain.logical).map((axis, i) => (i < missing ? null : axis)),
  );
  invariant(place !== null, "a sharded tensor has a mesh", { tensor: output.id });
  const unit: AxisShape = { extent: constant(1), iterType: "broadcast" };
  const shapes = [...Array.from({ length: missing }, () => unit), ...own];
  const stretched = addSerialTensor(edit, source, shapes, place.mesh, "broadcast");
  moveTo(edit, stretched, stretched.domain.logical, place, null);
  edit.ops.push({ kind: "Broadcast", flags, inputs: [bias], output: stretched.id });
  return stretched.id;
}

// Decides whether devices share a reduction, matmul or linear, and the layouts of its operands with which each
// device reduces or contracts its own share of a sharded axis.

type SharedOp = ReductionOp | ContractionOp;

/**
 * The layout of each operand with a reduced axis. Null if the devices share nothing, or if one collective implements
 * the op.
 *
 * Devices share a reduced axis that the operand shards, and a contracted axis that both operands shard alike. They also
 * share an axis if the output's reduction axis has a DID type, as nvFuser propagates it; an operand with another
 * layout is then moved.
 */
export function sharedPlaces(op: SharedOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const output = at(tensors, op.output);
  // stream-parallel-type handles the chunks of a reduced axis.
  if (output.domain.loop.some((axis) => axis.iterType === "reduction" && axis.parallelType === "Stream")) return null;
  return op.kind === "Reduction" ? reductionPlaces(op, tensors) : contractionPlaces(op, tensors);
}

function reductionPlaces(op: ReductionOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const operand = at(tensors, at(op.inputs, 0));
  const output = at(tensors, op.output);
  const place = layoutOf(operand);
  if (place === null) return null;
  const marks = sameMesh(operand.mesh, output.mesh) ? marksOn(op, tensors) : [];
  let marked = place;
  for (const mark of marks) {
    if (sameShares(marked.shares.get(mark.type), mark)) continue;
    marked =
      addShare(
        keepShares(marked, ({ type }) => type !== mark.type),
        mark,
      ) ?? marked;
  }
  const [first, ...others] = [...marked.shares.values()].filter(({ axis }) => op.axes.includes(axis));
  if (first === undefined) return null;
  const isCommunication = op.axes.length === 1 && others.length === 0 && isWhole(first);
  return isCommunication && marked === place ? null : [marked];
}

function contractionPlaces(op: ContractionOp, tensors: readonly Tensor[]): readonly Layout[] | null {
  const output = at(tensors, op.output);
  // Scales of blocks are contracted, too.
  const operands = op.inputs
    .map((id) => at(tensors, id))
    .filter((_, operand) => operand < 2 || contractedAxis(op, operand, tensors) >= 0);
  const places = operands.map((operand) => layoutOf(operand));
  const [x, y] = places;
  const contracted = operands.map((_, operand) => contractedAxis(op, operand, tensors));
  const [k, l] = contracted;
  if (output.mesh === null || x === null || y === null || x === undefined || y === undefined) return null;
  // Groups of terms are no axis that devices share.
  if (k === undefined || l === undefined || k < 0 || l < 0) return null;
  const [mark] = marksOn(op, tensors);
  const shared = mark?.cut ?? cutAlike(x, k, y, l);
  if (shared === null) return null;
  const mesh = mark === undefined ? x.mesh : output.mesh;
  return places.map((known, operand): Layout => {
    const axis = at(contracted, operand);
    const axes = withoutReductions(at(operands, operand).domain.logical);
    const place =
      known ??
      layout(
        mesh,
        axes.map(({ extent }) => wholeAxis(extent)),
      );
    const isShared = (type: DIDType): boolean => shared.parts.some((part) => part.type === type);
    const own = keepShares(place, ({ type }) => place.mesh.equals(mesh) && !isShared(type));
    return layout(mesh, own.axes.with(axis, rescaled(shared, at(axes, axis).extent)));
  });
}

/** The shares of the output's reduction axes, by the numbers of the first operand's axes. */
function marksOn(op: SharedOp, tensors: readonly Tensor[]): readonly LayoutShare[] {
  const { domain, mesh } = at(tensors, op.output);
  if (mesh === null) return [];
  const axes = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical);
  const pairs = axisMap(op, tensors).filter(({ operand }) => operand === 0);
  const cuts = imagesOf(axes, pairs).map((image, i): CutAxis =>
    image?.iterType === "reduction" ? withTypes(cutOf(domain, image), isDID) : wholeAxis(at(axes, i).extent),
  );
  return [...layout(mesh, cuts).shares.values()];
}

function contractedAxis(op: ContractionOp, operand: number, tensors: readonly Tensor[]): number {
  const axes = withoutReductions(at(tensors, at(op.inputs, operand)).domain.logical);
  const pair = axisMap(op, tensors).find((own) => own.operand === operand && own.consumer.iterType === "reduction");
  return axes.findIndex(({ id }) => id === pair?.producer.id);
}

/** How axis `k` of one operand is cut, if axis `l` of the other is cut so too, on the same mesh; otherwise null. */
function cutAlike(x: Layout, k: number, y: Layout, l: number): CutAxis | null {
  const [left, right] = [at(x.axes, k), at(y.axes, l)];
  const of = ({ mesh }: Layout, cut: CutAxis): Layout => layout(mesh, [cut]);
  return isCut(left) && sameLayout(of(x, left), of(y, right)) ? left : null;
}

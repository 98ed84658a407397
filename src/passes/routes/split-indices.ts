/**
 * Splits an op that indexes a sharded axis, so that nothing is gathered: each device reads or adds at the indices that
 * lie in its share. Indices of other shares are outside of it, where reads give 0, and the results are summed.
 *
 *   T2[T, h] = embedding(T0[V/DIDx, h], T1[T])
 * becomes
 *   T3[DIDx, V/D, h] = view(T0)
 *   T4[DIDx, T] = T1 - iota(D, step V/D)
 *   T5[DIDx, T, h] = take_along_axis(T3, T4)
 *   T2[rDIDx, T, h] = sum(T5)
 *
 * So is a slice of few indices (split-slices.ts). A scatterAdd to a sharded axis sums nothing: each device adds to its
 * share. One of a sharded source adds on each device to zeros, which are then summed. Where a sum has more bytes than a
 * gather, the axis is gathered. Parts must be even; other axes are gathered.
 */
import { type DIDType, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { keepShares, layout, type Layout, layoutOf } from "../../ir/layout.ts";
import { call } from "../../ir/ops/call.ts";
import { type GatherOp, type IndexSelectOp, type Op, opOf, type OpSpec, type ScatterAddOp } from "../../ir/ops/op.ts";
import { isWholeRange, type Range, type SliceOp } from "../../ir/ops/kinds/views/slice.ts";
import { inferOutput } from "../../ir/ops/rows.ts";
import { dividesEvenly, wholeAxis } from "../../ir/parts.ts";
import { constantValue, foldProduct } from "../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { keepsOneRun } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { isComputed } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { spreadShardings } from "../propagate/spread.ts";
import { reduceOverDevices } from "./merge-sums.ts";
import { moveTo } from "./layouts.ts";
import { type WholeSteps, wholeSteps } from "./split-slices.ts";
import { costOf } from "./weigh-ops.ts";
import { bytesOf } from "./steps/bytes.ts";
import { largestShare } from "./steps/exchange.ts";

interface Edit extends FusionEdit {
  readonly producers: ReadonlyMap<TensorId, Op>;
  readonly given: readonly Op[];
}

export const splitIndices: Pass<"checked", "checked"> = {
  name: "split-indices",
  from: "checked",
  to: "checked",
  run: (fusion, context) => {
    if (context.options.nvfuserLimits) return fusion;
    const edit: Edit = {
      ...editFusion(fusion),
      producers: new Map(fusion.ops.map((op) => [op.output, op])),
      given: fusion.ops,
    };
    const before = fusion.tensors.length;
    for (const op of fusion.ops) if (!splitOp(edit, op)) edit.ops.push(op);
    if (edit.tensors.length === before) return fusion;
    // The new tensors follow those that are placed.
    const { tensors, ops, iterDomainCount } = edit;
    const { derivations, ...rest } = fusion;
    const split: FusionData = { ...rest, tensors, ops, iterDomainCount };
    // Cotangents are placed already: against the layouts that their primals have now, more of them would be moved.
    const placed = spreadShardings(split, context.options);
    return derivations === undefined ? placed : { ...placed, derivations };
  },
};

function splitOp(edit: Edit, op: Op): boolean {
  switch (op.kind) {
    case "IndexSelect":
    case "Gather": {
      const share = shareOf(edit, at(op.inputs, 0), op.axis);
      if (share === null || !addsUp(at(edit.tensors, op.output))) return false;
      if (bytesOfSum(edit, op, share) > bytesOfGather(edit, [at(op.inputs, 0)], share)) return false;
      splitRead(edit, op, share);
      return true;
    }
    case "ScatterAdd": {
      const share = shareOf(edit, at(op.inputs, 0), op.axis);
      const source = shareOf(edit, at(op.inputs, 2), op.axis);
      if (share !== null) splitTarget(edit, op, share);
      if (share !== null || source === null || op.sets !== undefined) return share !== null;
      if (bytesOfSum(edit, op, source) > bytesOfGather(edit, op.inputs.slice(1), source)) return false;
      splitSource(edit, op, source);
      return true;
    }
    case "Slice":
      return splitSlice(edit, op);
    default:
      return false;
  }
}

/** See split-slices.ts. */
function splitSlice(edit: Edit, op: SliceOp): boolean {
  const id = at(op.inputs, 0);
  // A loop over chunks hides what moves.
  if ([id, op.output].some((each) => streamAxis(at(edit.tensors, each)) !== null)) return false;
  const operand = at(edit.tensors, id);
  const axes = withoutReductions(operand.domain.logical);
  const steps = wholeSteps(op, operand).find(({ axis }) => shareOf(edit, id, axis) !== null);
  if (steps !== undefined) {
    splitSteps(edit, op, steps);
    return true;
  }
  const cut = op.ranges.findIndex((range, i) => !isWholeRange(range, at(axes, i)) && shareOf(edit, id, i) !== null);
  const share = cut < 0 ? null : shareOf(edit, id, cut);
  if (share === null || !addsUp(operand) || !isFew(edit, op, share)) return false;
  const { start, step = 1 } = at(op.ranges, cut);
  const made = withoutReductions(at(edit.tensors, op.output).domain.logical);
  const table = cutsOthers(edit, op, cut) ? sliceOthers(edit, op, share) : id;
  const own = at(made, cut);
  const indices = addSerialTensor(edit, { ...operand, dtype: "int64" }, [own], share.place.mesh, "parts");
  const spec = { start, step: constant(step), extents: [own.extent], dtype: "int64" } as const;
  edit.ops.push({ kind: "Iota", ...spec, inputs: [], output: indices.id });
  splitRead(edit, { kind: "IndexSelect", axis: cut, inputs: [table, indices.id], output: op.output }, share);
  return true;
}

/** The slice with all of the shared axis, placed as its operand. */
function sliceOthers(edit: Edit, op: SliceOp, { axis, place: { axes, mesh } }: EqualShare): TensorId {
  const operand = at(edit.tensors, at(op.inputs, 0));
  const before = withoutReductions(operand.domain.logical);
  const ranges = op.ranges.with(axis, { start: constant(0), stop: at(before, axis).extent });
  const shapes = withoutReductions(at(edit.tensors, op.output).domain.logical).with(axis, at(before, axis));
  const made = addSerialTensor(edit, operand, shapes, mesh, "parts");
  const cuts = shapes.map(({ extent }, i) =>
    isWholeRange(at(ranges, i), at(before, i)) ? at(axes, i) : wholeAxis(extent),
  );
  moveTo(edit, made, made.domain.logical, layout(mesh, cuts), null);
  edit.ops.push({ ...op, ranges, output: made.id });
  return made.id;
}

/** Whether the sums of all slices of the tensor along the axis cost less than its gather. */
function isFew(edit: Edit, { inputs }: SliceOp, share: EqualShare): boolean {
  const id = at(inputs, 0);
  const axis = at(withoutReductions(at(edit.tensors, id).domain.logical), share.axis);
  const slices = edit.given.filter((each): each is SliceOp => {
    return each.kind === "Slice" && each.inputs[0] === id && !isWholeRange(at(each.ranges, share.axis), axis);
  });
  const bytes = slices.reduce((sum, each) => sum + bytesOfSum(edit, each, share), 0);
  const gather = { bytes: bytesOfGather(edit, [id], share), steps: 1 };
  return bytes < gather.bytes && costOf({ bytes, steps: slices.length }) < costOf(gather);
}

/** Each device takes one index of each of its steps. */
function splitSteps(edit: Edit, op: SliceOp, { axis, start, step }: WholeSteps): void {
  const id = at(op.inputs, 0);
  const extents = extentsOf(at(edit.tensors, id));
  const count = at(extentsOf(at(edit.tensors, op.output)), axis);
  const inSteps = emit(edit, { kind: "Reshape", extents: extents.toSpliced(axis, 1, count, constant(step)) }, [id]);
  const rangeOf = (stop: Scalar): Range => ({ start: constant(0), stop });
  const ranges = op.ranges.toSpliced(axis, 1, rangeOf(count), rangeOf(constant(step)));
  const sliced = cutsOthers(edit, op, axis) ? emit(edit, { kind: "Slice", ranges }, [inSteps]) : inSteps;
  edit.ops.push({ kind: "Select", axis: axis + 1, index: constant(start), inputs: [sliced], output: op.output });
}

/** Whether a slice cuts other axes than the given one. */
function cutsOthers({ tensors }: Edit, { inputs, ranges }: SliceOp, axis: number): boolean {
  const axes = withoutReductions(at(tensors, at(inputs, 0)).domain.logical);
  return ranges.some((range, i) => i !== axis && !isWholeRange(range, at(axes, i)));
}

/** Whether there are sums of the dtype. */
function addsUp({ dtype }: Tensor): boolean {
  return dtype !== "bool" && isComputed(dtype);
}

/** An axis of a tensor of which each device has an equal run. */
interface EqualShare {
  readonly type: DIDType;
  readonly axis: number;
  readonly devices: number;
  /** Indices on each device. */
  readonly size: number;
  readonly place: Layout;
}

/** Null unless one DID type alone cuts the axis, into equal runs. */
function shareOf(edit: Edit, id: TensorId, number: number): EqualShare | null {
  const tensor = at(edit.tensors, id);
  const axis = at(withoutReductions(tensor.domain.logical), number);
  const place = layoutOf(tensor);
  const [share, ...others] = [...(place?.shares.values() ?? [])].filter((each) => each.axis === number);
  const extent = constantValue(axis.extent);
  if (place === null || extent === null || share === undefined || others.length > 0) return null;
  const { type, devices, cut } = share;
  const isEven = keepsOneRun(share, devices) && cut.parts.length > 1 && dividesEvenly(cut) && extent > 0;
  return isEven ? { type, axis: number, devices, size: extent / devices, place } : null;
}

/** Of a sum over the devices that share an axis, in the layout of the op's output; 0 if a size is not known. */
function bytesOfSum({ tensors }: Edit, { output }: Op, { type, devices }: EqualShare): number {
  const tensor = at(tensors, output);
  const place = layoutOf(tensor);
  const own = place === null ? 1 : largestShare(place);
  return bytesOf(own * (devices - 1) * (place?.shares.has(type) === true ? 1 : 2 / devices), tensor) ?? 0;
}

/** Of the gathers along the shared axis that the op would need instead. */
function bytesOfGather({ tensors }: Edit, inputs: readonly TensorId[], { type, devices }: EqualShare): number {
  const bytes = inputs.map((id) => {
    const place = layoutOf(at(tensors, id));
    if (place?.shares.has(type) !== true) return 0;
    return bytesOf(largestShare(place) * (devices - 1), at(tensors, id)) ?? Infinity;
  });
  return bytes.reduce((sum, each) => sum + each, 0);
}

/** The sum over devices of what each reads in its share of the table. */
function splitRead(edit: Edit, op: IndexSelectOp | GatherOp, share: EqualShare): void {
  const { axis, kind } = op;
  const output = at(edit.tensors, op.output);
  const shape = extentsOf(output);
  const table = parted(edit, at(op.inputs, 0), share);
  const local = localIndices(edit, at(op.inputs, 1), share);
  const rank = extentsOf(at(edit.tensors, local)).length - 1;
  const devices = constant(share.devices);
  const read = (index: TensorId): TensorId => emit(edit, { kind: "Gather", axis: axis + 1 }, [table, index]);
  const slots = [share.type, ...shape.keys()];
  if (kind === "Gather") return reduceOverDevices(edit, { tensor: read(local), slots }, "sum", output);
  // A gather reads along one axis, at indices that have all others.
  const indices = foldProduct(shape.slice(axis, axis + rank));
  const flat = rank === 1 ? local : emit(edit, { kind: "Reshape", extents: [devices, indices] }, [local]);
  const around = shape.toSpliced(axis, rank, indices);
  const wide = emit(edit, { kind: "Broadcast", flags: [false, ...around.map((_, i) => i !== axis)] }, [flat]);
  const made = read(emit(edit, { kind: "Expand", extents: [devices, ...around] }, [wide]));
  const parts = rank === 1 ? made : emit(edit, { kind: "Reshape", extents: [devices, ...shape] }, [made]);
  reduceOverDevices(edit, { tensor: parts, slots }, "sum", output);
}

/** Each device adds what has an index in its share of the tensor. */
function splitTarget(edit: Edit, op: ScatterAddOp, share: EqualShare): void {
  const { axis, inputs, output } = op;
  const [tensor, indices, source] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
  const extents = extentsOf(at(edit.tensors, source));
  const flags = [true, ...extents.map(() => false)];
  const wide = emit(edit, { kind: "Broadcast", flags }, [source]);
  const spec: OpSpec = { kind: "Expand", extents: [constant(share.devices), ...extents] };
  const added = emit(edit, spec, [wide], { share, like: source });
  const operands = [parted(edit, tensor, share), localIndices(edit, indices, share), added];
  // What is past the end of a share is in another one.
  const sets = op.sets === undefined ? {} : ({ sets: "any" } as const);
  const parts = emit(edit, { kind: "ScatterAdd", axis: axis + 1, ...sets }, operands);
  const last = [...extents.keys()].map((each) => each + 1).toSpliced(axis, 0, 0);
  const ordered = axis === 0 ? parts : emit(edit, { kind: "Permute", order: last }, [parts]);
  edit.ops.push({ kind: "Reshape", inputs: [ordered], output });
}

/** The tensor plus the sum over devices of what each adds to zeros. */
function splitSource(edit: Edit, { axis, inputs, output }: ScatterAddOp, share: EqualShare): void {
  const [tensor, indices, source] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
  const target = at(edit.tensors, tensor);
  const { dtype } = target;
  const extents = [constant(share.devices), ...extentsOf(target)];
  const zeros = emit(edit, { kind: "Full", value: "0", extents, dtype }, [], { share, like: tensor });
  const operands = [zeros, parted(edit, indices, share), parted(edit, source, share)];
  const parts = emit(edit, { kind: "ScatterAdd", axis: axis + 1 }, operands);
  const sum = addSerialTensor(edit, target, withoutReductions(target.domain.logical), null, "partial sum");
  reduceOverDevices(edit, { tensor: parts, slots: [share.type, ...extentsOf(target).keys()] }, "sum", sum);
  edit.ops.push({ kind: "Binary", op: "add", inputs: [tensor, sum.id], output });
}

/** The tensor with an axis of the devices in front, and each device's run in place of the axis. */
function parted(edit: Edit, id: TensorId, share: EqualShare): TensorId {
  const { axis, devices, size } = share;
  const extents = extentsOf(at(edit.tensors, id)).toSpliced(axis, 1, constant(devices), constant(size));
  const split = emit(edit, { kind: "Reshape", extents }, [id], { share, like: id, position: axis });
  if (axis === 0) return split;
  const others = [...extents.keys()].filter((each) => each !== axis);
  return emit(edit, { kind: "Permute", order: [axis, ...others] }, [split]);
}

/** For each device, the indices minus its first one. Stretched indices are stretched afterwards, which costs nothing. */
function localIndices(edit: Edit, id: TensorId, share: EqualShare): TensorId {
  const producer = edit.producers.get(id);
  const { dtype, domain } = at(edit.tensors, id);
  if (producer?.kind === "Expand") {
    const spec: OpSpec = { kind: "Expand", extents: [constant(share.devices), ...extentsOf(at(edit.tensors, id))] };
    return emit(edit, spec, [localIndices(edit, at(producer.inputs, 0), share)], { share, like: id });
  }
  const others = withoutReductions(domain.logical).map(() => true);
  const [start, step, devices] = [constant(0), constant(share.size), constant(share.devices)];
  const firsts = emit(edit, { kind: "Iota", start, step, extents: [devices], dtype }, [], {
    share,
    like: id,
    alone: true,
  });
  const column = emit(edit, { kind: "Broadcast", flags: [false, ...others] }, [firsts]);
  const row = emit(edit, { kind: "Broadcast", flags: [true, ...others.map(() => false)] }, [id]);
  return emit(edit, { kind: "Binary", op: "sub" }, [row, column], { share, like: id });
}

/** A layout: an axis of the devices at `position`, 0 by default, besides the axes of `like`. */
interface Devices {
  readonly share: EqualShare;
  readonly like: TensorId;
  /** Whether there are no other axes. */
  readonly alone?: boolean;
  /** The axis of `like` in whose place the devices and each one's run are. */
  readonly position?: number;
}

/** Appends an op. Without a layout, its output gets that of its neighbours. */
function emit(edit: Edit, spec: OpSpec, inputs: readonly TensorId[], placed?: Devices): TensorId {
  const operands = inputs.map((id) => at(edit.tensors, id));
  const { dtype, axes } = inferOutput(spec, operands, call("split-indices"));
  const origin = operands[0] ?? (placed === undefined ? undefined : at(edit.tensors, placed.like));
  invariant(origin !== undefined, "an op without operands is placed", spec);
  const tensor = addSerialTensor(edit, { ...origin, dtype }, axes, null, "parts");
  edit.ops.push(opOf(spec, inputs, tensor.id));
  if (placed !== undefined) place(edit, tensor, placed);
  return tensor.id;
}

function place(edit: Edit, tensor: Tensor, { share, like, alone = false, position = 0 }: Devices): void {
  const { type, devices } = share;
  const { mesh } = share.place;
  const own = withoutReductions(tensor.domain.logical);
  const known = layoutOf(at(edit.tensors, like));
  const isAlike = !alone && known?.mesh.equals(mesh) === true;
  const kept = isAlike ? keepShares(known, (each) => each.type !== type).axes : [];
  const axes = own.map(({ extent }, i) => {
    if (i === position) return wholeAxis(constant(devices), type);
    return kept[i < position ? i : i - 1] ?? wholeAxis(extent);
  });
  moveTo(edit, tensor, own, layout(mesh, axes), null);
}

function extentsOf({ domain }: Tensor): readonly Scalar[] {
  return withoutReductions(domain.logical).map(({ extent }) => extent);
}

/** Layouts of the operands and outputs of ops, and tensors that get a layout. */
import {
  type DIDType,
  type IterDomain,
  type Relation,
  type Tensor,
  withoutReductions,
  didTypes,
  isDID,
  isUnitAxis,
} from "../../ir/domain.ts";
import { layout, type Layout, layoutOf } from "../../ir/layout.ts";
import { type AxisPair, axisMap, partialAxes } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { cutOf, rescaled, wholeAxis } from "../../ir/parts.ts";
import { shardsOf, isWhole, sameShare, type Shard } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { splitLike, addTensor, copyAxes, memoryOrder, movedOrder, type TensorEdit } from "../edit/tensor-edit.ts";
import { type StreamPart, withStream } from "../../ir/stream.ts";
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { isLocalReshape } from "./local-reshape.ts";

/** For each axis of an operand, the output axis that it maps to, or null. */
export function imagesOf(axes: readonly IterDomain[], pairs: readonly AxisPair[]): readonly (IterDomain | null)[] {
  return axes.map(({ id }) => pairs.find((pair) => pair.producer.id === id)?.consumer ?? null);
}

/** The layouts of an op's operand and output, by the output's axes. */
export interface OpLayouts {
  readonly from: Layout;
  readonly to: Layout;
}

/**
 * The layouts of a Set, or of a reduction or squeeze of one axis, whose types are then pending. Null for other ops, and
 * without meshes.
 */
export function layoutsOf(op: Op, tensors: readonly Tensor[]): OpLayouts | null {
  const reduced = op.kind === "Reduction" || op.kind === "Squeeze" ? op.axes : op.kind === "Set" ? [] : null;
  if (reduced === null || reduced.length > 1) return null;
  const producer = at(tensors, at(op.inputs, 0));
  const axes = withoutReductions(producer.domain.logical);
  const kept = axes.filter((_, number) => !reduced.includes(number));
  const dropped = axes.filter((_, number) => reduced.includes(number));
  const from = layoutOf(producer, kept);
  const to = layoutOf(at(tensors, op.output), imagesOf(kept, axisMap(op, tensors)), kept);
  if (from === null || to === null) return null;
  const pending = shardsOf(producer).flatMap(({ axis, type }): readonly DIDType[] =>
    dropped.includes(axis) ? [type] : [],
  );
  return dropped.length > 0 && pending.length === 0 ? null : { from: layout(from.mesh, from.axes, pending), to };
}

/** Stream on another axis, as `part` has it; null if either is missing. */
export function streamOn(part: StreamPart | null, axis: IterDomain | null | undefined): StreamPart | null {
  return part === null || axis === null || axis === undefined ? null : { ...part, axis };
}

/** Gives a tensor of the edit another layout (see `withLayout`). */
export function moveTo(
  edit: TensorEdit,
  tensor: Tensor,
  axes: readonly (IterDomain | null)[],
  to: Layout,
  stream: StreamPart | null,
): void {
  edit.tensors[tensor.id] = withLayout(edit, tensor, axes, to, stream);
}

/**
 * The tensor with another layout. It keeps its logical axes; `axes[i]` is axis number i of the layout. It gets Stream
 * only where the layout leaves the axis whole, or cuts it as the source of Stream does.
 */
export function withLayout(
  edit: TensorEdit,
  tensor: Tensor,
  axes: readonly (IterDomain | null)[],
  to: Layout,
  stream: StreamPart | null,
): Tensor {
  const modelled = tensor.domain.logical.map((axis) => {
    const number = axes.findIndex((candidate) => candidate?.id === axis.id);
    const cut = number < 0 ? wholeAxis(axis.extent) : rescaled(at(to.axes, number), axis.extent);
    const streamed = stream?.axis.id === axis.id ? withStream(cut, stream) : null;
    const plain: IterDomain = axis.parallelType === "Serial" ? axis : { ...axis, parallelType: "Serial" };
    return { axis: plain, model: streamed ?? cut };
  });
  const domain = splitLike(edit, modelled);
  const allocation = movedOrder(tensor.domain, domain.logical);
  return { ...tensor, mesh: to.mesh, domain: { ...domain, allocation } };
}

/** Whether a loop over Stream like `stream` takes a run of what each device has of an axis of the layout. */
export function allowsStream({ axes }: Layout, axis: number, stream: StreamPart): boolean {
  return withStream(at(axes, axis), stream) !== null;
}

/**
 * Appends a tensor like `tensor`, without its reduced axes: same mesh, parallel types, memory and order in memory. The last
 * two say what messages call it.
 */
export function addCopy(edit: TensorEdit, tensor: Tensor, relation: Relation = "copy", { origin } = tensor): Tensor {
  const axes = withoutReductions(tensor.domain.logical);
  const copies = copyAxes(edit, axes, ({ parallelType }) => parallelType);
  const domain = splitLike(
    edit,
    copies.map((axis, i) => ({ axis, model: cutOf(tensor.domain, at(axes, i)) })),
  );
  const order = memoryOrder(tensor.domain)?.flatMap((axis) => {
    const kept = axes.indexOf(axis);
    return kept < 0 ? [] : [at(domain.logical, kept)];
  });
  const like = { dtype: tensor.dtype, ...(origin === undefined ? {} : { origin }) };
  return addTensor(edit, like, { ...domain, allocation: order ?? null }, tensor.mesh, tensor.memory, relation);
}

/*
 * Which ops reshard. A DID type shards the logical axis that has it, or that has a part with it. As in nvFuser, an op
 * reshards if its output and one of its operands have different layouts.
 */

/** The axis of which each device along `type` holds one index, or null. Reduced axes do not count. */
export function shardedAxis(tensor: Tensor, type: DIDType): IterDomain | null {
  return shardsOf(tensor).find((shard) => shard.type === type && isWhole(shard))?.axis ?? null;
}

/** Whether both are on one mesh, or both on none. */
export function sameMesh(a: DeviceMesh | null, b: DeviceMesh | null): boolean {
  return a === null || b === null ? a === b : a.equals(b);
}

/** A tensor without a mesh is only on device 0. */
export function isOnDevice(tensor: Tensor, device: number): boolean {
  return tensor.mesh === null ? device === 0 : tensor.mesh.has(device);
}

/**
 * The DID types along which an operand, `producer`, and the output, with the shards `after`, are sharded differently.
 * `own` are the operand's pairs among `all` pairs of the op.
 *
 * - An axis that this operand lacks (N of a matmul's first) or only broadcasts makes no difference: every device holds
 *   what it needs. A broadcast axis that is itself sharded does: only one device holds its element.
 * - Nor does the whole one element of an axis of a binary op (`stretches`): a part of the output has it or is empty.
 * - An axis that no operand has does: the op makes it whole (a reshape, a slice that cuts).
 * - An axis of `partial` results takes the cut of the operand's reduced axis.
 */
function changedDIDTypes(
  producer: Tensor,
  after: readonly Shard[],
  own: readonly AxisPair[],
  all: readonly AxisPair[],
  partial: readonly IterDomain[],
  stretches: boolean,
): readonly DIDType[] {
  const before = shardsOf(producer);
  if (before.length === 0 && after.length === 0) return [];
  return didTypes.filter((type) => {
    const from = before.find((shard) => shard.type === type) ?? null;
    const to = after.find((shard) => shard.type === type) ?? null;
    if (to !== null && partial.some(({ id }) => id === to.axis.id)) {
      const isReduced = (id: IterDomain["id"]): boolean =>
        own.some((pair) => pair.producer.id === id && pair.consumer.iterType === "reduction");
      return from === null ? own.some(({ producer: { id } }) => isReduced(id)) : !isReduced(from.axis.id);
    }
    if (from !== null && to !== null) {
      const isImage = own.some(
        (pair) => pair.producer.id === from.axis.id && pair.consumer.id === to.axis.id && !pair.broadcast,
      );
      return !isImage || !sameShare(from, to);
    }
    if (from !== null) return true;
    if (to === null) return false;
    return (
      own.some(
        (pair) =>
          pair.consumer.id === to.axis.id &&
          !pair.broadcast &&
          !(stretches && to.cut.parts.length > 1 && isUnitAxis(pair.producer)),
      ) || !all.some((pair) => pair.consumer.id === to.axis.id)
    );
  });
}

/** The sharded axes of the output that no operand has. An op of operands can only make them whole. */
export function madeShardedAxes(op: Op, tensors: readonly Tensor[]): readonly IterDomain[] {
  const output = at(tensors, op.output);
  if (!isSharded(output) || op.inputs.length === 0 || isLocalReshape(op, tensors)) return [];
  const known = [...axisMap(op, tensors).map(({ consumer }) => consumer), ...partialAxes(op, tensors)];
  return shardsOf(output).flatMap(({ axis }) => (known.some(({ id }) => id === axis.id) ? [] : [axis]));
}

export interface OperandChange {
  readonly operand: number;
  readonly producer: Tensor;
  readonly meshDiffers: boolean;
  readonly types: readonly DIDType[];
}

/** The operands of `op` whose layout differs from its output's; empty for an op that does not reshard. */
export function reshardedOperands(op: Op, tensors: readonly Tensor[]): readonly OperandChange[] {
  const known = knownChanges.get(op);
  const isKnown = known?.tensors.every((tensor, i) => tensor === tensors[op.inputs[i] ?? op.output]) === true;
  if (known !== undefined && isKnown) return known.changes;
  const changes = operandChanges(op, tensors);
  knownChanges.set(op, { tensors: [...op.inputs, op.output].map((id) => at(tensors, id)), changes });
  return changes;
}

/** By op, with the tensors on which they depend: most passes ask. */
const knownChanges = new WeakMap<
  Op,
  { readonly tensors: readonly Tensor[]; readonly changes: readonly OperandChange[] }
>();

function operandChanges(op: Op, tensors: readonly Tensor[]): readonly OperandChange[] {
  if ((op.kind === "Set" && op.local === true) || isLocalReshape(op, tensors)) return [];
  const consumer = at(tensors, op.output);
  // Most ops touch no sharded tensor and need no axis map.
  let known: { readonly pairs: readonly AxisPair[]; readonly partial: readonly IterDomain[] } | null = null;
  const after = shardsOf(consumer);
  const changes: OperandChange[] = [];
  op.inputs.forEach((input, operand) => {
    const producer = at(tensors, input);
    const meshDiffers = !sameMesh(producer.mesh, consumer.mesh) && !isScalarOn(producer, consumer.mesh);
    if (!meshDiffers && !isSharded(producer) && !isSharded(consumer)) return;
    known ??= { pairs: axisMap(op, tensors), partial: partialAxes(op, tensors) };
    const { pairs, partial } = known;
    const own = pairs.filter((pair) => pair.operand === operand);
    const stretches = op.inputs.length > 1 && (op.kind === "Binary" || op.kind === "Ternary");
    const types = changedDIDTypes(producer, after, own, pairs, partial, stretches);
    if (meshDiffers || types.length > 0) changes.push({ operand, producer, meshDiffers, types });
  });
  return changes;
}

/** Whether a tensor without axes, or of broadcast axes alone, is on every device of the mesh (place-scalars). */
function isScalarOn({ domain, mesh }: Tensor, devices: DeviceMesh | null): boolean {
  if (mesh === null || devices === null || domain.loop.some(({ iterType }) => iterType === "iteration")) return false;
  return devices.devices.every((device) => mesh.has(device));
}

function isSharded(tensor: Tensor): boolean {
  return tensor.domain.loop.some((axis) => isDID(axis.parallelType));
}

/** Whether devices share the contracted axis of an operand of a matmul or linear with the given pairs of axes. */
export function sharesContracted({ inputs }: Op, pairs: readonly AxisPair[], tensors: readonly Tensor[]): boolean {
  return pairs.some(
    ({ operand, producer, consumer }) =>
      consumer.iterType === "reduction" &&
      shardsOf(at(tensors, at(inputs, operand))).some(({ axis }) => axis.id === producer.id),
  );
}

/** Whether the layout of an operand of `op` differs from its output's. */
export function isResharding(op: Op, tensors: readonly Tensor[]): boolean {
  return reshardedOperands(op, tensors).length > 0;
}

/**
 * Whether communications can implement the op: a Set, or a reduction or squeeze of one axis of which each device has
 * one index.
 */
export function isCommunicable(op: Op, tensors: readonly Tensor[]): boolean {
  switch (op.kind) {
    case "Set":
      return true;
    case "Reduction":
    case "Squeeze": {
      const operand = at(tensors, at(op.inputs, 0));
      const reduced = op.axes.map((axis) => at(withoutReductions(operand.domain.logical), axis).id);
      return reduced.length === 1 && shardsOf(operand).some((shard) => shard.axis.id === reduced[0] && isWhole(shard));
    }
    default:
      return false;
  }
}

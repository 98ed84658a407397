/** Layouts of the operands and outputs of ops, and tensors that get a layout. */
import { type DIDType, type IterDomain, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { layout, type Layout, layoutOf } from "../../ir/layout.ts";
import { type AxisPair, axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { cutOf, rescaled, wholeAxis } from "../../ir/parts.ts";
import { shardsOf } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { splitLike } from "../edit/split-axes.ts";
import { addTensor, copyAxes, memoryOrder, movedOrder, type TensorEdit } from "../edit/tensor-edit.ts";
import { type StreamPart, withStream } from "../../ir/stream.ts";

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

/** Appends a tensor like `tensor`, without its reduced axes: same mesh, parallel types, memory and order in memory. */
export function addCopy(edit: TensorEdit, tensor: Tensor): Tensor {
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
  return addTensor(edit, tensor, { ...domain, allocation: order ?? null }, tensor.mesh, tensor.memory);
}

/**
 * Lets an op work on what each device has: operands that lie otherwise than the output are moved before the op. An op of
 * one operand is computed where that lies, and its result is moved:
 *
 *   T2[Stream, _] = matmul(T0[_, DIDx], T1)   ->   T3[Stream, _] = set(T0); T2[Stream, _] = matmul(T3, T1)
 *   T1[_, _] = relu(T0[DIDx, _])              ->   T1[DIDx, _] = relu(T0); T2[_, _] = set(T1)
 *
 * So is one of several operands whose result is cheaper to move (weigh-ops.ts). With the option `insertReshardingAfter`,
 * the first operand that lies otherwise decides where any op is computed. The further outputs of an op are computed
 * where the first is. A sharded axis that no operand has (such as the result of a reshape) is whole in the op's output,
 * and then cut.
 *
 * Source: nvFuser's insertReshardingSetsBefore and insertReshardingSetsAfter.
 */
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { keepShares, layout, type Layout, layoutOf, sameLayout } from "../../ir/layout.ts";
import { axisMap, type AxisPair, partialAxes, siblingAxes, splitsDivide } from "../../ir/ops/axis-map.ts";
import type { Op, SetOp } from "../../ir/ops/op.ts";
import { shardsOf } from "../../ir/shards.ts";
import { type StreamPart, streamPart } from "../../ir/stream.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { TensorEdit } from "../edit/tensor-edit.ts";
import {
  addCopy,
  allowsStream,
  imagesOf,
  moveTo,
  streamOn,
  madeShardedAxes,
  type OperandChange,
  reshardedOperands,
} from "./layouts.ts";
import { maybeSource, movedTo } from "./move.ts";
import { read, reading, type Routing } from "./routing.ts";

/** Adds the op, with what moves before it; gives the Sets that move its results. */
export function placeOp(routing: Routing, op: Op): readonly SetOp[] {
  const { tensors, options, ops, position } = routing;
  const changes = reshardedOperands(op, tensors);
  const followed = routing.follows.get(op.output);
  const mayFollow = followed !== undefined || options.insertReshardingAfter || op.inputs.length === 1;
  const [first] = followed === undefined ? changes : changes.filter(({ operand }) => operand === followed);
  const reference = mayFollow && op.further === undefined ? referenceOperand(op, first, tensors) : null;
  const made = reference === null ? madeShardedAxes(op, tensors) : [];
  const copies: (readonly [TensorId, TensorId])[] = [];
  if (reference !== null || made.length > 0) {
    const output = at(tensors, op.output);
    const copy = addCopy(routing, output);
    if (reference === null) makeWhole(routing, output, made);
    else shardLikeOperand(routing, op, output, reference);
    copies.push([output.id, copy.id]);
  }
  copies.unshift(...movedOutputs(routing, op));
  // What is moved may be the operand of what is now computed where that lies.
  if (copies.length > 0 && maybeSource(routing, op)) routing.waiting.set(op.output, { op, ops, position });
  else ops.push(withMovedOperands(routing, op, copies.length > 0 ? reshardedOperands(op, tensors) : changes));
  return copies.map(([id, copy]) => {
    if (routing.readOnce.has(id)) routing.readOnce.add(copy);
    routing.ends.set(id, copy);
    return { kind: "Set", inputs: [id], output: copy };
  });
}

function withMovedOperands(routing: Routing, op: Op, changes: readonly OperandChange[]): Op {
  const { tensors } = routing;
  const output = at(tensors, op.output);
  const moved = reading(op, (id, operand) => {
    const change = changes.find((each) => each.operand === operand);
    if (change === undefined) return read(routing, id);
    const { place, stream } = placeOfOperand(op, change, tensors);
    const part = streamPart(output);
    const streamed = part === null || stream === null ? null : { number: stream, part };
    // Peers write into the Set's output instead of the op's.
    const memory = output.memory === "symmetric" ? "symmetric" : "global";
    return movedTo(routing, id, { place, stream: streamed, memory });
  });
  if (changes.length > 0 && output.memory === "symmetric") tensors[op.output] = { ...output, memory: "global" };
  return moved;
}

/**
 * The layout of an operand with which each device works only on its own data: cut and streamed along the axes that
 * it shares with the output, and cut along a reduced axis if the op leaves partial results.
 */
function placeOfOperand(
  op: Op,
  { operand, producer }: OperandChange,
  tensors: readonly Tensor[],
): { readonly place: Layout; readonly stream: number | null } {
  const output = at(tensors, op.output);
  // The operand loses its own splits, so the output's alone must divide a reshaped axis.
  const own = axisMap(op, tensors).filter(
    ({ operand: of, broadcast, outermost, producer: from, consumer }) =>
      of === operand && !broadcast && (!outermost || splitsDivide(output.domain, consumer, from)),
  );
  const axes = withoutReductions(producer.domain.logical);
  const images = imagesOf(
    axes,
    own.filter(({ consumer }) => consumer.iterType !== "reduction"),
  );
  const wanted = layoutOf(output, images, axes);
  const given = layoutOf(producer);
  invariant(wanted !== null, "a resharding op has a mesh", { tensor: output.id });
  const partial = partialAxes(op, tensors).map(({ parallelType }) => parallelType);
  const kept = given === null ? null : keepShares(given, ({ type }) => partial.includes(type));
  const summed = new Set(
    own.flatMap(({ producer: from, consumer: to }) => (to.iterType === "reduction" ? [from.id] : [])),
  );
  // An axis that the op reduces chunk by chunk must arrive chunk by chunk.
  const streamed = streamPart(output)?.axis.id;
  const chunked = own.find(({ consumer }) => consumer.id === streamed)?.producer.id;
  const stream = axes.findIndex(({ id }) => id === chunked);
  return {
    place: layout(
      wanted.mesh,
      wanted.axes.map((cut, axis) => (summed.has(at(axes, axis).id) ? (kept?.axes[axis] ?? cut) : cut)),
    ),
    stream: stream < 0 ? null : stream,
  };
}

/**
 * An operand with another layout than the output, if the op can be computed where it lies: all its sharded axes must
 * survive the op, and none of them may be broadcast.
 */
export function referenceOperand(
  op: Op,
  reference: OperandChange | undefined,
  tensors: readonly Tensor[],
): OperandChange | null {
  if (reference === undefined || partialAxes(op, tensors).length > 0) return null;
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === reference.operand && !pair.broadcast);
  // The output loses its own splits, so the operand's alone must divide a reshaped axis.
  const { domain } = reference.producer;
  const survives = (axis: IterDomain): boolean =>
    pairs.some(
      ({ producer, consumer, outermost }) =>
        producer.id === axis.id &&
        consumer.iterType !== "reduction" &&
        (!outermost || splitsDivide(domain, producer, consumer)),
    );
  return shardsOf(reference.producer).every(({ axis }) => survives(axis)) ? reference : null;
}

/**
 * Shards the output like the operand. If a DID type takes the axis with Stream, Stream moves to the axis that has it in
 * an operand.
 */
function shardLikeOperand(edit: TensorEdit, op: Op, output: Tensor, { operand, producer }: OperandChange): void {
  const map = axisMap(op, edit.tensors).filter((pair) => !pair.broadcast);
  const pairs = map.filter((pair) => pair.operand === operand);
  const axes = withoutReductions(producer.domain.logical);
  const images = imagesOf(axes, pairs);
  const place = layoutOf(producer);
  invariant(place !== null, "a resharding op has a mesh", { tensor: producer.id });
  const own = streamPart(output);
  const number = own === null ? -1 : images.findIndex((image) => image?.id === own.axis.id);
  const isDisplaced = own !== null && number >= 0 && !allowsStream(place, number, own);
  const memory = output.memory === "symmetric" ? "global" : output.memory;
  const stream = isDisplaced ? operandsStream(edit, op, map) : own;
  moveTo(edit, { ...output, memory }, images, place, stream);
}

/** The Stream part of the first pair's operand that has one there, on the output's axis. */
function operandsStream(edit: TensorEdit, op: Op, pairs: readonly AxisPair[]): StreamPart | null {
  for (const { operand, producer, consumer } of pairs) {
    const from = at(edit.tensors, at(op.inputs, operand));
    const part = streamPart(from);
    if (part?.axis.id === producer.id && consumer.iterType !== "reduction") return streamOn(part, consumer);
  }
  return null;
}

/** The further outputs that are not placed as the first one: places them so, and gives copies with their layouts. */
function movedOutputs(edit: TensorEdit, op: Op): readonly (readonly [TensorId, TensorId])[] {
  const first = at(edit.tensors, op.output);
  const axes = withoutReductions(first.domain.logical);
  const whole = layoutOf(first);
  if (op.further === undefined || whole === null) return [];
  return op.further.flatMap((id, i): readonly (readonly [TensorId, TensorId])[] => {
    const siblings = siblingAxes(op, edit.tensors, i + 1);
    const images = axes.map((axis) => siblings.find((each) => each.first.id === axis.id)?.further ?? null);
    const tensor = at(edit.tensors, id);
    const given = layoutOf(tensor, images, axes);
    const wanted = keepShares(whole, ({ axis }) => images[axis] !== null);
    if (given !== null && sameLayout(given, wanted) && layoutOf(tensor)?.shares.size === wanted.shares.size) return [];
    const copy = addCopy(edit, tensor);
    const stream = streamPart(first);
    const streamed = siblings.find((each) => each.first.id === stream?.axis.id)?.further;
    moveTo(edit, tensor, images, wanted, streamOn(stream, streamed));
    return [[id, copy.id]];
  });
}

/** Makes the axes `made` whole, as the op computes them. */
function makeWhole(edit: TensorEdit, output: Tensor, made: readonly IterDomain[]): void {
  const axes = withoutReductions(output.domain.logical);
  const place = layoutOf(output);
  invariant(place !== null, "a sharded tensor has a mesh", { tensor: output.id });
  const ids = new Set(made.map(({ id }) => id));
  moveTo(
    edit,
    output,
    axes,
    keepShares(place, ({ axis }) => !ids.has(at(axes, axis).id)),
    streamPart(output),
  );
}

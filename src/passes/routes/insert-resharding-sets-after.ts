/**
 * Puts a Set after each op that reshards and has one operand. The op is computed with the operand's layout, and the
 * Set moves the result. With the option `insertReshardingAfter` this applies to all ops; the first operand with another
 * layout decides.
 *
 *   T1[_, _] = relu(T0[DIDx, _])
 * becomes
 *   T1[DIDx, _] = relu(T0)
 *   T2[_, _] = set(T1)
 *
 * The further outputs of an op are computed where the first is, and a Set moves those that the user wants elsewhere. A
 * sharded axis that no operand has (such as the result of a reshape) is whole in the op's output, and the Set shards
 * it. Source: nvFuser's insertReshardingSetsAfter.
 */
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { keepShares, layoutOf, sameLayout } from "../../ir/layout.ts";
import { type AxisPair, axisMap, partialAxes, siblingAxes, splitsDivide } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { shardsOf } from "../../ir/shards.ts";
import { at, invariant } from "../../support/invariant.ts";
import { editFusion, type TensorEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { type StreamPart, streamPart } from "../../ir/stream.ts";
import { addCopy, allowsStream, imagesOf, moveTo, streamOn } from "./layouts.ts";
import { isCommunicable, madeShardedAxes, type OperandChange, reshardedOperands } from "./sharding.ts";

export const insertReshardingSetsAfter: Pass<"checked", "checked"> = {
  name: "insert-resharding-sets-after",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    const edit = editFusion(fusion);
    const { tensors, ops } = edit;
    const replaced = new Map<TensorId, TensorId>();
    // In reverse order: an op is placed before the ops that produce its operands.
    for (const op of fusion.ops.toReversed()) {
      const mayFollow = (options.insertReshardingAfter || op.inputs.length === 1) && op.further === undefined;
      const reference = mayFollow ? referenceOperand(op, tensors) : null;
      const made = reference === null ? madeShardedAxes(op, tensors) : [];
      if (reference !== null || made.length > 0) {
        const output = at(tensors, op.output);
        const copy = addCopy(edit, output);
        if (reference === null) makeWhole(edit, output, made);
        else shardLikeOperand(edit, op, output, reference);
        replaced.set(op.output, copy.id);
        ops.push({ kind: "Set", inputs: [op.output], output: copy.id });
      }
      for (const [id, copy] of movedOutputs(edit, op)) {
        replaced.set(id, copy);
        ops.push({ kind: "Set", inputs: [id], output: copy });
      }
      ops.push(op);
    }
    if (replaced.size === 0) return fusion;
    const rename = (id: TensorId): TensorId => replaced.get(id) ?? id;
    const renamed = ops.toReversed().map((op) => {
      const isInsertedSet = op.kind === "Set" && replaced.get(at(op.inputs, 0)) === op.output;
      return isInsertedSet ? op : { ...op, inputs: op.inputs.map(rename) };
    });
    return { ...fusion, ...edit, ops: renamed, outputs: fusion.outputs.map(rename) };
  },
};

/**
 * The first operand with another layout, if the op can be computed with it: all its sharded axes must survive the
 * op, and none of them may be broadcast.
 */
function referenceOperand(op: Op, tensors: readonly Tensor[]): OperandChange | null {
  if (isCommunicable(op, tensors) || partialAxes(op, tensors).length > 0) return null;
  const reference = reshardedOperands(op, tensors)[0];
  if (reference === undefined) return null;
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

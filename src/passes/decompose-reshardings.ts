/**
 * Puts every change of sharding into an op of its own that a communication can carry.
 *
 *   T2[Stream, _, _, _] = matmul(T0[_, DIDx, _, _], T1)
 * becomes
 *   T3[Stream, _, _, _] = set(T0[_, DIDx, _, _])
 *   T2[Stream, _, _, _] = matmul(T3, T1)
 *
 * An op with one input, or any with `insertReshardingAfter`, keeps its input's sharding and is followed by the Set.
 * Source: nvFuser's DecomposeReshardings (insertReshardingSetsAfter, insertReshardingSetsBefore).
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { axisMap } from "../ir/axis-map.ts";
import {
  isDID,
  type IterDomain,
  type IterDomainId,
  type ParallelType,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { Op } from "../ir/ops.ts";
import { at } from "../support/invariant.ts";
import { cloneAxes, newTensor, reparallelize } from "./fusion-edit.ts";
import { opPlace } from "./op-text.ts";
import type { Pass } from "./pass.ts";
import { isResharding, madeShardedAxes, type OperandChange, reshardedOperands } from "./sharding.ts";

export const decomposeReshardings: Pass<"fusion", "fusion"> = {
  name: "decompose-reshardings",
  from: "fusion",
  to: "fusion",
  run: (fusion, { options }) => {
    const after = insertSetsAfter(fusion, options.insertReshardingAfter);
    const before = insertSetsBefore(after);
    for (const op of before.ops) requireOneChange(op, before.tensors);
    return before;
  },
};

/** Whether one communication carries the op: a Set, or a reduction (squeeze) of exactly one axis, which is sharded. */
export function isCommunicable(op: Op, tensors: readonly Tensor[]): boolean {
  switch (op.kind) {
    case "Set":
      return true;
    case "Reduction":
    case "Squeeze": {
      const axes = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical);
      return op.axes.length === 1 && isDID(at(axes, at(op.axes, 0)).parallelType);
    }
    default:
      return false;
  }
}

function insertSetsAfter(fusion: FusionData, always: boolean): FusionData {
  const tensors = [...fusion.tensors];
  const ops: Op[] = [];
  const replaced = new Map<TensorId, TensorId>();
  let iterDomainCount = fusion.iterDomainCount;
  // Reverse order: a consumer is settled before the producer whose output it may have had renamed.
  for (const op of fusion.ops.toReversed()) {
    const reference = always || op.inputs.length === 1 ? referenceOperand(op, tensors) : null;
    const made = reference === null ? madeShardedAxes(op, tensors) : [];
    if (reference !== null || made.length > 0) {
      const output = at(tensors, op.output);
      const axes = withoutReductions(output.domain.logical);
      const copy = newTensor(
        tensors.length,
        output,
        cloneAxes(axes, iterDomainCount, (axis) => axis.parallelType),
        output.mesh,
      );
      iterDomainCount += axes.length;
      tensors.push({
        ...copy,
        memory: output.memory,
        domain: { ...copy.domain, allocation: allocationLike(output, copy) },
      });
      tensors[op.output] =
        reference === null ? unsharded(output, made) : shardLikeInput(op, output, reference, tensors);
      replaced.set(op.output, copy.id);
      ops.push({ kind: "Set", inputs: [op.output], output: copy.id });
    }
    ops.push(op);
  }
  if (replaced.size === 0) return fusion;
  const rename = (id: TensorId): TensorId => replaced.get(id) ?? id;
  const renamed = ops.reverse().map((op) => {
    const isInsertedSet = op.kind === "Set" && replaced.get(at(op.inputs, 0)) === op.output;
    return isInsertedSet ? op : { ...op, inputs: op.inputs.map(rename) };
  });
  return { ...fusion, tensors, ops: renamed, outputs: fusion.outputs.map(rename), iterDomainCount };
}

/** The order in memory of `output`, on the axes of its copy: the caller reads the copy as it would have read the output. */
function allocationLike(output: Tensor, copy: Tensor): readonly IterDomain[] | null {
  const axes = withoutReductions(output.domain.logical);
  const order = withoutReductions(output.domain.allocation ?? []).map((axis) =>
    axes.findIndex((candidate) => candidate.id === axis.id),
  );
  // An order of split axes stays with the output, where the recorder refuses it.
  if (order.length === 0 || order.includes(-1)) return null;
  return order.map((position) => at(copy.domain.logical, position));
}

/** The first input that lies otherwise, if the op can be computed as that input lies: no sharded axis is lost. */
function referenceOperand(op: Op, tensors: readonly Tensor[]): OperandChange | null {
  if (isCommunicable(op, tensors)) return null;
  const reference = reshardedOperands(op, tensors)[0];
  if (reference === undefined) return null;
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === reference.operand);
  const survives = (axis: IterDomain): boolean =>
    pairs.some((pair) => pair.producer.id === axis.id && pair.consumer.iterType !== "reduction");
  const sharded = withoutReductions(reference.producer.domain.logical).filter((axis) => isDID(axis.parallelType));
  return sharded.every(survives) ? reference : null;
}

/** DID types are the input's. Where one takes the axis of the output's Stream, Stream moves to the axis that has it in the input. */
function shardLikeInput(op: Op, output: Tensor, reference: OperandChange, tensors: readonly Tensor[]): Tensor {
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === reference.operand);
  const types = new Map<IterDomainId, ParallelType>(
    pairs.flatMap(({ producer, consumer }) =>
      isDID(producer.parallelType) ? [[consumer.id, producer.parallelType]] : [],
    ),
  );
  const streamed = pairs.find(
    ({ producer, consumer }) => producer.parallelType === "Stream" && consumer.iterType !== "reduction",
  );
  const displaced = output.domain.loop.some((axis) => axis.parallelType === "Stream" && types.has(axis.id));
  if (streamed !== undefined && displaced) types.set(streamed.consumer.id, "Stream");
  const parallel = (axis: IterDomain): ParallelType =>
    types.get(axis.id) ?? (isDID(axis.parallelType) ? "Serial" : axis.parallelType);
  const memory = output.memory === "symmetric" ? "global" : output.memory;
  return { ...reparallelize(output, parallel, reference.producer.mesh), memory };
}

/** The output as the op can make it: whole along axes that no operand has, for the Set behind it to shard. */
function unsharded(output: Tensor, axes: readonly IterDomain[]): Tensor {
  const ids = new Set(axes.map((axis) => axis.id));
  return reparallelize(output, (axis) => (ids.has(axis.id) ? "Serial" : axis.parallelType), output.mesh);
}

function insertSetsBefore(fusion: FusionData): FusionData {
  const tensors = [...fusion.tensors];
  const ops: Op[] = [];
  let iterDomainCount = fusion.iterDomainCount;
  for (const op of fusion.ops) {
    const changes = isCommunicable(op, tensors) ? [] : reshardedOperands(op, tensors);
    if (changes.length === 0) {
      ops.push(op);
      continue;
    }
    const inputs = [...op.inputs];
    const pairs = axisMap(op, tensors);
    const output = at(tensors, op.output);
    for (const { operand, producer } of changes) {
      const types = new Map(
        pairs
          .filter((pair) => pair.operand === operand && !pair.broadcast && pair.consumer.iterType !== "reduction")
          .map((pair) => [pair.producer.id, pair.consumer.parallelType]),
      );
      const axes = withoutReductions(producer.domain.logical);
      const copied = cloneAxes(axes, iterDomainCount, (axis) => types.get(axis.id) ?? "Serial");
      iterDomainCount += axes.length;
      const copy = newTensor(tensors.length, producer, copied, output.mesh);
      tensors.push({ ...copy, memory: output.memory === "symmetric" ? "symmetric" : copy.memory });
      ops.push({ kind: "Set", inputs: [producer.id], output: copy.id });
      inputs[operand] = copy.id;
    }
    if (output.memory === "symmetric") tensors[op.output] = { ...output, memory: "global" };
    ops.push({ ...op, inputs });
  }
  return ops.length === fusion.ops.length ? fusion : { ...fusion, tensors, ops, iterDomainCount };
}

function requireOneChange(op: Op, tensors: readonly Tensor[]): void {
  if (!isResharding(op, tensors)) return;
  const types = [...new Set(reshardedOperands(op, tensors).flatMap((change) => change.types))];
  if (types.length <= 1) return;
  fail({
    code: "resharding-unsupported",
    message: "a tensor changes its sharding along two DID types at once",
    place: opPlace(op),
    found: `changes along ${types.join(" and ")}`,
    expected: "a change along one DID type per op",
    help: `put set() between the two tensors and give it the sharding after the first change`,
  });
}

/**
 * Puts a Set in front of or behind every op that both computes and reshards.
 *
 *   T2[Stream, _, _, _] = matmul(T0[_, DIDx, _, _], T1)
 * becomes
 *   T3[Stream, _, _, _] = set(T0[_, DIDx, _, _])
 *   T2[Stream, _, _, _] = matmul(T3, T1)
 *
 * Source: nvFuser's insertReshardingSetsAfter and insertReshardingSetsBefore.
 */
import { axisMap, partialAxes } from "../../ir/ops/axis-map.ts";
import { axisShards, isWholeAxis } from "../../ir/axis-shards.ts";
import { type IterDomain, type IterDomainId, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";
import { cloneAxes, newTensor } from "../edit/fusion-edit.ts";
import { copyOf, type Placement, placed, placementOf } from "./placement.ts";
import { madeShardedAxes, type OperandChange, reshardedOperands } from "./sharding.ts";

/** Whether communications alone carry the op: a Set, or a reduction (squeeze) of one axis, of which every device has one index. */
export function isCommunicable(op: Op, tensors: readonly Tensor[]): boolean {
  switch (op.kind) {
    case "Set":
      return true;
    case "Reduction":
    case "Squeeze": {
      const operand = at(tensors, at(op.inputs, 0));
      const reduced = op.axes.map((axis) => at(withoutReductions(operand.domain.logical), axis).id);
      return (
        reduced.length === 1 && axisShards(operand).some((shard) => shard.axis.id === reduced[0] && isWholeAxis(shard))
      );
    }
    default:
      return false;
  }
}

/**
 * The op is computed as its first differing operand lies, and a Set brings the result to its place: of ops with one operand, or of all
 * with `always`. A Set behind also shards what the op makes whole.
 */
export function insertSetsAfter(fusion: FusionData, always: boolean): FusionData {
  const tensors = [...fusion.tensors];
  const ops: Op[] = [];
  const replaced = new Map<TensorId, TensorId>();
  let { iterDomainCount } = fusion;
  // Reverse order: a consumer is settled before the producer whose output it may have had renamed.
  for (const op of fusion.ops.toReversed()) {
    const reference = always || op.inputs.length === 1 ? referenceOperand(op, tensors) : null;
    const made = reference === null ? madeShardedAxes(op, tensors) : [];
    if (reference !== null || made.length > 0) {
      const output = at(tensors, op.output);
      const copy = copyOf(output, tensors.length, iterDomainCount);
      tensors.push(copy.tensor);
      iterDomainCount += copy.count;
      const computed =
        reference === null
          ? unsharded(output, made, iterDomainCount)
          : shardLikeInput(op, output, reference, tensors, iterDomainCount);
      tensors[op.output] = computed.tensor;
      iterDomainCount += computed.count;
      replaced.set(op.output, copy.tensor.id);
      ops.push({ kind: "Set", inputs: [op.output], output: copy.tensor.id });
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

/** The first input that lies otherwise, if the op can be computed as that input lies: no sharded axis is lost. */
function referenceOperand(op: Op, tensors: readonly Tensor[]): OperandChange | null {
  if (isCommunicable(op, tensors) || partialAxes(op, tensors).length > 0) return null;
  const reference = reshardedOperands(op, tensors)[0];
  if (reference === undefined) return null;
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === reference.operand);
  const survives = (axis: IterDomain): boolean =>
    pairs.some((pair) => pair.producer.id === axis.id && pair.consumer.iterType !== "reduction");
  return axisShards(reference.producer).every(({ axis }) => survives(axis)) ? reference : null;
}

interface Placed {
  readonly tensor: Tensor;
  readonly count: number;
}

/** DID types are the input's. Where one takes the axis of the output's Stream, Stream moves to the axis that has it in the input. */
function shardLikeInput(
  op: Op,
  output: Tensor,
  { operand, producer }: OperandChange,
  tensors: readonly Tensor[],
  firstId: number,
): Placed {
  const pairs = axisMap(op, tensors).filter((pair) => pair.operand === operand);
  const axes = withoutReductions(producer.domain.logical);
  const images = axes.map(({ id }) => pairs.find((pair) => pair.producer.id === id)?.consumer ?? null);
  const placement = placementOf(producer, axes);
  invariant(placement !== null, "what reshards has a mesh", { tensor: producer.id });
  const own = output.domain.logical.find(({ parallelType }) => parallelType === "Stream")?.id ?? null;
  const isDisplaced = own !== null && [...placement.cuts.values()].some(({ axis }) => images[axis]?.id === own);
  const streamed = pairs.find(
    (pair) => pair.producer.parallelType === "Stream" && pair.consumer.iterType !== "reduction",
  );
  const stream = isDisplaced ? (streamed?.consumer.id ?? null) : own;
  return placed(
    output.memory === "symmetric" ? { ...output, memory: "global" } : output,
    images,
    placement,
    stream,
    firstId,
  );
}

/** The output as the op can make it: whole along axes that no operand has, for the Set behind it to shard. */
function unsharded(output: Tensor, made: readonly IterDomain[], firstId: number): Placed {
  const axes = withoutReductions(output.domain.logical);
  const placement = placementOf(output, axes);
  invariant(placement !== null, "what is sharded has a mesh", { tensor: output.id });
  const ids = new Set(made.map(({ id }) => id));
  const cuts = [...placement.cuts].filter(([, { axis }]) => !ids.has(at(axes, axis).id));
  return placed(output, axes, { mesh: placement.mesh, cuts: new Map(cuts) }, streamOf(output), firstId);
}

function streamOf({ domain }: Tensor): IterDomainId | null {
  return domain.logical.find(({ parallelType }) => parallelType === "Stream")?.id ?? null;
}

/** Every operand that lies otherwise than the op's output gets a Set of its own that lies as the output does. */
export function insertSetsBefore(fusion: FusionData): FusionData {
  const tensors = [...fusion.tensors];
  const ops: Op[] = [];
  let { iterDomainCount } = fusion;
  for (const op of fusion.ops) {
    const changes = isCommunicable(op, tensors) ? [] : reshardedOperands(op, tensors);
    if (changes.length === 0) {
      ops.push(op);
      continue;
    }
    const inputs = [...op.inputs];
    const output = at(tensors, op.output);
    for (const change of changes) {
      const { operand, producer } = change;
      const axes = cloneAxes(withoutReductions(producer.domain.logical), iterDomainCount, () => "Serial");
      iterDomainCount += axes.length;
      const { placement, stream } = placeOfOperand(op, change, tensors);
      const plain = newTensor(tensors.length, producer, axes, placement.mesh);
      const streamed = stream === null ? null : at(axes, stream).id;
      const copy = placed(plain, axes, placement, streamed, iterDomainCount);
      iterDomainCount += copy.count;
      tensors.push({ ...copy.tensor, memory: output.memory === "symmetric" ? "symmetric" : plain.memory });
      ops.push({ kind: "Set", inputs: [producer.id], output: copy.tensor.id });
      inputs[operand] = copy.tensor.id;
    }
    if (output.memory === "symmetric") tensors[op.output] = { ...output, memory: "global" };
    ops.push({ ...op, inputs });
  }
  return ops.length === fusion.ops.length ? fusion : { ...fusion, tensors, ops, iterDomainCount };
}

/**
 * Where an operand must lie for the op to work on what each device has: cut and streamed along the axes that it shares with the output,
 * and along a reduced axis where the op leaves the results apart.
 */
function placeOfOperand(
  op: Op,
  { operand, producer }: OperandChange,
  tensors: readonly Tensor[],
): { readonly placement: Placement; readonly stream: number | null } {
  const output = at(tensors, op.output);
  const own = axisMap(op, tensors).filter((pair) => pair.operand === operand && !pair.broadcast);
  const pairs = own.filter(({ consumer }) => consumer.iterType !== "reduction");
  const axes = withoutReductions(producer.domain.logical);
  const images = axes.map(({ id }) => pairs.find((pair) => pair.producer.id === id)?.consumer ?? null);
  const wanted = placementOf(output, images);
  const given = placementOf(producer, axes);
  invariant(wanted !== null, "what reshards has a mesh", { tensor: output.id });
  const partial = partialAxes(op, tensors).map(({ parallelType }) => parallelType);
  const kept = [...(given?.cuts ?? [])].filter(([type, { axis }]) => partial.includes(type) && images[axis] === null);
  // An axis that the op reduces chunk by chunk arrives chunk by chunk.
  const chunked = own.find(({ consumer }) => consumer.parallelType === "Stream")?.producer.id;
  const stream = axes.findIndex(({ id }) => id === chunked);
  return {
    placement: { mesh: wanted.mesh, cuts: new Map([...wanted.cuts, ...kept]) },
    stream: stream < 0 ? null : stream,
  };
}

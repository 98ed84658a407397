/** What exchange-sums and loop-over-devices have in common: whether there are such loops, and of what. */
import { axisParts, axisShards, type AxisShard } from "../../ir/axis-shards.ts";
import { isDID, type IterDomain, type Tensor, type TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding, streamAxis } from "./sharding.ts";

/** UCC has no sends and receives. */
export function hasDeviceLoops({ deviceLoops, overlap, backend, p2p }: LoweringOptions): boolean {
  return deviceLoops && overlap && (backend !== "ucc" || p2p === "broadcast");
}

/**
 * The tensors to cut for chunks of partial results along `axis`: of a contraction, or of a sum of such, each read by
 * nothing else. Null for others.
 */
export function makersOf(
  id: TensorId,
  axis: IterDomain,
  made: ReadonlyMap<TensorId, Op>,
  tensors: readonly Tensor[],
): readonly (readonly [TensorId, IterDomain])[] | null {
  const op = made.get(id);
  const tensor = at(tensors, id);
  if (op === undefined || streamAxis(tensor) !== null || axisShards(tensor).some((each) => each.axis.id === axis.id))
    return null;
  if (op.kind === "Linear" || op.kind === "Matmul") return [[id, axis]];
  if (op.kind !== "Binary" || isResharding(op, tensors)) return null;
  const pairs = axisMap(op, tensors);
  const below = op.inputs.map((input, operand) => {
    const own = pairs.find((pair) => pair.operand === operand && pair.consumer.id === axis.id && !pair.broadcast);
    return own === undefined ? null : makersOf(input, own.producer, made, tensors);
  });
  return below.includes(null) ? null : [[id, axis], ...below.flatMap((each) => each ?? [])];
}

/** The ops whose result one other op reads, and nothing else, by that result. */
export function readOnce({ ops, outputs }: FusionData): ReadonlyMap<TensorId, Op> {
  const reads = new Map<TensorId, number>(outputs.map((id) => [id, 2]));
  for (const { inputs } of ops) for (const id of inputs) reads.set(id, (reads.get(id) ?? 0) + 1);
  return new Map(ops.flatMap((op) => (reads.get(op.output) === 1 ? [[op.output, op] as const] : [])));
}

/** Whether each device holds one run of the axis, or one index. */
export function keepsOneRun({ domain }: Tensor, { axis, part }: AxisShard): boolean {
  const parts = axisParts(domain, axis);
  return parts[0]?.id === part && parts.filter(({ parallelType }) => isDID(parallelType)).length === 1;
}

/** What must hold of a pipeline's order before host programs can be built. Whether ranks wait for each other is not it. */
import { call, reject } from "../../ir/ops/call.ts";
import { at } from "../../support/invariant.ts";
import type { PipelineOrder, PipelineStep } from "./orders.ts";

function stepText({ stage, microBatch, pass }: PipelineStep): string {
  return `${pass} of micro-batch ${microBatch} in stage ${stage}`;
}

/**
 * The rank of each stage, and the number of micro-batches. Each stage is on one rank, and has a forward pass and then a
 * backward pass, or its two parts in turn, of each micro-batch. Throws `bad-argument`.
 */
export function requireOrder(order: PipelineOrder): {
  readonly owners: readonly number[];
  readonly microBatches: number;
} {
  const steps = order.flatMap((list, rank) => list.map((step, position) => ({ ...step, rank, position })));
  const count = (numbers: readonly number[]): number => Math.max(0, ...numbers.map((each) => each + 1));
  const stages = count(steps.map(({ stage }) => stage));
  const microBatches = count(steps.map(({ microBatch }) => microBatch));
  const owners = new Map(steps.map(({ stage, rank }) => [stage, rank]));
  const seen = new Map<string, string[]>();
  for (const step of steps) {
    const { stage, microBatch, pass, rank, position } = step;
    const key = `${stage} ${microBatch}`;
    const before = [...(seen.get(key) ?? []), pass].join(", ");
    seen.set(key, before.split(", "));
    const isNext = ["forward", "forward, backward", "forward, inputGradient", "forward, inputGradient, weightGradient"];
    if (owners.get(stage) === rank && isNext.includes(before)) continue;
    const other = owners.get(stage) === rank ? null : owners.get(stage);
    refuse(
      `rank ${rank}, step ${position}: ${stepText(step)}`,
      other === null ? `${before} of this micro-batch` : `steps of stage ${stage} on rank ${other}, too`,
    );
  }
  for (let stage = 0; stage < stages; stage++) {
    for (let microBatch = 0; microBatch < microBatches; microBatch++) {
      const own = seen.get(`${stage} ${microBatch}`) ?? [];
      if (own.includes("backward") || own.includes("weightGradient")) continue;
      const where = owners.get(stage);
      const missing = own.length === 0 ? "forward" : own.includes("inputGradient") ? "weightGradient" : "backward";
      refuse(
        `${where === undefined ? "" : `rank ${where}: `}${stepText({ stage, microBatch, pass: missing })}`,
        "no such step",
      );
    }
  }
  if (stages === 0) refuse("the lists", "no steps");
  return { owners: Array.from({ length: stages }, (_, stage) => at([owners.get(stage) ?? 0], 0)), microBatches };
}

function refuse(where: string, found: string): never {
  reject(call("pipeline", { code: "{ order }" }), "bad-argument", `the order of the pipeline is not one at ${where}`, {
    found,
    expected:
      "each stage on one rank: forward, then backward, or inputGradient and weightGradient, of each micro-batch",
    help: "correct the list of the rank, or take one of pipelineOrders",
  });
}

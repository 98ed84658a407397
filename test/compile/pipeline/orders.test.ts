/** The orders of pipelines, played with passes of one unit (a whole backward pass has two), beside the textbook's formulas. */
import { describe, expect, it } from "vitest";
import { type PipelineOrder, pipelineOrders, type PipelineStep } from "@braid-compiler/braid";

/** When the last rank ends, step by step: each step waits for those whose results it needs. Null if they wait forever. */
function lengthOf(order: PipelineOrder): number | null {
  const units = { forward: 1, backward: 2, inputGradient: 1, weightGradient: 1 };
  const all = order.flatMap((list, rank) => list.map((step, position) => ({ step, rank, position })));
  const last = Math.max(...all.map(({ step }) => step.stage));
  const ends = new Map<PipelineStep, number>();
  const endOf = (stage: number, microBatch: number, passes: readonly string[]): number => {
    const found = all.find(({ step }) => {
      return step.stage === stage && step.microBatch === microBatch && passes.includes(step.pass);
    });
    return (found && ends.get(found.step)) ?? Infinity;
  };
  for (let round = 0; round < all.length; round++) {
    for (const { step, rank, position } of all) {
      const { stage, microBatch, pass } = step;
      const forward = endOf(stage, microBatch, ["forward"]);
      const gradient = (of: number): number => endOf(of, microBatch, ["backward", "inputGradient"]);
      const before = order[rank]?.[position - 1];
      const needs = {
        forward: stage === 0 ? 0 : endOf(stage - 1, microBatch, ["forward"]),
        weightGradient: endOf(stage, microBatch, ["inputGradient"]),
        backward: Math.max(forward, stage === last ? 0 : gradient(stage + 1)),
        inputGradient: Math.max(forward, stage === last ? 0 : gradient(stage + 1)),
      };
      const start = Math.max(before === undefined ? 0 : (ends.get(before) ?? Infinity), needs[pass]);
      if (start < Infinity) ends.set(step, start + units[pass]);
    }
    if (ends.size === all.length) return Math.max(...ends.values());
  }
  return null;
}

describe.each([
  [1, 3],
  [2, 2],
  [2, 6],
  [3, 6],
  [4, 4],
  [4, 8],
] as const)("%i ranks, %i micro-batches", (ranks, microBatches) => {
  const request = { ranks, microBatches };
  const work = 3 * microBatches;

  it("GPipe and 1F1B wait ranks - 1 forward and backward passes", () => {
    expect(lengthOf(pipelineOrders.gpipe(request))).toBe(work + 3 * (ranks - 1));
    expect(lengthOf(pipelineOrders.oneForwardOneBackward(request))).toBe(work + 3 * (ranks - 1));
  });

  it("interleaved stages wait as many passes of a stage, which is a part of a rank's", () => {
    for (const stagesPerRank of [1, 2, 3]) {
      const order = pipelineOrders.interleaved({ ...request, stagesPerRank });
      expect(lengthOf(order)).toBe(work * stagesPerRank + 3 * (ranks - 1));
    }
  });

  it("zero bubble waits a forward pass and an input gradient less a weight gradient", () => {
    expect(lengthOf(pipelineOrders.zeroBubble(request))).toBe(work + (ranks - 1));
  });

  it("1F1B and zero bubble hold no more micro-batches than stages are left", () => {
    for (const order of [pipelineOrders.oneForwardOneBackward(request), pipelineOrders.zeroBubble(request)]) {
      order.forEach((steps, rank) => {
        let held = 0;
        for (const { pass } of steps) {
          held += pass === "forward" ? 1 : pass === "backward" || pass === "inputGradient" ? -1 : 0;
          expect(held).toBeLessThanOrEqual(ranks - rank);
        }
      });
    }
  });
});

it("an interleaved order of micro-batches that the ranks do not divide is refused", () => {
  expect(() => pipelineOrders.interleaved({ ranks: 2, microBatches: 3 })).toThrow("use 4 micro-batches");
});

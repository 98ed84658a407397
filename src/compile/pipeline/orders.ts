/**
 * The orders in which the ranks of a pipeline run the passes of micro-batches: data, a list of steps for each rank. Four
 * functions give the orders of the literature. A user's own list is used in the same way (build-pipeline.ts).
 *
 *   gpipe                   all forward passes, then all backward passes
 *   oneForwardOneBackward   as few forward passes ahead as the next stages need, then one backward pass for each
 *   interleaved             the same with several stages on each rank, in turn (Megatron-LM)
 *   zeroBubble              weight gradients fill the time in which a rank waits (ZB-H1)
 */
import { requireWholeNumber } from "../../diagnostics/arguments.ts";
import { call, reject } from "../../ir/ops/call.ts";
import { at } from "../../support/invariant.ts";

/** `backward` is `inputGradient` and `weightGradient` together. */
export type PipelinePass = "forward" | "backward" | "inputGradient" | "weightGradient";

export interface PipelineStep {
  readonly stage: number;
  readonly microBatch: number;
  readonly pass: PipelinePass;
}

/** By rank of the pipeline. A stage is on the rank whose list has its steps. */
export type PipelineOrder = readonly (readonly PipelineStep[])[];

export interface OrderRequest {
  readonly ranks: number;
  readonly microBatches: number;
  /** For `interleaved`: the stages on each rank; 2 if omitted. */
  readonly stagesPerRank?: number;
}

const list = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i);

function checked({ ranks, microBatches, stagesPerRank = 2 }: OrderRequest): Required<OrderRequest> {
  for (const [name, value] of Object.entries({ ranks, microBatches, stagesPerRank })) {
    requireWholeNumber(`pipelineOrders({ ${name} })`, value, 1);
  }
  return { ranks, microBatches, stagesPerRank };
}

/** `ahead` forward steps, then the two lists in turn. */
function inTurn(ahead: number, forward: readonly PipelineStep[], backward: readonly PipelineStep[]) {
  const together = forward.slice(ahead).flatMap((step, i) => [step, at(backward, i)]);
  return [...forward.slice(0, ahead), ...together, ...backward.slice(forward.length - ahead)];
}

const passOf = (stage: number, pass: PipelinePass, microBatches: number): readonly PipelineStep[] =>
  list(microBatches).map((microBatch) => ({ stage, microBatch, pass }));

function gpipe(request: OrderRequest): PipelineOrder {
  const { ranks, microBatches } = checked(request);
  return list(ranks).map((rank) => [
    ...passOf(rank, "forward", microBatches),
    ...passOf(rank, "backward", microBatches),
  ]);
}

function oneForwardOneBackward(request: OrderRequest): PipelineOrder {
  const { ranks, microBatches } = checked(request);
  return list(ranks).map((rank) => {
    const ahead = Math.min(ranks - 1 - rank, microBatches);
    return inTurn(ahead, passOf(rank, "forward", microBatches), passOf(rank, "backward", microBatches));
  });
}

/** Stage `rank + k * ranks` is on `rank`. Groups of as many micro-batches as ranks go through its stages in turn. */
function interleaved(request: OrderRequest): PipelineOrder {
  const { ranks, microBatches, stagesPerRank } = checked(request);
  if (microBatches % ranks !== 0) {
    reject(call("pipelineOrders.interleaved", { code: `{ ranks: ${ranks}, microBatches: ${microBatches} }` }), {
      code: "bad-argument",
      message: "the ranks do not divide the micro-batches of an interleaved order",
      found: `${microBatches} micro-batches on ${ranks} ranks`,
      expected: `a multiple of ${ranks}`,
      help: `use ${Math.ceil(microBatches / ranks) * ranks} micro-batches, or another order`,
    });
  }
  const group = ranks * stagesPerRank;
  const steps = (rank: number, pass: "forward" | "backward"): readonly PipelineStep[] =>
    list(microBatches * stagesPerRank).map((i) => {
      const turn = Math.floor((i % group) / ranks);
      const chunk = pass === "forward" ? turn : stagesPerRank - 1 - turn;
      return { stage: chunk * ranks + rank, microBatch: Math.floor(i / group) * ranks + (i % ranks), pass };
    });
  return list(ranks).map((rank) => {
    const ahead = (ranks - 1 - rank) * 2 + (stagesPerRank - 1) * ranks;
    return inTurn(Math.min(ahead, microBatches * stagesPerRank), steps(rank, "forward"), steps(rank, "backward"));
  });
}

/**
 * Found by playing the pipeline with passes of one unit of time: a rank prefers the input gradient that the stage before
 * waits for, then a forward pass if it holds fewer micro-batches than with `oneForwardOneBackward`, then a weight gradient.
 */
function zeroBubble(request: OrderRequest): PipelineOrder {
  const { ranks, microBatches } = checked(request);
  const orders: PipelineStep[][] = list(ranks).map(() => []);
  const done = list(ranks).map(() => ({ forward: 0, backward: 0, inputGradient: 0, weightGradient: 0 }));
  while (orders.some((steps) => steps.length < 3 * microBatches)) {
    const before = done.map((counts) => ({ ...counts }));
    for (const [rank, counts] of done.entries()) {
      const arrived = before[rank - 1]?.forward ?? microBatches;
      const gradients = before[rank + 1]?.inputGradient ?? counts.forward;
      const mayForward = counts.forward < arrived && counts.forward - counts.inputGradient < ranks - rank;
      const pass =
        counts.inputGradient < Math.min(gradients, counts.forward)
          ? "inputGradient"
          : mayForward
            ? "forward"
            : counts.weightGradient < counts.inputGradient
              ? "weightGradient"
              : null;
      if (pass !== null) at(orders, rank).push({ stage: rank, microBatch: counts[pass]++, pass });
    }
  }
  return orders;
}

export const pipelineOrders = { gpipe, oneForwardOneBackward, interleaved, zeroBubble } as const;

/**
 * Where the sends and receives of a pipeline stand in the lists of its ranks. The pipeline is played with passes that all
 * take the same time: each send follows its step, and the receive follows the steps that the other rank has begun by then.
 * All ranks post transfers in this one sequence, so that they do not wait for each other, also with one queue for each.
 * Steps that wait forever have their receives before them, and the verifier says so.
 */
import { at } from "../../support/invariant.ts";
import type { PipelineOrder, PipelinePass, PipelineStep } from "./orders.ts";

/** An activation or a gradient of a micro-batch. `stage` takes it, on rank `to` of the pipeline. */
export interface StageTransfer {
  readonly kind: "forward" | "backward";
  readonly stage: number;
  readonly microBatch: number;
  readonly from: number;
  readonly to: number;
}

export type PlacedStep =
  | { readonly kind: "step"; readonly step: PipelineStep }
  | { readonly kind: "send" | "recv"; readonly transfer: StageTransfer };

export function transferName({ kind, stage, microBatch }: Omit<StageTransfer, "from" | "to">): string {
  return `${kind} ${stage} ${microBatch}`;
}

const units: Readonly<Record<PipelinePass, number>> = { forward: 1, backward: 2, inputGradient: 1, weightGradient: 1 };

/** What a step takes from another one and gives to another one; null at the ends. A weight gradient does neither. */
function endsOf({ stage, microBatch, pass }: PipelineStep, owners: readonly number[]) {
  const kind = pass === "forward" ? "forward" : "backward";
  const ahead = kind === "forward" ? 1 : -1;
  const between = (source: number, receiver: number): StageTransfer | null => {
    const [from, to] = [owners[source], owners[receiver]];
    return pass === "weightGradient" || from === undefined || to === undefined
      ? null
      : { kind, stage: receiver, microBatch, from, to };
  };
  return { taken: between(stage - ahead, stage), given: between(stage, stage + ahead) };
}

/** By rank of the pipeline. `late`: each receive stands before the step that needs it. */
export function placeTransfers(
  order: PipelineOrder,
  owners: readonly number[],
  late: boolean,
): readonly (readonly PlacedStep[])[] {
  const placed = order.map((): PlacedStep[] => []);
  const received = new Set<string>();
  const add = (rank: number, step: PipelineStep, isLate: boolean): void => {
    const { taken, given } = endsOf(step, owners);
    const own = at(placed, rank);
    if (taken !== null && taken.from !== rank && !received.has(transferName(taken)))
      own.push({ kind: "recv", transfer: taken });
    own.push({ kind: "step", step });
    if (given === null || given.to === rank) return;
    own.push({ kind: "send", transfer: given });
    if (isLate) return;
    received.add(transferName(given));
    at(placed, given.to).push({ kind: "recv", transfer: given });
  };
  const next = order.map(() => 0);
  const free = order.map(() => 0);
  /** When each transfer, also one between stages of a rank, arrives. */
  const arrival = new Map<string, number>();
  for (;;) {
    const begins = order.map((list, rank) => {
      const step = list[at(next, rank)];
      const taken = step === undefined ? null : endsOf(step, owners).taken;
      const arrived = taken === null ? 0 : (arrival.get(transferName(taken)) ?? Infinity);
      return step === undefined ? Infinity : Math.max(at(free, rank), arrived);
    });
    const first = Math.min(...begins);
    const rank = begins.indexOf(first);
    const step = order[rank]?.[at(next, rank)];
    if (first === Infinity || step === undefined) break;
    const end = first + units[step.pass];
    const { given } = endsOf(step, owners);
    if (given !== null) arrival.set(transferName(given), end);
    free[rank] = end;
    next[rank] = at(next, rank) + 1;
    add(rank, step, late);
  }
  for (const [rank, list] of order.entries()) for (const step of list.slice(at(next, rank))) add(rank, step, true);
  return placed;
}

/** A run of a timeline in steps: the order of commands, without times. */
import type { Program } from "../../commands/program.ts";
import { waitsOf } from "../../explain/dependences.ts";
import type { InterleavingStep } from "../../machine/interleaving.ts";
import { at } from "../../support/invariant.ts";
import type { OrderEdge } from "../../verify/finding.ts";
import type { TimelineRun } from "../data/timeline-data.ts";
import { createEdges } from "./edges.ts";
import { memoryCurves } from "./memory.ts";
import { placeSteps } from "./place-steps.ts";
import { slicesOfRun } from "./run.ts";
import type { Works } from "./works.ts";

export interface StepRun {
  readonly name: string;
  readonly program: Program;
  /** The first steps; the others follow as early as they can. */
  readonly interleaving: readonly InterleavingStep[];
  /** Orders that the program lacks. */
  readonly missing: readonly OrderEdge[];
}

export function stepRun({ name, program, interleaving, missing }: StepRun, works: Works): TimelineRun {
  const waits = waitsOf(program);
  const placed = placeSteps(program, waits, interleaving);
  const { start, end, order, steps } = placed;
  const runs = new Set(order);
  const arrived = (number: number): number => at(start, number);
  const isDrawn = (number: number): boolean => runs.has(number);
  const edgesOf = createEdges({ ...waits, order }, isDrawn, arrived);
  const { tracks, slices, sliceOf } = slicesOfRun(program, waits, placed, { works, isDrawn, edgesOf });
  const sliceAt = (place: OrderEdge["from"]): number =>
    place.command === null ? -1 : (sliceOf[at(waits.first, place.rank) + place.command] ?? -1);
  return {
    name,
    end: steps,
    tracks,
    slices,
    critical: new Int32Array(),
    idle: [],
    missing: missing.flatMap(({ from, to }): readonly (readonly [number, number])[] => {
      const pair = [sliceAt(from), sliceAt(to)] as const;
      return pair.includes(-1) ? [] : [pair];
    }),
    memory: memoryCurves(program, (rank, index) => {
      const number = at(waits.first, rank) + index;
      return runs.has(number) ? at(end, number) : null;
    }),
  };
}

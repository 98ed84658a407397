/** A run of a timeline from a trace, predicted or measured. */
import { isWork } from "../../commands/command.ts";
import { causes } from "../../explain/causes.ts";
import { dependencesOf } from "../../explain/dependences.ts";
import type { ExplainedRun, TracedRun } from "../../explain/explain-run.ts";
import { timingOf } from "../../explain/idle/timing.ts";
import { at } from "../../support/invariant.ts";
import type { TimelineRun } from "../data/timeline-data.ts";
import { criticalPath } from "./critical-path.ts";
import { createEdges } from "./edges.ts";
import { memoryCurves } from "./memory.ts";
import { slicesOfRun } from "./run.ts";
import type { Works } from "./works.ts";

export interface TimedRun extends TracedRun {
  readonly name: string;
  readonly explained: Pick<ExplainedRun, "idleOf">;
}

export function timelineRun({ program, trace, milliseconds, name, explained }: TimedRun, works: Works): TimelineRun {
  const dependences = dependencesOf(program);
  const { first, previous, rankOf, indexOf } = dependences;
  const timing = timingOf(program, dependences, trace);
  const isDrawn = (number: number): boolean =>
    isWork(at(at(program.ranks, rankOf(number)).commands, indexOf(number)).kind);
  const arrived = (number: number): number => {
    const before = at(previous, number);
    return before < 0 ? 0 : at(timing.end, before);
  };
  const edgesOf = createEdges(dependences, isDrawn, arrived);
  const { tracks, slices, sliceOf } = slicesOfRun(program, dependences, timing, { works, isDrawn, edgesOf });
  const path = criticalPath(program, timing).map((number) => at(sliceOf, number));
  return {
    name,
    end: Math.max(
      milliseconds,
      timing.end.reduce((latest, time) => Math.max(latest, time), 0),
    ),
    tracks,
    slices,
    critical: Int32Array.from(path),
    idle: program.ranks.flatMap(({ rank }) =>
      explained.idleOf(rank).map(({ cause, start, end, command }) => ({
        rank,
        cause,
        label: causes[cause].label,
        start,
        end,
        slice: command < 0 ? -1 : at(sliceOf, command),
      })),
    ),
    missing: [],
    memory: memoryCurves(program, (rank, index) => at(timing.end, at(first, rank) + index)),
  };
}

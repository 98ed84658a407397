/**
 * Rewrites the regions of a Program, each by its own schedule: splits the Program into one for each region, rewrites
 * those, and joins them again. What regions have in common is settled in the joined Program: streams of one role and
 * name are one stream, rewrites of different regions share temporary memory, and events order only what must be.
 */
import type { Program } from "../commands/program.ts";
import { rewriteAnew } from "./draft/edit-ranks.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";
import { joinParts } from "./regions/join-parts.ts";
import { splitProgram } from "./regions/split-program.ts";
import { applySchedule, type ScheduleOptions } from "./schedule.ts";

/** A region of a Program and its schedule. */
export interface RegionSchedule {
  /** By rank: the number of top-level statements of the host program up to the region's end. */
  readonly ends: readonly number[];
  readonly schedule: ScheduleOptions;
}

/** The regions are in order, and the last one has all remaining commands. */
export function applyByRegion(program: Program, regions: readonly RegionSchedule[]): Program {
  const parts = splitProgram(
    program,
    regions.map(({ ends }) => ends),
  );
  const rewritten = parts.map((part, region) => ({
    ...part,
    program: applySchedule(part.program, regions[region]?.schedule ?? {}),
  }));
  const joined = joinParts(program, rewritten);
  return inPlaceEverywhere(regions) ? useInPlace.run(joined, true) : rewriteAnew(joined);
}

/** Whether copies between regions may go, too: all regions whose GEMMs have streams of their own do without copies. */
function inPlaceEverywhere(regions: readonly RegionSchedule[]): boolean {
  const asked = regions.filter(({ schedule: { computeStreams } }) => computeStreams !== undefined);
  return asked.length > 0 && asked.every(({ schedule: { inPlace } }) => inPlace === true);
}

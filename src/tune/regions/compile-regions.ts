/** Compiles a Fusion whose regions have different lowering options and schedules. */
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  loweringOf,
  type RegionOptions,
} from "../../compile/compile.ts";
import { lowerRegions } from "../../compile/lower-regions.ts";
import { at } from "../../support/invariant.ts";
import { candidateStreams, type ScheduleCandidate } from "../choose/candidates.ts";
import type { FoundRegions } from "./find-regions.ts";

/** The whole program with a schedule for each region, not verified. `options` have neither `schedule` nor `streams`. */
export function compileRegions(
  { placed, regions }: FoundRegions,
  candidates: readonly Pick<ScheduleCandidate, "lowering" | "schedule">[],
  options: CompileOptions,
): AnyCompilation {
  const given = loweringOf(options);
  const { lowered, ends } = lowerRegions(
    placed,
    regions.map((region, position) => ({ region, lowering: { ...given, ...at(candidates, position).lowering } })),
    options.devices,
  );
  const own = candidates.map(({ lowering: { protocol }, schedule }, position): RegionOptions => ({
    ends: at(ends, position),
    schedule,
    ...(protocol === undefined ? {} : { protocol }),
  }));
  return compile(lowered, { ...options, streams: candidateStreams, regions: own, verify: "off" });
}

/** Compiles a Fusion whose regions have different lowering options and schedules. */
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  loweringOf,
  type RegionOptions,
} from "../../compile/compile.ts";
import { lowerRegions, type RegionTemplates } from "../../compile/lower-regions.ts";
import { numbersByName } from "../../compile/record.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import { acrossRegions } from "../../schedule/by-region.ts";
import { at } from "../../support/invariant.ts";
import { candidateStreams, type ScheduleCandidate } from "../choose/candidates.ts";
import type { FoundRegions } from "./split-regions.ts";

/** The options for a part of a Fusion: sizes of its axes may follow from meshes of other tensors. */
export function withPlaced<Options extends CompileOptions>(placed: FusionData, options: Options): Options {
  return { ...options, sizes: new Map([...sizesFromMeshes(placed.tensors), ...numbersByName(options.sizes)]) };
}

/**
 * The whole program with a schedule for each region, apart from each other, not verified. `options` have neither
 * `schedule` nor `streams`. `templates`: of other forms of the program.
 */
export function compileRegions(
  { placed, regions }: Pick<FoundRegions, "placed" | "regions">,
  candidates: readonly Pick<ScheduleCandidate, "lowering" | "schedule">[],
  options: CompileOptions,
  templates: RegionTemplates = new Map(),
): AnyCompilation {
  const given = loweringOf(options);
  const lowered = lowerRegions(
    placed,
    regions.map((region, position) => ({ region, lowering: { ...given, ...at(candidates, position).lowering } })),
    options.devices,
    templates,
  );
  const own = candidates.map(({ lowering: { protocol }, schedule }): RegionOptions => ({ schedule, protocol }));
  return compile(lowered, { ...options, streams: candidateStreams, regions: own, regionsApart: true, verify: "off" });
}

/** The same, with rewrites across its regions. */
export function withRegionsJoined(apart: AnyCompilation): AnyCompilation {
  const { regionsApart: _, ...options } = apart.options;
  const schedules = (options.regions ?? []).map(({ schedule }) => schedule);
  const program = acrossRegions(apart.program, schedules);
  return { ...apart, options, program, reported: program };
}

/** Chooses the schedule of each region of a Fusion apart, of equal regions once. */
import { type AnyCompilation, loweringOf } from "../../compile/compile.ts";
import { isFusionSource, type Lowered, type ProgramSource } from "../../compile/lower-all.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import { numbersByName } from "../../compile/record.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import { placingNames } from "../../passes/pipeline.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { type FoundRegions, findRegions } from "../regions/find-regions.ts";
import { regionFusion } from "../regions/region-fusion.ts";
import { type ChooseOptions, type ConsideredSchedules, considerSchedules, requireNoSchedule } from "./consider.ts";
import { decide } from "./decide.ts";
import type { ScheduleChoice } from "./schedule-choice.ts";
import { type DistinctRegion, settle } from "./settle.ts";

/** Null for what is chosen as a whole: one region, host programs, and what lowering refuses. */
export function chooseByRegion(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> | null {
  if (!isFusionSource(source)) return null;
  requireNoSchedule(options);
  const found = findRegions(source, loweringOf(options));
  if (found === null || found.regions.length < 2) return null;
  const distinct = chooseDistinct(found, options, profile);
  return distinct === null ? null : settle(source, found, distinct, options, profile);
}

function chooseDistinct(
  { placed, regions }: FoundRegions,
  options: ChooseOptions,
  profile: MachineProfile,
): readonly DistinctRegion[] | null {
  const { disablePass = [], onProgress, ...others } = options;
  const ofRegion: ChooseOptions = {
    ...others,
    sizes: new Map([...sizesFromMeshes(placed.tensors), ...numbersByName(options.sizes)]),
    disablePass: [...disablePass, ...placingNames],
  };
  const distinct = new Map<string, DistinctRegion>();
  for (const [position, region] of regions.entries()) {
    const { fusion, key } = regionFusion(placed, region);
    const known = distinct.get(key);
    if (known !== undefined) {
      known.positions.push(position);
      continue;
    }
    const listening: Pick<ChooseOptions, "onProgress"> =
      onProgress === undefined
        ? {}
        : { onProgress: (label) => onProgress(`region ${position + 1} of ${regions.length}: ${label}`) };
    const all = considered(fusion, { ...ofRegion, ...listening }, profile);
    if (all === null) return null;
    const { candidates, leftOut } = all;
    const assumptions = candidates.flatMap((each) => each.assumptions);
    const apart = candidates.map((each) => ({ ...each, assumptions: [] }));
    const { picked, considered: ordered, reason } = decide(apart, leftOut);
    const { candidate: chosen, milliseconds } = picked;
    distinct.set(key, {
      positions: [position],
      region,
      choice: { chosen, milliseconds, considered: ordered, leftOut, reason },
      assumptions,
    });
  }
  return [...distinct.values()];
}

/** Null for a region that lowering refuses. */
function considered(
  fusion: HasFusionData,
  options: ChooseOptions,
  profile: MachineProfile,
): ConsideredSchedules | null {
  try {
    return considerSchedules(fusion, options, profile);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

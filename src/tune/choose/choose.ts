/**
 * `schedule: "auto"`: compiles every candidate, simulates it on the machine of a measured profile, and takes the
 * fastest. The regions of a Fusion are chosen apart. The choice depends on the program, its sizes and the profile alone,
 * so that every rank makes the same one.
 */
import { type AnyCompilation, loweringOf, verified } from "../../compile/compile.ts";
import { isFusionSource, type Lowered, type ProgramSource } from "../../compile/lower-all.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { Schedule } from "../../compile/options/schedule.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { findRegions, type FoundRegions } from "../regions/split-regions.ts";
import { regionFusion } from "../../compile/region-fusion.ts";
import { withPlaced } from "../regions/compile-regions.ts";
import { type ChooseOptions, type CompiledCandidate, considerSchedules, requireNoSchedule } from "./consider.ts";
import { decide } from "./decide.ts";
import type { ScheduleChoice } from "./schedule-choice.ts";
import { type DistinctRegion, settle } from "./settle.ts";

/**
 * The fastest schedule of a program by simulation, compiled. Throws `bad-option` if the given options leave no
 * candidate or name a schedule, and the serial form's error if no candidate can be compiled.
 */
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions & { readonly verify?: "on" | "full" },
  profile: MachineProfile,
): ScheduleChoice;
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation>;
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  return chooseLayers(source, options, profile, false);
}

function chooseLayers(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
  fewerLayers: boolean,
): ScheduleChoice<AnyCompilation> {
  const choice = chooseByRegion(source, options, profile, fewerLayers) ?? chooseWhole(source, options, profile);
  const { verify = "on", notes = true, onProgress } = options;
  if (verify === "off") return choice;
  return {
    ...choice,
    compilation: verified(choice.compilation, {
      notes,
      full: verify === "full",
      ...(onProgress === undefined ? {} : { onProgress }),
    }),
  };
}

/**
 * The choice under a `schedule`; null where there is nothing to choose: without a profile, for a schedule as written and
 * for rewrites; where none is given also for host programs, which are run as they are written, with `streams`, and where
 * nothing can be chosen with the given options. `fewerLayers`: of many equal layers, only few are compiled.
 */
export function chooseFor(
  schedule: Schedule | undefined,
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile | null,
  fewerLayers = false,
): ScheduleChoice<AnyCompilation> | null {
  if (profile === null) return null;
  if (schedule === "auto") return chooseLayers(source, options, profile, fewerLayers);
  if (schedule !== undefined || options.streams !== undefined || !isFusionSource(source)) return null;
  try {
    return chooseLayers(source, options, profile, fewerLayers);
  } catch (error) {
    // What is wrong with the program, compiling it says.
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function chooseWhole(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const { picked, ...decision } = decide(considerSchedules(source, options, profile));
  const { candidate: chosen, milliseconds, margin, compiled } = picked;
  return { ...decision, compilation: compiled(), layers: null, chosen, milliseconds, margin, regions: [] };
}

// Chooses the schedule of each region of a Fusion apart, of equal regions once.

/** Null for what is chosen as a whole: one region, host programs, and what lowering refuses. */
function chooseByRegion(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
  fewerLayers: boolean,
): ScheduleChoice<AnyCompilation> | null {
  if (!isFusionSource(source)) return null;
  requireNoSchedule(options);
  const found = findRegions(source, loweringOf(options));
  if (found === null || found.regions.length < 2) return null;
  const distinct = chooseDistinct(found, options, profile);
  return distinct === null ? null : settle(source, found, distinct, options, profile, fewerLayers);
}

function chooseDistinct(
  { placed, regions }: FoundRegions,
  options: ChooseOptions,
  profile: MachineProfile,
): readonly DistinctRegion[] | null {
  const { onProgress, ...others } = options;
  const ofRegion = withPlaced(placed, others);
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
    const candidates = considered(fusion, { ...ofRegion, ...listening }, profile);
    if (candidates === null) return null;
    const assumptions = candidates.flatMap((each) => each.assumptions);
    const apart = candidates.map((each) => ({ ...each, assumptions: [] }));
    const { picked, considered: ordered, reason } = decide(apart);
    const { candidate: chosen, milliseconds } = picked;
    distinct.set(key, {
      positions: [position],
      region,
      key,
      choice: { chosen, milliseconds, considered: ordered, reason },
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
): readonly CompiledCandidate[] | null {
  try {
    return considerSchedules(fusion, options, profile);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

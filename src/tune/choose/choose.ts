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
import type { LoweringOptions } from "../../passes/options.ts";
import { at } from "../../support/invariant.ts";
import { type FewerLayers, further, type Layered, regionsOfFewer, withFewerLayers } from "../regions/fewer-layers.ts";
import { findRegions, type FoundRegions } from "../regions/split-regions.ts";
import { regionFusion } from "../../compile/region-fusion.ts";
import { withPlaced } from "../regions/compile-regions.ts";
import { type ChooseOptions, type CompiledCandidate, considerSchedules, requireNoSchedule } from "./consider.ts";
import { decide } from "./decide.ts";
import type { ScheduleChoice } from "./schedule-choice.ts";
import { type DistinctRegion, settle, type Settling } from "./settle.ts";

/** What was chosen for regions, by their keys, under the same options and for the same machine. */
export type KnownRegions = Map<string, DistinctRegion>;

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
  return chooseLayers(source, options, profile, null, new Map());
}

function chooseLayers(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
  layers: FewerLayers | null,
  known: KnownRegions,
): ScheduleChoice<AnyCompilation> {
  const choice = chooseByRegion(source, options, profile, layers, known) ?? chooseWhole(source, options, profile);
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
 * nothing can be chosen with the given options. `layers`: of the source, of which only few are to be compiled. `known`:
 * regions of other programs, to which those of this one are added.
 */
export function chooseFor(
  schedule: Schedule | undefined,
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile | null,
  layers: FewerLayers | null = null,
  known: KnownRegions = new Map(),
): ScheduleChoice<AnyCompilation> | null {
  if (profile === null) return null;
  if (schedule === "auto") return chooseLayers(source, options, profile, layers, known);
  if (schedule !== undefined || options.streams !== undefined || !isFusionSource(source)) return null;
  try {
    return chooseLayers(source, options, profile, layers, known);
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
  layers: FewerLayers | null,
  known: KnownRegions,
): ScheduleChoice<AnyCompilation> | null {
  if (!isFusionSource(source)) return null;
  requireNoSchedule(options);
  const settling = toSettle(source, layers, loweringOf(options));
  if (settling === null) return null;
  const distinct = chooseDistinct(settling.all ?? settling.layers.more, options, profile, known);
  return distinct === null ? null : settle(settling, distinct, options, profile);
}

/** Null for a program of one region, and one that lowering refuses. */
function toSettle(
  source: HasFusionData,
  layers: FewerLayers | null,
  lowering: Partial<LoweringOptions>,
): Settling | null {
  const few = layers === null ? null : regionsOfFewer(layers, lowering);
  if (few !== null) return { all: null, layers: few };
  const all = findRegions(source, lowering);
  if (all === null || all.regions.length < 2) return null;
  // Where layers were not lowered alike, they are not looked for again.
  const found = layers === null ? withFewerLayers(source.data()) : null;
  const shorter = found === null ? null : regionsOfFewer(found, lowering);
  return { all: { source, ...all }, layers: shorter !== null && areThose(shorter, all) ? shorter : null };
}

/** Whether the whole program has the regions that the programs with few of its layers let expect. */
function areThose({ few, more, missing }: Layered<FoundRegions>, all: FoundRegions): boolean {
  const countsOf = ({ keys }: FoundRegions): ReadonlyMap<string, number> => {
    const counts = new Map<string, number>();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return counts;
  };
  const [ofFew, ofMore, ofAll] = [countsOf(few), countsOf(more), countsOf(all)];
  return (
    ofAll.size === ofMore.size &&
    [...ofAll].every(([key, count]) => count === further(ofFew.get(key) ?? 0, ofMore.get(key) ?? 0, missing))
  );
}

function chooseDistinct(
  { placed, regions, keys }: FoundRegions,
  options: ChooseOptions,
  profile: MachineProfile,
  known: KnownRegions,
): readonly DistinctRegion[] | null {
  const { onProgress, ...others } = options;
  const ofRegion = withPlaced(placed, others);
  const distinct = new Map<string, DistinctRegion>();
  for (const [position, region] of regions.entries()) {
    const key = at(keys, position);
    if (distinct.has(key)) continue;
    const before = known.get(key);
    if (before !== undefined) {
      distinct.set(key, { ...before, region });
      continue;
    }
    const { fusion } = regionFusion(placed, region);
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
    const choice = { chosen, milliseconds, considered: ordered, reason };
    const found: DistinctRegion = { region, key, choice, assumptions };
    distinct.set(key, found);
    known.set(key, found);
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

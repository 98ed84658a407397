/**
 * Chooses the schedule of each region of a Fusion apart, of equal regions once, and simulates the whole once. The
 * serial form of the whole remains if it is predicted to be faster.
 */
import { type AnyCompilation, compile, loweringOf } from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { FusionRegion } from "../../compile/lower-regions.ts";
import { numbersByName } from "../../compile/record.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import { opText } from "../../passes/op-text.ts";
import { placingNames } from "../../passes/pipeline.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { at } from "../../support/invariant.ts";
import { compileRegions } from "../regions/compile-regions.ts";
import { type FoundRegions, findRegions } from "../regions/find-regions.ts";
import { regionFusion } from "../regions/region-fusion.ts";
import { candidateStreams, type ScheduleCandidate, serial } from "./candidates.ts";
import { type ChooseOptions, type ConsideredSchedules, considerSchedules, requireNoSchedule } from "./consider.ts";
import { type Considered, decide, isSerial, timeText } from "./decide.ts";
import type { RegionChoice, ScheduleChoice } from "./schedule-choice.ts";

/** Null for what is chosen as a whole: one region, host programs, and what lowering refuses. */
export function chooseByRegion(
  source: ProgramSource | Lowered,
  options: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> | null {
  if (!isFusion(source)) return null;
  requireNoSchedule(options);
  const found = findRegions(source, loweringOf(options));
  if (found === null || found.regions.length < 2) return null;
  const distinct = chooseDistinct(found, options, profile);
  return distinct === null ? null : settle(source, found, distinct, options, profile);
}

function isFusion(source: ProgramSource | Lowered): source is HasFusionData {
  return typeof source === "object" && "data" in source && typeof source.data === "function";
}

interface DistinctRegion {
  /** Positions among all regions. */
  readonly positions: number[];
  readonly region: FusionRegion;
  readonly choice: Omit<RegionChoice, "ops" | "count">;
  readonly assumptions: readonly string[];
}

function chooseDistinct(
  { placed, regions }: FoundRegions,
  options: ChooseOptions,
  profile: MachineProfile,
): readonly DistinctRegion[] | null {
  const { disablePass = [] } = options;
  const ofRegion: ChooseOptions = {
    ...options,
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
    const all = considered(fusion, ofRegion, profile);
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

/** The whole program with the chosen schedules of its regions, or in serial form. */
function settle(
  source: HasFusionData,
  found: FoundRegions,
  distinct: readonly DistinctRegion[],
  { graph = true, ...options }: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const chosenAt = new Map(
    distinct.flatMap(({ positions, choice }) => positions.map((position) => [position, choice.chosen] as const)),
  );
  const candidates = found.regions.map((_, position) => chosenAt.get(position) ?? serial);
  const run = (compilation: AnyCompilation, candidate: ScheduleCandidate): Settled => {
    const { milliseconds, assumptions } = simulate(compilation.program, profile, { graph });
    return { compilation, considered: { candidate, milliseconds, assumptions, margin: 0 } };
  };
  const inSerial = distinct.every(({ choice }) => choice.considered.some(({ candidate }) => isSerial(candidate)))
    ? run(compileSerial(source, options), serial)
    : null;
  const joined = candidates.every(isSerial) ? null : run(compileRegions(found, candidates, options), byRegion);
  const ordered = [inSerial, joined]
    .filter((each) => each !== null)
    .sort((a, b) => a.considered.milliseconds - b.considered.milliseconds);
  const [{ compilation, considered }, ...others] = [at(ordered, 0), ...ordered.slice(1)];
  const { candidate: chosen, milliseconds } = considered;
  const assumed = [...considered.assumptions, ...distinct.flatMap(({ assumptions }) => assumptions)];
  return {
    compilation,
    chosen,
    milliseconds,
    considered: ordered.map((each) => each.considered),
    leftOut: [],
    regions: distinct.map(({ positions, region, choice }) => ({
      ops: opsText(region),
      count: positions.length,
      ...choice,
    })),
    reason: [
      headline(
        considered,
        others.map((each) => each.considered),
        found.regions.length,
        distinct.length,
        assumed,
      ),
      ...distinct.map(regionLine),
    ].join("\n"),
  };
}

interface Settled {
  readonly compilation: AnyCompilation;
  readonly considered: Considered;
}

const byRegion: ScheduleCandidate = { name: "by region", lowering: {}, schedule: {} };

function compileSerial(source: HasFusionData, options: Omit<ChooseOptions, "graph">): AnyCompilation {
  const { lowering, schedule } = serial;
  return compile(source, { ...options, ...lowering, streams: candidateStreams, schedule, verify: "off" });
}

function headline(
  { candidate, milliseconds }: Considered,
  others: readonly Considered[],
  count: number,
  distinct: number,
  assumed: readonly string[],
): string {
  const sentences = [...new Set(assumed)].toSorted();
  return [
    `${candidate.name}: ${timeText(milliseconds)}, ${count} regions of which ${distinct} are distinct`,
    ...others.map((other) => `${other.candidate.name} ${timeText(other.milliseconds)}`),
    ...(sentences.length === 0 ? [] : [`assumed: ${sentences.join(", ")}`]),
  ].join("; ");
}

function regionLine({ positions, region, choice }: DistinctRegion): string {
  return `  ${positions.length} x ${opsText(region)}: ${choice.reason}`;
}

/** The first and the last op. */
function opsText({ ops }: FusionRegion): string {
  const [first, ...others] = ops.map(opText);
  const last = others.at(-1);
  return [first, ...(last === undefined ? [] : [last])].join(" .. ");
}

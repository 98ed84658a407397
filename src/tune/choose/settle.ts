/**
 * Decides how a program of several regions runs. Each region has been given a schedule of its own. The whole program is
 * simulated in four forms: every region with its schedule; regions that became loops with theirs, and the others serial;
 * the same with only those loops that save time in the whole program; and all regions serial. The fastest form wins.
 * Neighbouring serial regions are lowered as one, so that passes may move statements between them.
 */
import { type AnyCompilation, compile } from "../../compile/compile.ts";
import type { FusionRegion } from "../../compile/lower-regions.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import { opText } from "../../passes/op-text.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { at } from "../../support/invariant.ts";
import { compileRegions } from "../regions/region-fusion.ts";
import { cutRegions, type FoundRegions } from "../regions/split-regions.ts";
import { candidateStreams, type ScheduleCandidate, serial } from "./candidates.ts";
import type { ChooseOptions } from "./consider.ts";
import { type Considered, decide, isSerial, marginOfRegions, predictedTimeText } from "./decide.ts";
import type { RegionChoice, ScheduleChoice } from "./schedule-choice.ts";

export interface DistinctRegion {
  /** Positions among all regions. */
  readonly positions: number[];
  readonly region: FusionRegion;
  readonly choice: Omit<RegionChoice, "ops" | "count">;
  readonly assumptions: readonly string[];
}

/** The fastest form of the whole program: the serial one, unless another is surely faster. */
export function settle(
  source: HasFusionData,
  found: FoundRegions,
  distinct: readonly DistinctRegion[],
  { graph = true, ...options }: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const run = (compilation: AnyCompilation, candidate: ScheduleCandidate, regions: Settled["regions"]): Settled => {
    const { milliseconds, assumptions } = simulate(compilation.program, profile, { graph });
    const margin = candidate === serial ? 0 : marginOfRegions(regions.map(({ choice }) => choice.chosen));
    return { candidate, milliseconds, assumptions, margin, compilation, regions };
  };
  const joined = (candidate: ScheduleCandidate, regions: Settled["regions"]): Settled => {
    const chosenAt = new Map(
      regions.flatMap(({ positions, choice }) => positions.map((position) => [position, choice.chosen] as const)),
    );
    const candidates = found.regions.map((_, position) => chosenAt.get(position) ?? serial);
    const whole = withSerialJoined(found, candidates);
    return run(compileRegions(whole, whole.candidates, options), candidate, regions);
  };
  const canBeSerial = distinct.every((each) => serialOf(each) !== undefined);
  const whole = canBeSerial ? run(compileSerial(source, options), serial, distinct) : null;
  const only = (kept: readonly DistinctRegion[]): readonly DistinctRegion[] =>
    whole === null ? distinct : distinct.map((each) => (kept.includes(each) ? each : inSerial(each)));
  const loops = distinct.filter(isLoop);
  const isWorthIt = whole !== null && loops.length > 1 && commandsOf(whole) * loops.length <= mostCommands;
  const saving = isWorthIt
    ? loops.filter((each) => joined(loopsByRegion, only([each])).milliseconds < whole.milliseconds)
    : loops;
  const forms = [
    { candidate: byRegion, regions: distinct },
    { candidate: loopsByRegion, regions: only(loops) },
    { candidate: someLoopsByRegion, regions: only(saving) },
  ].map((form) => ({ ...form, key: form.regions.map(({ choice }) => isSerial(choice.chosen)).join() }));
  const { picked, considered } = decide([
    ...(whole === null ? [] : [whole]),
    ...forms
      .filter(({ regions }) => whole === null || regions.some(({ choice }) => !isSerial(choice.chosen)))
      .filter(({ key }, i, all) => all.findIndex((other) => other.key === key) === i)
      .map(({ candidate, regions }) => joined(candidate, regions)),
  ]);
  const { compilation, regions, candidate: chosen, milliseconds, margin } = picked;
  const others = considered.filter(({ candidate }) => candidate !== chosen);
  const assumed = [...picked.assumptions, ...distinct.flatMap(({ assumptions }) => assumptions)];
  return {
    compilation,
    chosen,
    milliseconds,
    margin,
    considered,
    leftOut: [],
    regions: regions.map(({ positions, region, choice }) => ({
      ops: opsText(region),
      count: positions.length,
      ...choice,
    })),
    reason: [headline(picked, others, found.regions.length, distinct.length, assumed), ...regions.map(regionLine)].join(
      "\n",
    ),
  };
}

function commandsOf({ compilation }: Settled): number {
  return compilation.program.ranks.reduce((count, { commands }) => count + commands.length, 0);
}

function serialOf({ choice }: DistinctRegion): Considered | undefined {
  return choice.considered.find(({ candidate }) => isSerial(candidate));
}

function isLoop({ choice }: DistinctRegion): boolean {
  const { overlap, deviceLoops } = choice.chosen.lowering;
  return overlap !== false || deviceLoops === true;
}

function inSerial(region: DistinctRegion): DistinctRegion {
  const own = serialOf(region);
  const { choice } = region;
  if (own === undefined || isSerial(choice.chosen)) return region;
  const { candidate: chosen, milliseconds } = own;
  const reason = `serial, as all that is no loop: ${predictedTimeText(milliseconds)}; by itself ${choice.reason}`;
  return { ...region, choice: { ...choice, chosen, milliseconds, reason } };
}

/** The regions with serial neighbours as one, and the candidate of each. */
function withSerialJoined(
  { placed, regions }: FoundRegions,
  candidates: readonly ScheduleCandidate[],
): FoundRegions & { readonly candidates: readonly ScheduleCandidate[] } {
  const isFirst = (position: number): boolean =>
    position === 0 || !isSerial(at(candidates, position)) || !isSerial(at(candidates, position - 1));
  let ops = 0;
  const starts = regions.map((region) => {
    ops += region.ops.length;
    return ops - region.ops.length;
  });
  return {
    placed,
    regions: cutRegions(
      placed,
      starts.filter((_, position) => isFirst(position)),
    ),
    candidates: candidates.filter((_, position) => isFirst(position)),
  };
}

interface Settled extends Considered {
  readonly compilation: AnyCompilation;
  /** With what was chosen for each. */
  readonly regions: readonly DistinctRegion[];
}

/** Of the serial program, times the loops to try in it: a few seconds. In larger programs all loops count. */
const mostCommands = 50_000;

const byRegion: ScheduleCandidate = { name: "by region", lowering: {}, schedule: {} };
const loopsByRegion: ScheduleCandidate = { name: "loops by region", lowering: {}, schedule: {} };
const someLoopsByRegion: ScheduleCandidate = { name: "some loops by region", lowering: {}, schedule: {} };

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
  const rank = others.some((other) => other.milliseconds < milliseconds) ? "nearly the fastest, " : "";
  return [
    `${candidate.name}: ${predictedTimeText(milliseconds)}, ${rank}${count} regions of which ${distinct} are distinct`,
    ...others.map((other) => `${other.candidate.name} ${predictedTimeText(other.milliseconds)}`),
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

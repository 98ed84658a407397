/**
 * Decides how a program of several regions runs. Each region has been given a schedule of its own. The whole program is
 * simulated in these forms: every region with its schedule; regions that became loops with theirs, and the others
 * serial, each of them with rewrites across regions and apart; and all regions serial. The fastest form wins.
 * Neighbouring serial regions are lowered as one, so that passes may move statements between them.
 *
 * Of a program of many layers, forms are simulated with fewer of them, and only the fastest form is compiled as a whole.
 */
import type { Program } from "../../commands/program.ts";
import { type AnyCompilation, compile } from "../../compile/compile.ts";
import type { RegionTemplates } from "../../compile/lower-regions.ts";
import type { FusionRegion } from "../../compile/region-fusion.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { withNames } from "../../ir/origin.ts";
import { opText } from "../../passes/op-text.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import {
  type CompiledFewer,
  type CompiledLayers,
  further,
  furtherGemms,
  type Layered,
  type RegionsOf,
} from "../regions/fewer-layers.ts";
import { compileRegions, withRegionsJoined } from "../regions/compile-regions.ts";
import { cutRegions, type FoundRegions } from "../regions/split-regions.ts";
import { candidateStreams, type ScheduleCandidate, serial } from "./candidates.ts";
import type { ChooseOptions } from "./consider.ts";
import { type Considered, decide, isSerial, marginOfRegions, predictedTimeText, sentences } from "./decide.ts";
import type { RegionChoice, ScheduleChoice } from "./schedule-choice.ts";

export interface DistinctRegion {
  /** The first of the equal ones. */
  readonly region: FusionRegion;
  /** Equal for equal ones alone (`regionFusion`). */
  readonly key: string;
  readonly choice: Omit<RegionChoice, "ops" | "count">;
  readonly assumptions: readonly string[];
}

/** What is settled: null for what is not compiled, or has no layers that repeat. */
export type Settling =
  | { readonly all: RegionsOf; readonly layers: Layered<RegionsOf> | null }
  | { readonly all: null; readonly layers: Layered<RegionsOf> };

/**
 * The fastest form of the whole program: the serial one, unless another is surely faster. Without `all`, only few of
 * the equal layers are compiled.
 */
export function settle(
  { all, layers: shorter }: Settling,
  distinct: readonly DistinctRegion[],
  { graph = true, ...options }: ChooseOptions,
  profile: MachineProfile,
): ScheduleChoice<AnyCompilation> {
  const some = all ?? shorter.more;
  const { placed } = some;
  /** How many regions the whole program has, or how many equal ones. */
  const countOf = (key: string | null): number => {
    const countIn = ({ keys }: FoundRegions): number => keys.filter((each) => key === null || each === key).length;
    return all === null ? further(countIn(shorter.few), countIn(shorter.more), shorter.missing) : countIn(all);
  };
  const compiledSerial = remembered(({ source }: RegionsOf): AnyCompilation => {
    const { lowering, schedule } = serial;
    return compile(source, { ...options, ...lowering, streams: candidateStreams, schedule, verify: "off" });
  });
  const canBeSerial = distinct.every((each) => serialOf(each) !== undefined);
  const templates: RegionTemplates = new Map();
  const settled = (
    candidate: ScheduleCandidate,
    regions: Settled["regions"],
    compiled: (of: RegionsOf) => AnyCompilation,
  ): Settled => {
    const margin = candidate === serial ? 0 : marginOfRegions(regions.map(({ choice }) => choice.chosen));
    if (shorter !== null) {
      const of = (part: RegionsOf): CompiledFewer => ({
        source: part.source,
        compilation: compiled(part),
        serial: canBeSerial ? compiledSerial(part).program : null,
      });
      const [few, more, missing] = [of(shorter.few), of(shorter.more), shorter.missing];
      const layers = { few, more, missing };
      const predicted = predictLayers(few.compilation.program, more.compilation.program, missing, profile, graph);
      return { candidate, ...predicted, margin, compiled: () => compiled(some), layers, regions };
    }
    const compilation = compiled(some);
    const { milliseconds, assumptions } = simulate(compilation.program, profile, { graph });
    return { candidate, milliseconds, assumptions, margin, compiled: () => compilation, layers: null, regions };
  };
  const withRegions = ({ candidate, apart }: Form, regions: Settled["regions"]): readonly Settled[] => {
    const byKey = new Map(regions.map(({ key, choice }) => [key, choice.chosen]));
    const apartOf = remembered((of: RegionsOf): AnyCompilation => {
      const chosen = of.keys.map((key) => byKey.get(key) ?? serial);
      const form = withSerialJoined(of, chosen);
      return compileRegions(form, form.candidates, options, templates);
    });
    const joinedOf = remembered((of: RegionsOf) => withRegionsJoined(apartOf(of)));
    const first = shorter?.more ?? some;
    const isSame = joinedOf(first).program === apartOf(first).program;
    return [settled(candidate, regions, joinedOf), ...(isSame ? [] : [settled(apart, regions, apartOf)])];
  };
  const whole = canBeSerial ? settled(serial, distinct, compiledSerial) : null;
  const forms = [
    { ...byRegion, regions: distinct },
    { ...loopsByRegion, regions: distinct.map((each) => (isLoop(each) ? each : inSerial(each))) },
  ].map((form) => ({ ...form, key: form.regions.map(({ choice }) => isSerial(choice.chosen)).join() }));
  const { picked, considered } = decide([
    ...(whole === null ? [] : [whole]),
    ...forms
      .filter(({ regions }) => whole === null || regions.some(({ choice }) => !isSerial(choice.chosen)))
      .filter(({ key }, i, every) => every.findIndex((other) => other.key === key) === i)
      .flatMap(({ regions, ...form }) => withRegions(form, regions)),
  ]);
  const { regions, candidate: chosen, margin } = picked;
  const layers = all === null ? picked.layers : null;
  const compilation = layers?.more.compilation ?? picked.compiled();
  const { milliseconds } = picked.layers === layers ? picked : simulate(compilation.program, profile, { graph });
  const others = considered.filter(({ candidate }) => candidate !== chosen);
  return {
    compilation,
    layers,
    chosen,
    milliseconds,
    margin,
    considered: considered
      .map((each) => (each.candidate === chosen ? { ...each, milliseconds } : each))
      .toSorted((a, b) => a.milliseconds - b.milliseconds),
    regions: regions.map(({ key, region, choice }) => ({
      ops: opsText(region, placed),
      count: countOf(key),
      ...choice,
    })),
    reason: [
      headline({ ...picked, milliseconds }, others, countOf(null), distinct.length),
      ...regions.map((each) => regionLine(each, countOf(each.key), placed)),
    ].join("\n"),
    assumptions: sentences([...picked.assumptions, ...distinct.flatMap(({ assumptions }) => assumptions)]),
  };
}

/** Compiles a form of some layers once. */
function remembered(compiled: (of: RegionsOf) => AnyCompilation): (of: RegionsOf) => AnyCompilation {
  const known = new Map<RegionsOf, AnyCompilation>();
  return (of) => getOrMake(known, of, () => compiled(of));
}

/** The prediction of a program that has so many layers more than `more`, which has one more than `few`. */
function predictLayers(
  few: Program,
  more: Program,
  missing: number,
  profile: MachineProfile,
  graph: boolean,
): Pick<Settled, "milliseconds" | "assumptions"> {
  const gemmsOfRun = furtherGemms(few, more, missing, profile);
  const { milliseconds: ofShort } = simulate(few, profile, { graph, gemmsOfRun });
  const { milliseconds, assumptions } = simulate(more, profile, { graph, gemmsOfRun });
  return { milliseconds: further(ofShort, milliseconds, missing), assumptions };
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
): Pick<FoundRegions, "placed" | "regions"> & { readonly candidates: readonly ScheduleCandidate[] } {
  const firsts = [...candidates.keys()].filter(
    (position) => position === 0 || ![position - 1, position].every((each) => isSerial(at(candidates, each))),
  );
  const starts = firsts.map((position) => placed.ops.indexOf(at(at(regions, position).ops, 0)));
  return {
    placed,
    regions: cutRegions(placed, starts),
    candidates: firsts.map((position) => at(candidates, position)),
  };
}

interface Settled extends Considered {
  readonly compiled: () => AnyCompilation;
  /** Null if the time is that of the whole. */
  readonly layers: CompiledLayers | null;
  /** With what was chosen for each. */
  readonly regions: readonly DistinctRegion[];
}

/** How regions become one program: with rewrites across them, and apart. */
interface Form {
  readonly candidate: ScheduleCandidate;
  readonly apart: ScheduleCandidate;
}

function formOf(name: string): Form {
  const rest = { lowering: {}, schedule: {} };
  return { candidate: { name, ...rest }, apart: { name: `${name}, apart`, ...rest } };
}

const byRegion = formOf("by region");
const loopsByRegion = formOf("loops by region");

function headline(
  { candidate, milliseconds }: Considered,
  others: readonly Considered[],
  count: number,
  distinct: number,
): string {
  const rank = others.some((other) => other.milliseconds < milliseconds) ? "nearly the fastest, " : "";
  return [
    `${candidate.name}: ${predictedTimeText(milliseconds)}, ${rank}${count} regions of which ${distinct} are distinct`,
    ...others.map((other) => `${other.candidate.name} ${predictedTimeText(other.milliseconds)}`),
  ].join("; ");
}

function regionLine({ region, choice }: DistinctRegion, count: number, placed: FusionData): string {
  return `  ${count} x ${opsText(region, placed)}: ${choice.reason}`;
}

/** The first and the last op, with the user's names of tensors. */
function opsText({ ops }: FusionRegion, { tensors }: FusionData): string {
  const [first, ...others] = ops.map(opText);
  const last = others.at(-1);
  const text = [first, ...(last === undefined ? [] : [last])].join(" .. ");
  return withNames(text, tensors);
}

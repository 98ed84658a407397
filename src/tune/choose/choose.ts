/**
 * `scheduleChoice: "auto"`: every candidate is lowered, recorded, linked and rewritten as for a run, and simulated on the machine of a
 * measured profile; the one that takes least is chosen. So the choice depends on the program, its sizes and the profile alone, and every
 * rank makes the same one.
 */
import type { Program } from "../../commands/program.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import { sizesFromMeshes, type Sizes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { moveCopiesToLane } from "../../schedule/rewrites/copy-stream.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { at } from "../../support/invariant.ts";
import { linkPrograms } from "../../compile/compile.ts";
import { correction, marginToSerial } from "./model-errors.ts";
import { type ProgramSource, rankPrograms } from "../../compile/program-source.ts";
import {
  type ChoiceRow,
  choicesFor,
  copyLoops,
  eitherLoop,
  finishing,
  finishingSaves,
  libraryLoops,
  type ScheduleCandidate,
  serial,
} from "./candidates.ts";
import { type Combination, type Root, scheduleTree, searchSchedules } from "./search.ts";

export interface ChooseOptions {
  readonly devices: number;
  readonly profile: MachineProfile;
  /** Lowering options that the user set: candidates with other ones drop out. */
  readonly lowering?: Partial<LoweringOptions>;
  /** Of extents that the program leaves open, by name. */
  readonly sizes?: Sizes;
  /** Whether runs are launched as graphs; so, if not given. */
  readonly graph?: boolean;
}

/** As simulated. */
interface Timed {
  readonly milliseconds: number;
  /** By what part it has to be faster than the serial form. */
  readonly margin: number;
}

export interface Considered extends Timed {
  readonly candidate: ScheduleCandidate;
}

export interface ScheduleChoice {
  readonly chosen: ScheduleCandidate;
  /** Of what was chosen, as simulated. */
  readonly milliseconds: number;
  /** All that apply, the fastest first; of equal Programs the first. */
  readonly considered: readonly Considered[];
  /** Why, in one line. */
  readonly reason: string;
}

/** Worker streams of all candidates: as many as there are chunks, or nearly, so that none waits for the place of another. */
export const candidateStreams = 64;

/** Throws what lowering and recording throw where no candidate applies, the serial form's error; `bad-option` where the user's options leave none. */
export function chooseSchedule(source: ProgramSource, options: ChooseOptions): ScheduleChoice {
  return decide(considerSchedules(source, options));
}

/** One of `copyLoops`, linked. */
interface CopyLoop extends Pick<ScheduleCandidate, "name" | "lowering"> {
  readonly apply: (schedule: ScheduleOptions) => Program;
}

/** All that apply, in the order in which they were simulated. Throws as `chooseSchedule`. */
export function considerSchedules(source: ProgramSource, options: ChooseOptions): readonly Considered[] {
  const { profile, lowering = {}, graph = true } = options;
  const considered: Considered[] = [];
  const seen = new Set<string>();
  const timeOf = (program: Program): number | null => {
    const key = commandsOf(program);
    if (seen.has(key)) return null;
    seen.add(key);
    const { milliseconds, trace } = simulate(program, profile, { graph });
    // Of Programs that take the same, the one that has more behind it early is less easily disturbed.
    const meanEnd = trace.reduce((sum, { end }) => sum + end, 0) / Math.max(1, trace.length);
    return milliseconds + earliness * meanEnd;
  };
  const errors: DiagnosticError[] = [];
  const withLinked = (own: Partial<LoweringOptions>, use: (program: Program) => void): void => {
    if (contradicts(own, lowering)) return;
    try {
      use(linkedProgram(source, own, options));
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      errors.push(error);
    }
  };
  for (const candidate of [serial, ...libraryLoops]) {
    withLinked(candidate.lowering, (program) => {
      const milliseconds = timeOf(program);
      if (milliseconds !== null) considered.push({ candidate, milliseconds, margin: marginToSerial(program) });
    });
  }
  const roots = new Map<string, Root<CopyLoop>>();
  for (const loop of copyLoops) {
    withLinked(loop.lowering, (program) => {
      const key = commandsOf(program);
      const same = roots.get(key);
      if (same !== undefined) {
        roots.set(key, { ...same, of: { ...same.of, name: eitherLoop } });
        return;
      }
      const apply = scheduleTree(program);
      roots.set(key, { of: { ...loop, apply }, rows: ableChoices(program, apply) });
    });
  }
  considered.push(...searched([...roots.values()], timeOf));
  if (considered.length > 0) return considered;
  const [firstError] = errors;
  if (firstError !== undefined) throw firstError;
  return noneAllowed(lowering);
}

/** As text: equal for Programs that do the same. */
function commandsOf({ ranks }: Program): string {
  return JSON.stringify(ranks.map(({ commands }) => commands));
}

/** So little that it decides between equal times alone. */
const earliness = 1e-5;

const finalists = 8;

/** `timeOf`: milliseconds; null for a Program that was timed before. */
function searched(
  roots: readonly Root<CopyLoop>[],
  timeOf: (program: Program) => number | null,
): readonly Considered[] {
  const timeOfSchedule = (loop: CopyLoop, combination: Combination): Timed | null => {
    const program = moveCopiesToLane(loop.apply(combination.schedule));
    const time = timeOf(program);
    if (time === null) return null;
    return { milliseconds: time * correction(program, combination), margin: marginToSerial(program) };
  };
  const all: { readonly loop: CopyLoop; readonly names: readonly string[]; readonly considered: Considered }[] = [];
  searchSchedules(roots, (loop, combination) => {
    const { names, schedule } = combination;
    const timed = timeOfSchedule(loop, combination);
    if (timed === null) return null;
    const name = [loop.name, ...names].join(", ");
    const candidate = { name, lowering: loop.lowering, copyLane: "dedicated", schedule } as const;
    all.push({ loop, names, considered: { candidate, ...timed } });
    return timed.milliseconds;
  });
  all.sort((a, b) => a.considered.milliseconds - b.considered.milliseconds);
  return all.map(({ loop, names, considered }, place) => {
    if (place >= finalists) return considered;
    const schedule = { ...considered.candidate.schedule, ...finishing };
    const timed = timeOfSchedule(loop, { names, schedule });
    const isSlower = timed === null || timed.milliseconds > considered.milliseconds + finishingSaves;
    return isSlower ? considered : { candidate: { ...considered.candidate, schedule }, ...timed };
  });
}

/** The fastest, or the serial form. At least one. */
export function decide(all: readonly Considered[]): ScheduleChoice {
  const considered = all.toSorted((a, b) => a.milliseconds - b.milliseconds);
  const { candidate, milliseconds } = worthIt(considered);
  return { chosen: candidate, milliseconds, considered, reason: reasonOf(candidate, considered) };
}

/** The fastest of those that are faster than the serial form by their margins, or that form. */
function worthIt(considered: readonly Considered[]): Considered {
  const plain = considered.find(({ candidate }) => isSerial(candidate));
  if (plain === undefined) return at(considered, 0);
  return considered.find(({ milliseconds, margin }) => milliseconds * (1 + margin) < plain.milliseconds) ?? plain;
}

function isSerial({ lowering }: ScheduleCandidate): boolean {
  return lowering.overlap === false;
}

function contradicts(own: Partial<LoweringOptions>, given: Partial<LoweringOptions>): boolean {
  const owned = new Map(Object.entries(own));
  return Object.entries(given).some(([name, value]) => owned.has(name) && owned.get(name) !== value);
}

function linkedProgram(
  source: ProgramSource,
  own: Partial<LoweringOptions>,
  { devices, lowering = {}, sizes }: ChooseOptions,
): Program {
  const { signature, hosts } = rankPrograms(source, devices, { ...lowering, ...own });
  return linkPrograms(hosts, sizes ?? sizesFromMeshes(signature.tensors), new Map(), {
    streams: candidateStreams,
    protocol: own.protocol ?? "get",
    copyLane: "inline",
    schedule: {},
    // What is chosen is verified before it runs.
    verify: "off",
  });
}

/** The rows of choices without those that alone leave the program as it is. */
function ableChoices(program: Program, apply: CopyLoop["apply"]): readonly ChoiceRow[] {
  return choicesFor(program).map(([usual, ...others]) => [
    usual,
    ...others.filter(({ schedule }) => isEmpty(schedule) || apply(schedule) !== program),
  ]);
}

function isEmpty(schedule: ScheduleOptions): boolean {
  return Object.keys(schedule).length === 0;
}

function reasonOf(chosen: ScheduleCandidate, considered: readonly Considered[]): string {
  const text = (candidate: ScheduleCandidate): string => {
    const found = considered.find((each) => each.candidate === candidate);
    return `${(found?.milliseconds ?? NaN).toPrecision(3)} ms`;
  };
  const candidates = considered.map(({ candidate }) => candidate);
  const plain = candidates.find(isSerial);
  const other = candidates.find((each) => each !== chosen && each !== plain);
  const against = [
    ...(plain === undefined || plain === chosen ? [] : [`serial ${text(plain)}`]),
    ...(other === undefined ? [] : [`next ${other.name} ${text(other)}`]),
  ];
  const of = `${chosen === candidates[0] ? "the least" : "nearly the least"} of ${candidates.length} simulated schedules`;
  return `${chosen.name}: ${text(chosen)}, ${of}${against.length === 0 ? "" : `; ${against.join(", ")}`}`;
}

function noneAllowed(lowering: Partial<LoweringOptions>): never {
  return fail({
    code: "bad-option",
    message: "no schedule among which a choice could be made has these lowering options",
    place: { kind: "option", text: "scheduleChoice" },
    found: JSON.stringify(lowering),
    expected: "lowering options of the serial form, of the library's loops or of loops of copies",
    help: "leave some of these options to the choice, or do without it",
  });
}

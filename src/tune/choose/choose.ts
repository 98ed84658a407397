/**
 * `scheduleChoice: "auto"`: compiles every candidate and simulates it on the machine of a measured profile; the fastest is chosen. The
 * choice depends on the program, its sizes and the profile alone, so that every rank makes the same one.
 */
import type { Program } from "../../commands/program.ts";
import {
  type AnyCompilation,
  compile,
  type Compilation,
  type CompileOptions,
  loweringOf,
  verified,
} from "../../compile/compile.ts";
import type { Lowered, ProgramSource } from "../../compile/lower-all.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { at } from "../../support/invariant.ts";
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
import { correction, marginToSerial } from "./model-errors.ts";
import { type Combination, type Root, scheduleTree, searchSchedules } from "./search.ts";

/** Lowering options that are given restrict the choice. Streams and rewrites are chosen, whatever is given. */
export interface ChooseOptions extends CompileOptions {
  /** Whether runs are launched as graphs; true if not given. */
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

/** With what was simulated, which is not verified. */
export interface CompiledCandidate extends Considered {
  readonly compilation: AnyCompilation;
}

export interface ScheduleChoice<C extends AnyCompilation = Compilation> {
  /** Of what was chosen. */
  readonly compilation: C;
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

/**
 * The fastest schedule of a program by simulation, compiled. Throws what `compile` throws where no candidate applies, the serial form's
 * error; `bad-option` where the given options leave none.
 */
export function choose(
  source: ProgramSource | Lowered,
  options: ChooseOptions & { readonly verify?: "on" },
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
  const { picked, considered, reason } = decide(considerSchedules(source, options, profile));
  const { candidate: chosen, milliseconds, compilation: unverified } = picked;
  const isVerified = options.verify !== "off";
  const compilation = isVerified ? verified(unverified, { notes: options.notes ?? true }) : unverified;
  return { compilation, chosen, milliseconds, considered, reason };
}

/** One of `copyLoops`, compiled. */
interface CopyLoop extends Pick<ScheduleCandidate, "name" | "lowering"> {
  readonly compilation: AnyCompilation;
  readonly apply: (schedule: ScheduleOptions) => Program;
}

/** All that apply, in the order in which they were simulated. Throws as `choose`. */
export function considerSchedules(
  source: ProgramSource | Lowered,
  { graph = true, ...options }: ChooseOptions,
  profile: MachineProfile,
): readonly CompiledCandidate[] {
  const lowering = loweringOf(options);
  const considered: CompiledCandidate[] = [];
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
  const withCompiled = (
    { lowering: own, schedule }: Pick<ScheduleCandidate, "lowering" | "schedule">,
    use: (compilation: AnyCompilation) => void,
  ): void => {
    if (contradicts(own, lowering)) return;
    try {
      use(compile(source, { ...options, ...own, streams: candidateStreams, schedule, verify: "off" }));
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      errors.push(error);
    }
  };
  for (const candidate of [serial, ...libraryLoops]) {
    withCompiled(candidate, (compilation) => {
      const { program } = compilation;
      const milliseconds = timeOf(program);
      if (milliseconds === null) return;
      considered.push({ candidate, compilation, milliseconds, margin: marginToSerial(program) });
    });
  }
  const roots = new Map<string, Root<CopyLoop>>();
  for (const loop of copyLoops) {
    withCompiled({ ...loop, schedule: { copyStream: "inline" } }, (compilation) => {
      const { recorded } = compilation;
      const key = commandsOf(recorded);
      const same = roots.get(key);
      if (same !== undefined) {
        roots.set(key, { ...same, of: { ...same.of, name: eitherLoop } });
        return;
      }
      const apply = scheduleTree(recorded);
      roots.set(key, { of: { ...loop, compilation, apply }, rows: ableChoices(recorded, apply) });
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
): readonly CompiledCandidate[] {
  const compiled = ({ name, lowering, ...loop }: CopyLoop, combination: Combination): CompiledCandidate | null => {
    const schedule: ScheduleOptions = { ...combination.schedule, copyStream: "dedicated" };
    const program = loop.apply(schedule);
    const time = timeOf(program);
    if (time === null) return null;
    const { options } = loop.compilation;
    return {
      candidate: { name: [name, ...combination.names].join(", "), lowering, schedule },
      compilation: { ...loop.compilation, options: { ...options, schedule }, program, reported: program },
      milliseconds: time * correction(program, combination),
      margin: marginToSerial(program),
    };
  };
  const all: { readonly loop: CopyLoop; readonly combination: Combination; readonly found: CompiledCandidate }[] = [];
  searchSchedules(roots, (loop, combination) => {
    const found = compiled(loop, combination);
    if (found !== null) all.push({ loop, combination, found });
    return found?.milliseconds ?? null;
  });
  all.sort((a, b) => a.found.milliseconds - b.found.milliseconds);
  return all.map(({ loop, combination: { names, schedule }, found }, place) => {
    if (place >= finalists) return found;
    const finished = compiled(loop, { names, schedule: { ...schedule, ...finishing } });
    return finished === null || finished.milliseconds > found.milliseconds + finishingSaves ? found : finished;
  });
}

export interface Decision<T extends Considered> extends Pick<ScheduleChoice, "considered" | "reason"> {
  readonly picked: T;
}

/** The fastest, or the serial form. At least one, of one program or of several that mean the same. */
export function decide<T extends Considered>(all: readonly T[]): Decision<T> {
  const ordered = all.toSorted((a, b) => a.milliseconds - b.milliseconds);
  const picked = worthIt(ordered);
  // Programs that were not chosen are not kept.
  const considered = ordered.map(({ candidate, milliseconds, margin }) => ({ candidate, milliseconds, margin }));
  return { picked, considered, reason: reasonOf(picked.candidate, considered) };
}

/** The fastest of those that are faster than the serial form by their margins, or that form. */
function worthIt<T extends Considered>(considered: readonly T[]): T {
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

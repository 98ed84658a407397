/** Compiles every candidate schedule of a program and simulates it on the machine of a measured profile. */
import type { Program } from "../../commands/program.ts";
import { type AnyCompilation, type CompileOptions, loweringOf, compile } from "../../compile/compile.ts";
import { type Lowered, type ProgramSource, classesOf, isFusionSource, lowerAll } from "../../compile/lower-all.ts";
import { scheduleNames } from "../../compile/options.ts";
import { optionPlace, optionText } from "../../compile/options/resolve.ts";
import { type Rescheduler, rescheduler } from "../../compile/reschedule.ts";
import { DiagnosticError, fail } from "../../diagnostics/diagnostic.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { simulate } from "../../simulate/simulate.ts";
import { overlapOf } from "../../trace/overlap.ts";
import {
  type Choice,
  type ChoiceRow,
  choicesFor,
  copyLoops,
  eitherLoop,
  libraryLoops,
  type ScheduleCandidate,
  serial,
  candidateStreams,
} from "./candidates.ts";
import { type Considered, correction, marginToSerial } from "./decide.ts";
import { communicates } from "./peer-traffic.ts";
import { type ChoiceCombination, type Root, searchSchedules } from "./search.ts";
import { resolveLoweringOptions } from "../../compile/lower.ts";
import { walk } from "../../host/traverse.ts";
import { streamAxis } from "../../ir/stream.ts";
import { getOrMake } from "../../support/invariant.ts";

/**
 * Given lowering options restrict the choice. `streams` and `schedule` are chosen, so giving them is a `bad-option`.
 */
export interface ChooseOptions extends CompileOptions {
  /** Whether runs are launched as CUDA graphs; true if omitted. */
  readonly graph?: boolean;
}

export interface CompiledCandidate extends Considered {
  /** Makes its Program, which is not verified. The Programs of all candidates would take much memory. */
  readonly compiled: () => AnyCompilation;
}

/** One of `copyLoops`, compiled. */
interface CopyLoop extends Pick<ScheduleCandidate, "name" | "lowering">, Pick<Rescheduler, "under"> {}

/**
 * All schedules that apply, in the order in which they were simulated; the serial form alone for a program that does not
 * communicate. Throws `bad-option` if the given options leave no candidate or name a schedule, and the serial form's
 * error if no candidate can be compiled.
 */
export function considerSchedules(
  source: ProgramSource | Lowered,
  { graph = true, onProgress, ...options }: ChooseOptions,
  profile: MachineProfile,
): readonly CompiledCandidate[] {
  requireNoSchedule(options);
  const given = loweringOf(options);
  const considered: CompiledCandidate[] = [];
  let count = 0;
  const digestOf = commandsDigests();
  const simulated = simulateOnce(profile, graph, digestOf);
  const timeOf = (program: Program): ReturnType<typeof simulated> => {
    onProgress?.(`predicting schedule ${++count}`);
    return simulated(program);
  };
  const errors: DiagnosticError[] = [];
  const compileCandidate = candidateCompiler(source, options);
  const compiled = ({ lowering, schedule }: Omit<ScheduleCandidate, "name">): AnyCompilation | null => {
    if (contradicts(lowering, given)) return null;
    try {
      return compileCandidate({ lowering, schedule });
    } catch (error) {
      if (!(error instanceof DiagnosticError)) throw error;
      errors.push(error);
      return null;
    }
  };
  for (const candidate of [serial, ...libraryLoops]) {
    const compilation = compiled(candidate);
    const predicted = compilation === null ? null : timeOf(compilation.program);
    if (compilation === null || predicted === null) continue;
    const { milliseconds, assumptions } = predicted;
    const margin = candidate === serial ? 0 : marginToSerial(compilation.program, true);
    considered.push({ candidate, compiled: () => compilation, milliseconds, assumptions, margin });
    // Loops have nothing to hide, and cost launches and efficiency.
    if (candidate === serial && !communicates(compilation.program)) return considered;
  }
  const roots = new Map<string, Root<CopyLoop>>();
  const known = new Set<string>();
  for (const loop of copyLoops) {
    const compilation = compiled({ ...loop, schedule: { copyStream: "inline" } });
    if (compilation === null) continue;
    const { recorded } = compilation;
    const key = digestOf(recorded);
    const isKnown = known.has(key);
    known.add(key);
    // All that could be a loop over devices is in a loop already.
    if (isKnown && loop.lowering.deviceLoops === true) continue;
    const same = roots.get(key);
    if (same !== undefined) {
      const isNoLoop = loop.lowering.overlap === false && loop.lowering.deviceLoops !== true;
      const as = isNoLoop
        ? { name: loop.name, lowering: { ...same.of.lowering, ...loop.lowering } }
        : { name: eitherLoop };
      roots.set(key, { ...same, of: { ...same.of, ...as } });
      continue;
    }
    const { under, applies } = rescheduler(compilation);
    roots.set(key, { of: { ...loop, under }, rows: rowsThatApply(recorded, loop.lowering, applies) });
  }
  considered.push(...searched([...roots.values()], timeOf));
  if (considered.length > 0) return considered;
  const [firstError] = errors;
  if (firstError !== undefined) throw firstError;
  return noneAllowed(given);
}

/** Small enough to decide only between equal times. */
const earliness = 1e-5;

interface Predicted extends Pick<Considered, "milliseconds" | "assumptions"> {
  /** Whether some communication runs beside kernels. Few candidates ask. */
  readonly hides: () => boolean;
}

/** The prediction of a run; null for a Program with the commands of one that was simulated before. */
function simulateOnce(
  profile: MachineProfile,
  graph: boolean,
  digestOf: (program: Program) => string,
): (program: Program) => Predicted | null {
  const seen = new Set<string>();
  return (program) => {
    const key = digestOf(program);
    if (seen.has(key)) return null;
    seen.add(key);
    const { milliseconds, trace, assumptions } = simulate(program, profile, { graph });
    // Of Programs with equal times, the one whose commands end earlier is less easily disturbed.
    const meanEnd = trace.reduce((sum, { end }) => sum + end, 0) / Math.max(1, trace.length);
    const hides = (): boolean => overlapOf(program, trace).some(({ hidden }) => hidden > 0);
    return { milliseconds: milliseconds + earliness * meanEnd, assumptions, hides };
  };
}

/** Equal for Programs that do the same; made once of each. */
function commandsDigests(): (program: Program) => string {
  const known = new WeakMap<Program, string>();
  return (program) => {
    const found = known.get(program);
    if (found !== undefined) return found;
    const digest = createTextDigest();
    for (const { commands } of program.ranks) digest.add(JSON.stringify(commands));
    const made = digest.value();
    known.set(program, made);
    return made;
  };
}

/**
 * Of all candidates of `copyLoops`. A batch of memory operations between two copies takes 5 us or more, which the model
 * lacks.
 */
const always = { batchSignals: true, copyStream: "dedicated" } as const satisfies ScheduleOptions;

function searched(
  roots: readonly Root<CopyLoop>[],
  timeOf: (program: Program) => Predicted | null,
): readonly CompiledCandidate[] {
  const compiled = ({ name, lowering, under }: CopyLoop, combination: ChoiceCombination): CompiledCandidate | null => {
    const schedule: ScheduleOptions = { ...combination.schedule, ...always };
    const { program } = under(schedule);
    const predicted = timeOf(program);
    if (predicted === null) return null;
    return {
      candidate: { name: [name, ...combination.names].join(", "), lowering, schedule },
      compiled: () => under(schedule),
      milliseconds: predicted.milliseconds * correction(program, combination),
      assumptions: predicted.assumptions,
      margin: marginToSerial(program, lowering.overlap !== false || predicted.hides()),
    };
  };
  const found: CompiledCandidate[] = [];
  searchSchedules(roots, (loop, combination) => {
    const candidate = compiled(loop, combination);
    if (candidate !== null) found.push(candidate);
    return candidate?.milliseconds ?? null;
  });
  return found;
}

/** Whether a candidate needs other lowering options than those that the user gave. */
function contradicts(own: Partial<LoweringOptions>, given: Partial<LoweringOptions>): boolean {
  const owned = new Map(Object.entries(own));
  return Object.entries(given).some(([name, value]) => owned.has(name) && owned.get(name) !== value);
}

/** Without the choices that change nothing in the recorded Program. */
function rowsThatApply(
  recorded: Program,
  lowering: Partial<LoweringOptions>,
  applies: Rescheduler["applies"],
): readonly ChoiceRow[] {
  const isKept = ({ schedule }: Choice): boolean => Object.keys(schedule).length === 0 || applies(schedule);
  return choicesFor(recorded, lowering).map(([usual, ...others]) => [usual, ...others.filter(isKept)]);
}

/** Throws `bad-option`: a schedule cannot be both given and chosen. */
export function requireNoSchedule({ streams, schedule = {} }: Pick<CompileOptions, "streams" | "schedule">): void {
  const values = { streams, ...schedule };
  const given = (["streams", ...scheduleNames] as const).filter((name) => values[name] !== undefined);
  if (given.length === 0) return;
  fail("bad-option", "schedule auto chooses the streams and the rewrites itself", {
    place: optionPlace("schedule"),
    found: `auto with ${given.map(optionText).join(", ")}`,
    expected: "only lowering options with schedule auto",
    help: `leave ${given.join(", ")} out, or take the schedule as-written`,
  });
}

function noneAllowed(lowering: Partial<LoweringOptions>): never {
  return fail("bad-option", "no candidate schedule has these lowering options", {
    place: optionPlace("schedule"),
    found: JSON.stringify(lowering),
    expected: "lowering options of the serial form, of loops of library calls or of loops of copies",
    help: "leave out some of these options, or take the schedule as-written",
  });
}

/**
 * 64 bits of a text, to tell apart texts that are too long to keep: two hashes in the manner of MurmurHash3, with
 * different constants. A thousand different texts have a pair of equal digests with a probability below 10^-13.
 */
interface TextDigest {
  readonly add: (text: string) => void;
  /** Of all texts that were added, and of how they were divided. */
  readonly value: () => string;
}

export function createTextDigest(): TextDigest {
  let [a, b] = [0x9e3779b9, 0x85ebca6b];
  const mix = (value: number): void => {
    a = Math.imul(a ^ value, 0xcc9e2d51);
    a = Math.imul((a << 15) | (a >>> 17), 5) + 0x1b873593;
    b = Math.imul(b ^ value, 0xc2b2ae35);
    b = Math.imul((b << 13) | (b >>> 19), 9) + 0x27d4eb2f;
  };
  return {
    add: (text) => {
      for (let i = 0; i < text.length; i++) mix(text.charCodeAt(i));
      mix(text.length);
    },
    value: () => [a, b].map(finished).join(" "),
  };
}

/** Every bit of the state changes half of the bits of the result. */
function finished(state: number): number {
  let left = state;
  left = Math.imul(left ^ (left >>> 16), 0x85ebca6b);
  left = Math.imul(left ^ (left >>> 13), 0xc2b2ae35);
  return (left ^ (left >>> 16)) >>> 0;
}

// Compiles a source under candidates. What some of them have in common is made once: they are lowered alike if they
// differ only in options of loops that the source does not have, and recorded alike if nothing copies point to point.

/** Throws what lowering, record and link throw. */
type CompileCandidate = (candidate: Pick<ScheduleCandidate, "lowering" | "schedule">) => AnyCompilation;

/** `given`: options of all candidates. */
function candidateCompiler(source: ProgramSource | Lowered, given: CompileOptions): CompileCandidate {
  const hasStreams = isFusionSource(source) && source.data().tensors.some((tensor) => streamAxis(tensor) !== null);
  const allLowered = new Map<string, OnceLowered>();
  const allCompiled = new Map<string, AnyCompilation>();
  return ({ lowering, schedule }) => {
    const options: CompileOptions = { ...given, ...lowering, streams: candidateStreams, schedule, verify: "off" };
    const { devices } = options;
    const own = loweringOf(options);
    const key = isFusionSource(source) ? loweringKey(resolveLoweringOptions(own), hasStreams) : "given";
    const once = getOrMake(allLowered, key, () => onceLowered(lowerAll(source, { devices, ...own })));
    const { lowered, copiesPointToPoint } = once;
    const recordedAs = JSON.stringify([key, copiesPointToPoint ? (options.protocol ?? null) : null, schedule]);
    const compiled = getOrMake(allCompiled, recordedAs, () => compile(lowered, options));
    return { ...compiled, options: { ...compiled.options, ...options } };
  };
}

interface OnceLowered {
  readonly lowered: Lowered;
  readonly copiesPointToPoint: boolean;
}

function onceLowered(lowered: Lowered): OnceLowered {
  const isPointToPoint = classesOf(lowered).some(({ host }) =>
    walk(host.body).some(({ kind }) => kind === "P2PCommunication"),
  );
  return { lowered, copiesPointToPoint: isPointToPoint };
}

/** Equal for options under which a Fusion has the same host programs. */
function loweringKey(options: LoweringOptions, hasStreams: boolean): string {
  const { overlap, p2p, protocol, interStreamSync, ...others } = options;
  const hasLoops = (hasStreams && overlap) || options.deviceLoops;
  return JSON.stringify([others, hasStreams ? overlap : null, hasLoops ? { p2p, protocol, interStreamSync } : null]);
}

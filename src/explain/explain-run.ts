/**
 * Explains one run of a Program, predicted or measured: how much longer it took than its kernels alone, and why. Causes
 * add up to the exposed time exactly: idle time of the rank that ended last, and what its kernels took longer than the
 * serial program's. Without a profile, the times of commands alone are unknown: the exposed time is the idle time.
 */
import type { Program } from "../commands/program.ts";
import { type Assumption, createAssumptions } from "../simulate/assumption.ts";
import { type ByClass, byCommandClass, type CommandClass, commandClassOf } from "../simulate/command-class.ts";
import { commandCosts } from "../simulate/command-cost.ts";
import { runCost } from "../simulate/gemm-cost.ts";
import { type MachineProfile, measuredMargin } from "../simulate/machine-profile.ts";
import { at, getOrMake, keysOf } from "../support/invariant.ts";
import type { TraceEvent } from "../trace/event-table.ts";
import { overlapOf, type RankOverlap } from "../trace/overlap.ts";
import { type Cause, causes, causeSentence } from "./causes.ts";
import { type Dependences, dependencesOf } from "./dependences.ts";
import { type Floor, floorOf, kernelTimeOf } from "./floor.ts";
import { type IdlePart, type IdleTime, idleTimeOf } from "./idle/idle-time.ts";
import { type CommandTiming, timingOf } from "./idle/timing.ts";
import { type CommandTime, measuredCosts } from "./measured-costs.ts";
import { type RegionRow, regionRows } from "./region-rows.ts";
import { regionsOf } from "./regions.ts";

export interface ExplainedCause {
  readonly cause: Cause;
  /** In words, as `sentence`, which says what happened. */
  readonly label: string;
  readonly sentence: string;
  readonly milliseconds: number;
}

export interface ExplainedRun {
  /** The run's time in milliseconds, with the fixed cost of a run. */
  readonly milliseconds: number;
  /** The rank that ended last: causes and exposed time are its. */
  readonly rank: number;
  readonly floor: Floor;
  /**
   * Milliseconds longer than the kernels of the serial program alone, or without one, than its own kernels alone. Without
   * a profile: in which no kernel of the rank runs.
   */
  readonly exposed: number;
  /** Milliseconds by cause, the greatest first; they add up to `exposed`. A negative one is a gain. */
  readonly causes: readonly ExplainedCause[];
  /** The idle time of the rank, in order of time. */
  readonly idle: readonly IdlePart[];
  /** The same of each rank. */
  readonly idleOf: (rank: number) => readonly IdlePart[];
  /** The run's milliseconds by class of command: kernels of the rank, and what it waits for between them. */
  readonly path: ByClass;
  /** Of GEMMs in loops, the part of the path's: milliseconds. */
  readonly loopedGemms: number;
  /** Of kernels in peers' memory beside GEMMs without an SM margin: milliseconds. */
  readonly besideGemms: number;
  /** The regions that communicate, in the order of the host program. */
  readonly regions: readonly RegionRow[];
  /** What the rank's streams did, and the share of its communication that its kernels hid. */
  readonly overlap: RankOverlap;
  /** What the profile lacks, for this program and its serial form. */
  readonly assumptions: readonly Assumption[];
  /** When its launches, copies and transfers ran. */
  readonly trace: readonly TraceEvent[];
}

/** A run of a Program. */
export interface TracedRun {
  readonly program: Program;
  readonly trace: readonly TraceEvent[];
  /** Including what the trace does not show: the launch of a graph, the host's work before the first command. */
  readonly milliseconds: number;
}

export interface ExplainRunOptions {
  /** The serial form of the same program; null if it is not known, as for a dump. */
  readonly serial: Program | null;
  /** Whether the run was one launch of a graph. */
  readonly graph: boolean;
  /** If the Program is a part of a longer run: the GEMMs of that (`SimulateOptions`), and of its serial form. */
  readonly gemms?: PartOfRun | undefined;
  /** Whether threads of a CPU ran it, which may be more than it has cores; false if absent. */
  readonly isOnCores?: boolean;
}

/** By rank: the microseconds of all GEMMs of the run that a Program is a part of. */
export interface PartOfRun {
  readonly own: readonly number[];
  readonly serial: readonly number[] | undefined;
}

/** `profile`: null for a measured run on a machine without one. */
export function explainRun(
  { program, trace, milliseconds }: TracedRun,
  profile: MachineProfile | null,
  { serial, graph, gemms, isOnCores = false }: ExplainRunOptions,
): ExplainedRun {
  const { assume, all } = createAssumptions();
  const costOf = profile === null ? measuredCosts(program, trace) : commandCosts(program, profile, assume, gemms?.own);
  const dependences = dependencesOf(program);
  const timing = timingOf(program, dependences, trace);
  const rank = lastRank(program, timing.end, dependences.first);
  const regionOf = regionsOf(program);
  const issue = profile?.costs.issue;
  const issued = graph || issue === undefined ? null : (index: number): number => (index * issue) / 1000;
  const idleTime = (of: number): IdleTime => idleTimeOf(program, timing, regionOf, of, issued);
  const idle = idleTime(rank);
  const overlap = overlapOf(program, trace);
  const times = new Map<Cause, number>();
  const add = (cause: Cause, time: number): void => void times.set(cause, (times.get(cause) ?? 0) + time);
  for (const { cause, start, end } of idle.parts) add(cause, end - start);
  const launch = profile === null ? 0 : Math.min(milliseconds - idle.end, runCost(program, profile) / 1000);
  add("host", launch);
  // The last signals and events on the way, or the host, which still issues commands.
  add(graph ? "latency" : "host", milliseconds - idle.end - launch);
  let compute = idle.kernels;
  let interference = 0;
  // Kernels that run at once take less time than one after the other.
  const busiest = Math.max(...overlap.map(({ kernels }) => kernels));
  let least = busiest;
  if (profile !== null) {
    const own = kernelTimeOf(program, rank, costOf);
    const serialCosts = serial === null ? null : commandCosts(serial, profile, assume, gemms?.serial);
    const alone = serial === null || serialCosts === null ? own : kernelTimeOf(serial, rank, serialCosts);
    for (const [key, time] of own.kinds) {
      const whole = alone.kinds.get(key);
      add(whole === undefined ? "sums" : "chunking", time - (whole ?? 0));
    }
    for (const [key, time] of alone.kinds) if (!own.kinds.has(key)) add("chunking", -time);
    // A kernel's launch counts as part of it, so one that passes beside another kernel is a gain.
    add("latency", -own.launches);
    interference = idle.kernels - (own.all - own.launches);
    add("interference", interference);
    compute = alone.all;
    least = Math.min(busiest, leastCompute(program, serial, costOf, serialCosts));
  }
  const path = pathTimesOf({ program, trace, milliseconds }, dependences, idle, interference);
  return {
    milliseconds,
    rank,
    floor: floorOf(program, dependences, costOf, least),
    exposed: milliseconds - compute,
    causes: explainedCauses(times, secondCauses(idle.parts), isOnCores),
    idle: idle.parts,
    idleOf: (of) => (of === rank ? idle : idleTime(of)).parts,
    path,
    loopedGemms: path.gemms * loopedShare(program, trace, rank),
    besideGemms: timeBesideGemms(program, trace, timing, rank),
    regions: regionRows(program, timing, regionOf, { rank, idle: idle.parts, costOf }),
    overlap: overlapBeside(overlap, rank),
    assumptions: all(),
    trace,
  };
}

/** That of the rank, or if others alone move data, as from or to its memory, of the one that moves for longest. */
function overlapBeside(all: readonly RankOverlap[], rank: number): RankOverlap {
  const own = at(all, rank);
  if (own.communication > 0) return own;
  return all.reduce((most, each) => (each.communication > most.communication ? each : most), own);
}

/** By cause: milliseconds of it that another cause holds as long. */
export type SecondCauses = ReadonlyMap<Cause, ReadonlyMap<Cause, number>>;

export function secondCauses(parts: readonly IdlePart[]): SecondCauses {
  const found = new Map<Cause, Map<Cause, number>>();
  for (const { cause, also, start, end } of parts) {
    if (also !== undefined)
      addTo(
        getOrMake(found, cause, () => new Map<Cause, number>()),
        also,
        end - start,
      );
  }
  return found;
}

export function explainedCauses(
  times: ReadonlyMap<Cause, number>,
  also: SecondCauses,
  isOnCores = false,
): readonly ExplainedCause[] {
  return keysOf(causes)
    .map((cause): ExplainedCause => {
      const [time, others] = [times.get(cause) ?? 0, also.get(cause) ?? new Map<Cause, number>()];
      const { label } = causes[cause];
      return { cause, label, sentence: causeSentence(cause, time, others, isOnCores), milliseconds: time };
    })
    .filter(({ milliseconds: time }) => Math.abs(time) > 1e-9)
    .sort((a, b) => b.milliseconds - a.milliseconds);
}

/** Chunks may be faster than a whole GEMM, if they happen to fit the kernel's tiles. */
function leastCompute(
  program: Program,
  serial: Program | null,
  costOf: CommandTime,
  serialCosts: CommandTime | null,
): number {
  const busiest = (own: Program, costs: CommandTime): number =>
    own.ranks.reduce((most, { rank }) => Math.max(most, kernelTimeOf(own, rank, costs).all), 0);
  const own = busiest(program, costOf);
  return serial === null || serialCosts === null ? own : Math.min(own, busiest(serial, serialCosts));
}

function lastRank({ ranks }: Program, end: Float64Array, first: Int32Array): number {
  let [found, latest] = [0, -1];
  for (const { rank, commands } of ranks) {
    for (let index = 0; index < commands.length; index++) {
      const time = at(end, at(first, rank) + index);
      if (time > latest) [found, latest] = [rank, time];
    }
  }
  return found;
}

/** Milliseconds of the run with the cause; 0 without it. */
export function causeTime(run: Pick<ExplainedRun, "causes">, cause: Cause): number {
  return run.causes.find((each) => each.cause === cause)?.milliseconds ?? 0;
}

// What a run's time consists of, by class of command: the kernels of the rank that ends last, and between them the
// commands that it waits for. To first order, a class whose commands take 1 % longer makes the run longer by 1 % of its
// time here.

interface PathRun {
  readonly program: Program;
  readonly trace: readonly TraceEvent[];
  readonly milliseconds: number;
}

/**
 * Milliseconds by class, with the sum `milliseconds`. `interference`: how much longer kernels take because of transfers,
 * kernels in peers' memory and copies by kernels; it counts as these, in proportion to how long they run.
 */
function pathTimesOf(
  { program, trace, milliseconds }: PathRun,
  { rankOf, indexOf }: Dependences,
  { rank, kernels, parts }: IdleTime,
  interference: number,
): ByClass {
  const kernelTimes = new Map<CommandClass, number>();
  const besideThem = new Map<CommandClass, number>();
  for (const { rank: owner, command, start, end } of trace) {
    if (owner !== rank) continue;
    const of = commandClassOf(program, rank, command);
    if (of === "gemms" || of === "kernels") addTo(kernelTimes, of, end - start);
    else if (takesSms(program, rank, command)) addTo(besideThem, of, end - start);
  }
  const path = new Map<CommandClass, number>();
  for (const { cause, start, end, command } of parts) {
    const isHost = command < 0 || cause === "latency" || cause === "host";
    addTo(path, isHost ? "host" : commandClassOf(program, rankOf(command), indexOf(command)), end - start);
  }
  const slower = besideThem.size === 0 ? 0 : Math.max(0, Math.min(interference, kernels));
  share(path, besideThem, slower);
  share(path, kernelTimes, kernels - slower);
  const rest = milliseconds - [...path.values()].reduce((sum, time) => sum + time, 0);
  addTo(path, "host", rest);
  return byCommandClass((of) => path.get(of) ?? 0);
}

/** Of the time of the rank's GEMMs, the share of those in loops over chunks or devices. */
function loopedShare(program: Program, trace: readonly TraceEvent[], rank: number): number {
  const { origins } = at(program.ranks, rank);
  const gemms = trace.filter(
    (event) => event.rank === rank && commandClassOf(program, rank, event.command) === "gemms",
  );
  const timeOf = (events: readonly TraceEvent[]): number =>
    events.reduce((sum, { start, end }) => sum + end - start, 0);
  const looped = gemms.filter(({ command }) => at(origins, command).iteration.length > 0);
  return looped.length === 0 ? 0 : timeOf(looped) / timeOf(gemms);
}

/** A copy engine takes none. */
function takesSms({ ranks }: Program, rank: number, index: number): boolean {
  return at(at(ranks, rank).commands, index).kind !== "copy";
}

/** Adds `time` in proportion to how long commands of each class ran. */
function share(path: Map<CommandClass, number>, ran: ReadonlyMap<CommandClass, number>, time: number): void {
  const total = [...ran.values()].reduce((sum, each) => sum + each, 0);
  if (total > 0) for (const [of, each] of ran) addTo(path, of, (time * each) / total);
}

function addTo<Of>(times: Map<Of, number>, of: Of, time: number): void {
  times.set(of, (times.get(of) ?? 0) + time);
}

// Kernels in peers' memory beside GEMMs that leave no SMs free on purpose: whether such a kernel finds SMs is up to the
// library's kernel for the GEMM, and the profile has it for few of them.

/**
 * Milliseconds of the rank's kernels in peers' memory that run beside a GEMM without an SM margin, or wait while one runs:
 * if they found SMs, they would run then.
 */
function timeBesideGemms(
  program: Program,
  trace: readonly TraceEvent[],
  { dependences, ready }: CommandTiming,
  rank: number,
): number {
  const { commands } = at(program.ranks, rank);
  const launches = trace.filter((event) => event.rank === rank && at(commands, event.command).kind === "launch");
  const ofClass = (of: string): readonly TraceEvent[] =>
    launches.filter(({ command }) => commandClassOf(program, rank, command) === of);
  const gemms = ofClass("gemms").filter(({ command }) => hasNoMargin(program, rank, command));
  return ofClass("reductionsInPeers").reduce((sum, { command, start, end }) => {
    const from = Math.min(start, at(ready, at(dependences.first, rank) + command));
    const beside = gemms.reduce(
      (time, gemm) => time + Math.max(0, Math.min(end, gemm.end) - Math.max(from, gemm.start)),
      0,
    );
    return sum + Math.min(end - start, beside);
  }, 0);
}

function hasNoMargin({ ranks }: Program, rank: number, index: number): boolean {
  const command = at(at(ranks, rank).commands, index);
  return command.kind === "launch" && (command.smMargin ?? 0) < measuredMargin;
}

/**
 * Explains a program: its time, what communication stays exposed and why, against the serial form of the same program (a
 * whole collective, then a whole GEMM). Predicted on the machine of a profile, without running it, or measured.
 */
import { serialOf } from "./serial-program.ts";
import { commandsOfRanks, type Program, reservedBytes } from "../commands/program.ts";
import { type AnyCompilation, compile, loweringOf, verified } from "../compile/compile.ts";
import { isFusionSource, type ProgramSource, type Signature } from "../compile/lower-all.ts";
import { rewritesOf, type Schedule } from "../compile/options/schedule.ts";
import { refusedLoops, reshardingsOfLowered } from "../compile/reshardings.ts";
import { withNames } from "../ir/origin.ts";
import type { Judge } from "../passes/moves/annotation-conflicts.ts";
import type { Resharding } from "../passes/moves/list-reshardings.ts";
import type { LoopRefusal } from "../passes/stream-loops/loop-refusals.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { simulate, type SimulateOptions } from "../simulate/simulate.ts";
import { at, invariant } from "../support/invariant.ts";
import type { TraceEvent } from "../trace/event-table.ts";
import { chooseFor, type KnownRegions } from "../tune/choose/choose.ts";
import type { ChooseOptions } from "../tune/choose/consider.ts";
import {
  type CompiledLayers,
  compileFewerLayers,
  type FewerLayers,
  further,
  furtherGemms,
  withFewerLayers,
} from "../tune/regions/fewer-layers.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";
import { type Alternative, alternatives, editedOrNull, leftOut, type LeftOutForm, worthIt } from "./alternatives.ts";
import { chosenForEdit, type Edited } from "./edited-choice.ts";
import type { AnnotationEdit } from "./edits.ts";
import { type ExplainedRun, explainRun, type PartOfRun, type TracedRun } from "./explain-run.ts";
import { intervalOf, type PredictedInterval } from "./interval.ts";
import { furtherPeakBytes } from "./layer-memory.ts";
import { equalEntries, furtherRun, withoutNumbers } from "./layers.ts";
import { exposedRefusals, isAloneCostly } from "./refusal-costs.ts";
import { withEndlessRates } from "./what-if.ts";
import { timeText } from "../support/wording.ts";
import { overlapOf } from "../trace/overlap.ts";

export interface ExplainOptions extends Omit<ChooseOptions, "schedule"> {
  /**
   * "auto": explains the schedule that is predicted to be the fastest. If omitted, "auto" for a Fusion without
   * `streams`, otherwise "as-written".
   */
  readonly schedule?: Schedule;
  /** Whether programs of many equal layers are explained by few of them (`Explanation.layers`); false if omitted. */
  readonly fewerLayers?: boolean;
}

export interface Explanation {
  /** Of the whole program, or of that with few of its layers. */
  readonly compilation: AnyCompilation;
  /** Null if the whole program was compiled. */
  readonly layers: ExplainedLayers | null;
  /** All candidates, where the schedule was chosen. */
  readonly choice: ScheduleChoice<AnyCompilation> | null;
  /** The measured run, if there is one, otherwise the predicted one. */
  readonly run: ExplainedRun;
  readonly isMeasured: boolean;
  /** The same run as predicted; null without a profile. */
  readonly predicted: ExplainedRun | null;
  /** Where the measured time of a run is expected; null without a profile. */
  readonly interval: PredictedInterval | null;
  /** Predicted milliseconds of the serial form; null for host programs, if it cannot be lowered, and without a profile. */
  readonly serial: number | null;
  /** The part of the serial form's time that latencies take, whatever the sizes; of a dump, of its own. Null without a profile. */
  readonly latencyShare: number | null;
  /** The user's names for the numbers of tensors in statements. */
  readonly named: (text: string) => string;
  /** What moves between devices, and why; null for host programs. */
  readonly reshardings: readonly Resharding[] | null;
  /** Why communication is in no loop with a kernel that could hide it; empty for host programs. */
  readonly refusals: readonly LoopRefusal[];
  /**
   * What changes would gain: of a chosen schedule, edits of the program, each with a schedule chosen for it. Null if they
   * were not predicted: of a large program, and with given options of few of its layers.
   */
  readonly alternatives: readonly Alternative[] | null;
  /** Forms that the choice of a schedule left out. */
  readonly leftOut: readonly LeftOutForm[];
  /** Bytes of inputs, outputs and temporaries of the rank that needs the most. */
  readonly peakBytes: number;
  /** Of a program with stages: the share of all devices' time in which they run no kernel. Null for others. */
  readonly bubble: number | null;
}

/** A traced run of a Compilation's Program. */
export interface MeasuredRun {
  readonly trace: readonly TraceEvent[];
  readonly milliseconds: number;
}

/**
 * Of a program of many equal layers, three were compiled, and two; each of the `missing` ones counts as what three take
 * more than two. Times and bytes of the explanation are those of the whole program, the rest is of three layers.
 */
export interface ExplainedLayers extends Pick<CompiledLayers, "missing"> {
  readonly few: Pick<Explanation, "run" | "reshardings" | "refusals" | "choice" | "compilation">;
}

/** Throws what `compile` and, with `schedule: "auto"`, `choose` throw. */
export function explain(source: ProgramSource, options: ExplainOptions, profile: MachineProfile): Explanation {
  const { fewerLayers = false, ...others } = options;
  const { schedule, ...given } = others;
  const layers = fewerLayers && isFusionSource(source) ? withFewerLayers(source.data()) : null;
  const compiled = compileToExplain(source, others, profile, layers);
  return explainCompiled(source, compiled, { ...given, ...rewritesOf(schedule), profile, measured: null });
}

export interface CompiledToExplain {
  readonly compilation: AnyCompilation;
  /** Null if the schedule was not chosen. */
  readonly choice: Explanation["choice"];
  /** Null if the whole program was compiled; otherwise `compilation` is `more`. */
  readonly layers: CompiledLayers | null;
  /** The regions that the choice was made of; none if omitted. */
  readonly known?: KnownRegions;
}

/**
 * What `explain` explains: few layers, where `fewer` has them and they stand for the others. Throws what `explain`
 * throws, and `bad-option` for a choice without a profile.
 */
export function compileToExplain(
  source: ProgramSource,
  { schedule, graph = true, ...options }: Omit<ExplainOptions, "fewerLayers">,
  profile: MachineProfile | null,
  fewer: FewerLayers | null = null,
): CompiledToExplain {
  const known: KnownRegions = new Map();
  const choice = chooseFor(schedule, source, { ...options, graph, verify: "off" }, profile, fewer, known);
  const written = { ...options, ...rewritesOf(schedule), verify: "off" } as const;
  const layers =
    choice !== null ? choice.layers : fewer === null || profile === null ? null : compileFewerLayers(fewer, written);
  const unverified = choice?.compilation ?? layers?.more.compilation ?? compile(source, written);
  const { onProgress } = options;
  const listening = onProgress === undefined ? {} : { onProgress };
  return {
    compilation: options.verify === "off" ? unverified : verified(unverified, listening),
    choice,
    layers,
    known,
  };
}

function latencyShare(program: Program, profile: MachineProfile, graph: boolean): number {
  const timeOn = (machine: MachineProfile): number => simulate(program, machine, { graph }).milliseconds;
  return timeOn(withEndlessRates(profile)) / timeOn(profile);
}

/** Whether the sizes say nothing of larger ones: most of the time is latency, to which chunks add. */
export function isTooSmall({ latencyShare }: Pick<Explanation, "latencyShare">): boolean {
  return latencyShare !== null && latencyShare > 0.5;
}

export interface ExplainCompiledOptions extends ChooseOptions {
  /** Null for a measured run on a machine without one. */
  readonly profile: MachineProfile | null;
  /** Null to explain the predicted run. */
  readonly measured: MeasuredRun | null;
  /** Whether to predict changes of large programs, too, and for all refusals. */
  readonly all?: boolean;
}

/** `compiled`: `source` with these options. */
export function explainCompiled(
  source: ProgramSource,
  compiled: CompiledToExplain,
  options: ExplainCompiledOptions,
): Explanation {
  const explanation = withoutChanges(source, compiled, options);
  return { ...explanation, alternatives: changesIn(source, compiled, options, explanation) };
}

type Unchanged = Omit<Explanation, "alternatives">;

function withoutChanges(
  source: ProgramSource,
  { compilation, choice, layers }: CompiledToExplain,
  options: ExplainCompiledOptions,
): Unchanged {
  const { profile, measured: _, all: __, graph: ___, ...compiling } = options;
  const serialProgram = ({ source: own, compilation: { program }, serial = null }: OneCompiled): Program | null => {
    const ranks = program.ranks.length;
    // Of one replica each, which other forms may have other ranks of.
    if (serial?.ranks.length === ranks) return serial;
    return profile === null ? null : serialOf(own, compiling, ranks);
  };
  if (layers === null || profile === null) {
    const whole = { source, compilation, choice };
    return explainOne(whole, serialProgram(whole), options);
  }
  const { missing } = layers;
  const [few, more] = [
    { ...layers.few, choice },
    { ...layers.more, choice, compilation },
  ];
  const [serialOfFew, serialOfMore] = [serialProgram(few), serialProgram(more)];
  const haveSerial = serialOfFew !== null && serialOfMore !== null;
  const gemms = {
    own: furtherGemms(few.compilation.program, more.compilation.program, missing, profile),
    serial: haveSerial ? furtherGemms(serialOfFew, serialOfMore, missing, profile) : undefined,
  };
  const [a, b] = [explainOne(few, serialOfFew, options, gemms), explainOne(more, serialOfMore, options, gemms)];
  const run = furtherRun(a.run, b.run, missing);
  return {
    ...b,
    layers: { missing, few: a },
    run,
    predicted: run,
    interval: intervalOf(run, profile),
    serial: a.serial === null || b.serial === null ? null : further(a.serial, b.serial, missing),
    peakBytes: furtherPeakBytes(few.compilation.program, more.compilation.program, missing),
  };
}

interface OneCompiled extends Pick<CompiledToExplain, "compilation" | "choice"> {
  readonly source: ProgramSource;
  /** Its serial form, if it is known. */
  readonly serial?: Program | null;
}

function explainOne(
  { source, compilation, choice }: OneCompiled,
  serial: Program | null,
  { profile, measured, graph = true, ...given }: ExplainCompiledOptions,
  gemms: PartOfRun | null = null,
): Unchanged {
  const { all: _, ...options } = given;
  const { program, sizes } = compilation;
  const lowering = loweringOf(compilation.options);
  // A choice that turned loops off had its reason in their times.
  const asked = choice === null ? lowering : { ...lowering, overlap: options.overlap ?? true };
  const explaining = { serial, graph, gemms: gemms ?? undefined };
  const simulating = (gemmsOfRun: readonly number[] | undefined): SimulateOptions =>
    gemmsOfRun === undefined ? { graph } : { graph, gemmsOfRun };
  const predicted =
    profile === null
      ? null
      : explainRun({ program, ...simulate(program, profile, simulating(gemms?.own)) }, profile, explaining);
  const run =
    measured === null
      ? predicted
      : explainRun(tracedRun(program, measured), profile, { ...explaining, isOnCores: options.on !== "cuda" });
  invariant(run !== null, "a run is measured, or predicted with a profile");
  const refusals = isFusionSource(source) ? refusedLoops(source, asked) : [];
  const bytes = program.ranks.map(reservedBytes);
  return {
    compilation,
    layers: null,
    choice,
    run,
    isMeasured: measured !== null,
    predicted,
    interval: predicted === null || profile === null ? null : intervalOf(predicted, profile),
    serial:
      serial === null || profile === null ? null : simulate(serial, profile, simulating(gemms?.serial)).milliseconds,
    latencyShare: profile === null ? null : latencyShare(serial ?? program, profile, graph),
    named: namesIn(source, compilation),
    reshardings: isFusionSource(source)
      ? reshardingsOfLowered(source, { ...lowering, sizes }, compilation.decomposed)
      : null,
    refusals,
    leftOut: choice === null ? [] : leftOut(source, choice, options),
    peakBytes: Math.max(...bytes),
    bubble: bubbleOf(program, run, compilation.signature),
  };
}

/** What changes gain; null if none is tried. */
function changesIn(
  source: ProgramSource,
  { compilation, choice, layers, known = new Map() }: CompiledToExplain,
  options: ExplainCompiledOptions,
  explanation: Unchanged,
): readonly Alternative[] | null {
  const { profile, measured: _, all = false, graph = true, ...compiling } = options;
  if (profile === null) return null;
  if (choice === null && layers !== null) return null;
  const mostCommands = choice === null ? fewCommands : someCommands;
  if (!all && commandsOfRanks(compilation.program.ranks) > mostCommands) return null;
  const run = explanation.predicted ?? explanation.run;
  const isTried = all || (isAloneCostly(run) && !(choice !== null && isTooSmall(explanation)));
  const costs = new Map(exposedRefusals({ ...explanation, run }).map(({ refusal, exposed }) => [refusal, exposed]));
  const costOf = (group: readonly LoopRefusal[]): number =>
    group.reduce((sum, each) => sum + (costs.get(each) ?? 0), 0);
  const groups = equalEntries(explanation, ({ refusals }) => refusals, refusalKey)
    .filter(({ entries }) => all || costOf(entries) > 0)
    .toSorted((a, b) => costOf(b.entries) - costOf(a.entries));
  const given = { ...compiling, graph };
  const { onProgress: __, ...quietly } = given;
  const chosen = (edit: AnnotationEdit): Edited | null =>
    isFusionSource(source) ? chosenForEdit({ source, layers, known }, edit, quietly, profile) : null;
  const of = { source: layers?.more.source ?? source, compilation, run, refusals: isTried ? groups : [] };
  return alternatives(
    { ...of, mostEdited: all ? Infinity : fewRefusals, chosen: choice === null ? null : chosen },
    given,
    profile,
  );
}

/**
 * Decides between annotations of a program by its predicted time, as `alternatives` are: compiled as the program was, and
 * better if they gain as much as a change has to. Null where times say nothing, or would take long to predict.
 */
export function judgeOfTimes(
  source: ProgramSource,
  { choice, layers, known = new Map() }: CompiledToExplain,
  options: ExplainCompiledOptions & { readonly profile: MachineProfile },
  explanation: Explanation,
): Judge | null {
  const { predicted, compilation } = explanation;
  const isLarge = layers !== null || commandsOfRanks(compilation.program.ranks) > someCommands;
  if (predicted === null || isLarge || isTooSmall(explanation)) return null;
  const now = predicted.milliseconds;
  const { profile, measured: _, all: __, onProgress: ___, graph = true, ...given } = options;
  const timeOf = (edit: AnnotationEdit): number | null => {
    if (!isFusionSource(source)) return null;
    if (choice !== null) {
      const of = { source, layers: null, known };
      return chosenForEdit(of, edit, { ...given, graph }, profile)?.milliseconds ?? null;
    }
    const compiled = editedOrNull(source, edit, given);
    return compiled === null ? null : simulate(compiled.program, profile, { graph }).milliseconds;
  };
  return {
    now,
    better: (changed) => {
      const time = timeOf({ text: "", apply: () => changed });
      return time === null || time > (1 - worthIt) * now ? null : time;
    },
    text: (time, before) => `${timeText(time)} predicted, now ${timeText(before)}`,
  };
}

function namesIn(source: ProgramSource, { hosts }: AnyCompilation): Explanation["named"] {
  if (!isFusionSource(source)) return (text) => text;
  const { tensors } = at(hosts, 0);
  return (text) => withNames(text, tensors);
}

/** Equal for those of equal layers. */
function refusalKey({ op, beside, because }: LoopRefusal): string {
  return withoutNumbers([op, beside, because].join());
}

/** Those that the text shows without --print all, and for which edits are tried. */
export const fewRefusals = 3;

/** Each alternative is compiled and simulated, which takes as long as the explanation itself. */
const fewCommands = 2000;

/** Of a chosen schedule, whose edits are fewer, and leave most regions as they are. */
const someCommands = 8000;

/** Ranks read their clocks a little apart, so the last event may end after the time of the run. */
function tracedRun(program: Program, { trace, milliseconds }: MeasuredRun): TracedRun {
  return { program, trace, milliseconds: trace.reduce((latest, { end }) => Math.max(latest, end), milliseconds) };
}

/* The bubble of a pipeline: devices of some stages have nothing to do while others work. */

/**
 * The share of all devices' time in which they run no kernel; null for a program without stages: inputs on meshes that
 * have no device in common.
 */
export function bubbleOf(
  program: Program,
  { trace, milliseconds }: Pick<TracedRun, "trace" | "milliseconds">,
  { tensors, inputs }: Signature,
): number | null {
  const meshes = new Set(inputs.flatMap((id) => tensors[id]?.mesh ?? []));
  const isStaged = [...meshes].some((a) => [...meshes].some((b) => !a.devices.some((device) => b.has(device))));
  if (!isStaged || milliseconds === 0) return null;
  const busy = overlapOf(program, trace).reduce((sum, { kernels }) => sum + kernels, 0);
  return 1 - busy / (program.ranks.length * milliseconds);
}

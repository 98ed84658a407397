/** Runs a program file with flags and returns a RunResult. Nothing is printed here. */
import type { Backend } from "../../backends/backend.ts";
import { chooseAttention } from "../../compile/choose-attention.ts";
import { loweringOf, requireLinked, targetOf } from "../../compile/compile.ts";
import { isFusionSource } from "../../compile/lower-all.ts";
import { placedData } from "../../compile/lower.ts";
import { loweringNames } from "../../compile/options.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import { pickOptions } from "../../compile/options/resolve.ts";
import { inputSizes } from "../../compile/program/input-sizes.ts";
import { drawInputs, drawSpecialInputs, requireInputMemory } from "../../compile/program/inputs.ts";
import { refusedLoops, reshardingsOfLowered } from "../../compile/reshardings.ts";
import { type Diagnostic, fail } from "../../diagnostics/diagnostic.ts";
import { MultiDeviceExecutor } from "../../executor/multi-device-executor.ts";
import { copiesOf, type OutputCopy } from "../../executor/output-copies.ts";
import type { TensorArgument } from "../../executor/tensor-arguments.ts";
import { print } from "../../host/print/print.ts";
import type { Parameters } from "../../host/program-file.ts";
import { indexLimits } from "../../ir/runs.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { World } from "../../launch/join-world.ts";
import { programHash } from "../../launch/exchange.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { termMagnitudes } from "../../oracle/term-magnitudes.ts";
import type { Arithmetic } from "../../oracle/tolerance.ts";
import type { Resharding } from "../../passes/moves/list-reshardings.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { LoopRefusal } from "../../passes/stream-loops/loop-refusals.ts";
import { at } from "../../support/invariant.ts";
import { chromeTraceText } from "../../trace/chrome/chrome-trace.ts";
import { reasonText } from "../../support/wording.ts";
import type { ExplainResult } from "../explain/explain-file.ts";
import { programOptions } from "../flags/compared-options.ts";
import { profileToChooseWith, requireProfileOf } from "../flags/profile.ts";
import type { ApartBuilding } from "../program/apart/build-apart.ts";
import { buildProgram } from "../program/build-program.ts";
import { compileFile } from "../program/compile-file.ts";
import { isDumpFile, requireNotLowered } from "../program/dump-file.ts";
import { requireMatchingReference } from "../program/matching-reference.ts";
import { modelSizes } from "../program/program-of-model.ts";
import { writeExplainReport } from "../report/explained-report.ts";
import { findInputFiles, readInputFiles, requireFileShapes, sizesWithFiles } from "../tensor-files/input-files.ts";
import { requireOutputPlace, writeOutputFiles } from "../tensor-files/output-files.ts";
import { requireOutput } from "../terminal/output-file.ts";
import type { ProgressStep } from "../terminal/progress.ts";
import { compareExpected, type Expectation, expectedOutputs, inputsFrom, wholeFiles } from "./expected.ts";
import { gatherRuns, type OneRun } from "./gather.ts";
import { checkGradients, type GradientCheck } from "./gradient-check.ts";
import {
  type CheckedOutput,
  checkOutputs,
  type OutputResult,
  outputResults,
  outputsByName,
  withGradientChecks,
  withSpecialChecks,
} from "./outputs.ts";
import type { RunFlags } from "./run-flags.ts";
import { requireTraceFile, runRepeatedly, type TraceFile, writeTraceFile } from "./run-repeatedly.ts";

/** Elements of inputs: the oracle takes about a microsecond for each. */
const mostEvaluated = 2 ** 24;

export interface RunResult {
  readonly file: string;
  readonly flags: RunFlags;
  readonly params: Parameters;
  readonly options: Partial<LoweringOptions>;
  readonly sizes: Sizes;
  /** The time of each run, measured by the back end. */
  readonly milliseconds: readonly number[];
  /** The time in which each run copied its inputs and outputs. */
  readonly copyMilliseconds: readonly number[];
  readonly outputs: readonly OutputResult[];
  /** The chosen schedule and the reason; null if none was to be chosen. */
  readonly choice: string | null;
  /** What moves between devices, and why; null for host programs. */
  readonly reshardings: readonly Resharding[] | null;
  /** Communication that is in no loop, of tensors or beside ops that the program puts into loops. */
  readonly notInLoop: readonly LoopRefusal[];
  /** Which attention is not one kernel, and why. */
  readonly notes: readonly Diagnostic[];
  /** The last run, explained; null without --print explain. */
  readonly explained: ExplainResult | null;
  /** The host program of rank 0 with --print host, otherwise null. */
  readonly host: string | null;
  /** The last run, which --trace and --print timeline show. */
  readonly last: OneRun;
  /** The written trace file; null without --trace. */
  readonly trace: TraceFile | null;
  /** The files of the outputs; empty without --out. */
  readonly written: readonly string[];
  /** The gradients among the outputs, or before them, beside slopes; empty without --check. */
  readonly gradients: readonly GradientCheck[];
  /** The outputs beside those of --expect; empty without it. */
  readonly expectations: readonly Expectation[];
  /** One `check-failed` for each output that differs, from the oracle or from --expect, and for each gradient. */
  readonly failures: readonly Diagnostic[];
}

/** Where a run happens. */
export interface RunPlace {
  readonly backend: Backend;
  /** The world of processes of which this is one; null if all ranks run in this one. */
  readonly world: World | null;
  /** The ranks of this process; null for all. */
  readonly localRanks: readonly number[] | null;
  /** The process, by its rank in the world, that holds a rank of the program. */
  readonly holderOf: (rank: number) => number;
}

export interface RunSetting extends RunPlace {
  /** Of a program file; null for a dump and a model file. */
  readonly building: ApartBuilding | null;
  readonly step: ProgressStep;
}

/** In a world, rank 0 gets the result of all ranks, and other ranks get null. */
export async function runFile(
  file: string,
  flags: RunFlags,
  own: CompileGiven,
  { backend, world, localRanks, holderOf, building, step }: RunSetting,
): Promise<RunResult | null> {
  requireTimesToExplain(flags);
  requireExplainedReport(flags);
  if (flags.report !== undefined) await requireOutput("--report", flags.report);
  if (flags.trace !== undefined) await requireTraceFile(flags.trace);
  // Rank 0 writes, perhaps on another machine.
  const place = (world?.rank ?? 0) === 0 ? await requireOutputPlace(flags) : null;
  const profile = await profileToChooseWith(flags);
  if (flags.explain && profile !== null) requireProfileOf(targetOf(flags.on), profile);
  const lowering = pickOptions(loweringNames, own);
  step(`loading ${file}`);
  requireNotLowered(file, lowering);
  const { source, signature, reference, model, params } = await buildProgram(file, flags, lowering, building);
  if (flags.check !== undefined && reference === null) nothingToCheckWith(file);
  const [whole, single] = wholeFiles(flags.inputs, model);
  const files = await findInputFiles(signature, single);
  const sizes = inputSizes(signature, sizesWithFiles(signature, files, modelSizes(model, flags.sizes)));
  requireFileShapes(signature, files, sizes);
  if (flags.check !== undefined && reference !== null) requireMatchingReference(reference.data(), signature, sizes);
  requireInputMemory(signature, sizes);
  if (flags.inputs.length > 0) step("reading inputs");
  const given = await inputsFrom(whole, signature, model, sizes, await readInputFiles(signature, files));
  const expected = flags.expect === undefined ? [] : await expectedOutputs(flags.expect, signature, model, sizes);
  const limits = reference === null ? new Map<number, number>() : indexLimits(reference.data(), sizes);
  step(`lowering for ${flags.devices} devices`);
  const { options: decided, notes } = chooseAttention(source, { ...own, on: flags.on }, backend.attentionObstacle);
  const {
    compiled,
    choice,
    options: compiling,
  } = await compileFile(file, source, flags, decided, sizes, profile, { onProgress: step });
  // As lowered: shardings spread to outputs without an annotation.
  const { signature: lowered } = compiled;
  // An interleaving is a tool for looking at any program, including a wrong one.
  const verify = flags.verify ?? (flags.interleaving === undefined ? "on" : "off");
  step("verifying");
  const executor = await MultiDeviceExecutor.create(requireLinked(compiled), {
    devices: flags.devices,
    on: backend,
    verify,
    onProgress: step,
    timeout: flags.timeout,
    ...(localRanks === null ? {} : { localRanks }),
  });
  /** The inputs and outputs of one more run, with special values among the inputs. */
  const runSpecial = async (): Promise<SpecialRun> => {
    step("running on special values");
    const inputs = drawSpecialInputs(signature, sizes, flags.seed, given, limits);
    const outputs: readonly TensorArgument[] = await executor.run(inputs, {
      trace: false,
      ...(world === null ? { gather: false } : {}),
    });
    const whole = world === null ? null : await gatherRuns(world, lowered, sizes, { outputs, runs: [] }, holderOf);
    return { inputs, outputs: whole?.outputs ?? outputs };
  };
  const explainRunOf = async ({ report }: OneRun): Promise<ExplainResult> => {
    step("explaining");
    const { explainCompiled } = await import("../../explain/explain.ts");
    const start = performance.now();
    const explained = { compilation: requireLinked(compiled), choice, layers: null };
    const explanation = explainCompiled(source, explained, {
      ...compiling,
      onProgress: step,
      // A traced run does not replay a graph.
      graph: false,
      profile,
      measured: report,
    });
    const whatIf = new Map<string, string>();
    return {
      file,
      flags: { ...flags, whatIf, all: false },
      params,
      sizes,
      profile,
      explanation,
      notes: [],
      chunks: [],
      milliseconds: performance.now() - start,
    };
  };
  const host = flags.printHost ? print(executor.hostProgram(0)) : null;
  const {
    inputs,
    all: ran,
    special,
  } = await closing(executor, world, async () => {
    step("preparing");
    await executor.prepare();
    step("drawing inputs");
    const inputs = drawInputs(signature, sizes, flags.seed, given, limits);
    const own = await runRepeatedly(executor, inputs, flags, world === null, step);
    const all = world === null ? own : await gatherRuns(world, lowered, sizes, own, holderOf);
    return { inputs, all, special: flags.check === undefined ? null : await runSpecial() };
  });
  if (ran === null) return null;
  const last = at(ran.runs, ran.runs.length - 1);
  const trace = flags.trace === undefined ? null : await writeTrace(flags.trace, last, flags, step);
  const explained = flags.explain ? await explainRunOf(last) : null;
  if (flags.report !== undefined && explained !== null) {
    step(`writing ${flags.report}`);
    await writeExplainReport(flags.report, explained);
  }
  const copies = copiesOf(lowered, sizes, ran.outputs);
  const written = place === null ? [] : await writeOutputFiles(place, outputsByName(lowered, copies));
  const expectations = compareExpected(expected, copies, (i) => {
    if (reference === null || inputs.reduce((sum, { data }) => sum + data.length, 0) > mostEvaluated) return null;
    step("evaluating the terms of sums that differ");
    const data = reference.data();
    return termMagnitudes(data, at(data.outputs, i), inputs, sizes);
  });
  const suspect = verify === "off" ? "unverified" : reference === source ? "braid" : "program";
  const checked = flags.check === undefined ? null : reference;
  // Attention by its definition, also where it runs as ops.
  const placed = checked && placedData(checked, { ...lowering, attention: "fused" });
  const check = (
    drawn: readonly Tensor[],
    results: readonly (readonly OutputCopy[])[],
    special: boolean,
  ): readonly CheckedOutput[] =>
    placed === null
      ? []
      : checkOutputs(placed, drawn, sizes, results, suspect, {
          arithmetic: { ...arithmeticOf(flags), skipsZeros: reference !== source },
          special,
          rowSeed: flags.check === "full" ? null : flags.seed,
          onOp: (done, of) => step("evaluating the oracle, by op", done, of),
        });
  if (checked !== null) step("comparing gradients");
  const setting = { seed: flags.seed, full: flags.check === "full" };
  const gradientChecks = checked === null ? [] : checkGradients(checked.data(), inputs, sizes, setting);
  const checks =
    special === null || placed === null
      ? null
      : withGradientChecks(
          withSpecialChecks(
            check(inputs, copies, false),
            check(special.inputs, copiesOf(lowered, sizes, special.outputs), true),
          ),
          placed.outputs,
          gradientChecks,
        );
  return {
    file,
    flags,
    params,
    options: lowering,
    sizes,
    milliseconds: ran.runs.map(({ report }) => report.milliseconds),
    copyMilliseconds: ran.runs.map(({ report }) => report.copyMilliseconds),
    outputs: outputResults(lowered, copies, checks),
    choice: choice === null ? null : reasonText(choice),
    reshardings: isFusionSource(source)
      ? reshardingsOfLowered(source, {
          ...loweringOf(requireLinked(compiled).options),
          sizes: Object.fromEntries(sizes),
        })
      : null,
    notInLoop: isFusionSource(source)
      ? refusedLoops(source, loweringOf(requireLinked(compiled).options)).filter(isAsked)
      : [],
    notes,
    explained,
    host,
    last,
    trace,
    written,
    gradients: gradientChecks,
    expectations,
    failures: [...(checks ?? []), ...gradientChecks, ...expectations].flatMap(({ failure }) => failure ?? []),
  };
}

/** A program without Stream axes asks for no loops, nor does `overlap=false`. */
function isAsked({ rule }: LoopRefusal): boolean {
  return rule !== "stream" && rule !== "overlap";
}

interface SpecialRun {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly TensorArgument[];
}

/** Libraries add in orders of their own: a BLAS, cuBLASLt and NCCL, whose extrema may drop NaN, too. */
function arithmeticOf({ on, blas, interleaving }: RunFlags): Arithmetic {
  return {
    blocksContractions: on !== "cuda" && (blas === "off" || interleaving !== undefined),
    keepsNaN: on !== "cuda",
  };
}

/**
 * Ranks in separate processes close together, before rank 0 checks results. A rank whose run failed does not close: its
 * streams may wait for a peer that never comes, and its process ends anyway.
 */
async function closing<T>(
  executor: MultiDeviceExecutor<TensorArgument>,
  world: World | null,
  work: () => Promise<T>,
): Promise<T> {
  try {
    const result = await work();
    await executor.close();
    return result;
  } catch (error) {
    if (world === null) await executor.close();
    throw error;
  }
}

function writeTrace(
  file: string,
  { program, report }: OneRun,
  flags: RunFlags,
  step: ProgressStep,
): Promise<TraceFile> {
  step(`writing ${file}`);
  const { devices } = flags;
  const on = targetOf(flags.on);
  const { milliseconds, trace, origins } = report;
  const run = { program: programHash(program), devices, on, milliseconds, options: programOptions(flags) };
  return writeTraceFile(file, chromeTraceText(program, trace, origins, run));
}

// Options that a run refuses, because the program or another option leaves them nothing to do.

/** Throws `option-value`. */
function nothingToCheckWith(file: string): never {
  return fail("option-value", "--check needs a reference, and this host program has none", {
    place: { kind: "option", text: "--check" },
    found: isDumpFile(file) ? `the dump ${file}` : `${file}: program(defaults, build) that returns a HostProgram`,
    expected: isDumpFile(file)
      ? "--reference FILE, where FILE returns a Fusion of the same inputs and outputs"
      : "program(defaults, build, { reference }) with a function that returns a Fusion of the same inputs and outputs",
    help: isDumpFile(file)
      ? "name a program file with --reference, or leave --check out"
      : "leave --check out, or name a reference",
  });
}

/** Throws `option-value`. */
function requireTimesToExplain({ explain, interleaving }: RunFlags): void {
  if (!explain || interleaving === undefined) return;
  fail("option-value", "a run with an interleaving has no times to explain: its streams take turns on one thread", {
    place: { kind: "option", text: "--print explain" },
    found: `--print explain with --interleaving ${interleaving}`,
    expected: "a run by the back end's own threads or GPUs",
    help: "remove --interleaving, or predict with braid explain",
  });
}

/** Throws `option-value`. */
function requireExplainedReport({ explain, report }: RunFlags): void {
  if (explain || report === undefined) return;
  fail("option-value", "the report of a run shows it explained, so it needs --print explain", {
    place: { kind: "option", text: `--report ${report}` },
    found: "--report without --print explain",
    expected: "--print explain --report FILE",
    help: "add --print explain, or leave --report out",
  });
}

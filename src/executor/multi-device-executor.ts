/**
 * Runs a program repeatedly. It compiles the program for each new set of sizes and prepares a back end. Every run
 * shards the inputs, executes and gathers the outputs.
 */
import type { Backend, Group } from "../backends/backend.ts";
import { chooseAttention } from "../compile/choose-attention.ts";
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  loweringOf,
  requireVerified,
  type Target,
  verified,
} from "../compile/compile.ts";
import { lowerAll, type Lowered, type ProgramSource } from "../compile/lower-all.ts";
import { requireOptions } from "../compile/options/resolve.ts";
import { rewritesOf, type Schedule } from "../compile/options/schedule.ts";
import { numbersByName } from "../compile/record.ts";
import { requireWholeNumber } from "../diagnostics/arguments.ts";
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import { type Diagnostic, DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { TensorId } from "../ir/domain.ts";
import { withOrigins } from "../ir/origin.ts";
import { refuseOpaque } from "../kernels/kernel-plan.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";
import type { MachineProfile } from "../simulate/machine-profile.ts";
import { clock } from "../support/clock.ts";
import { at } from "../support/invariant.ts";
import { chooseFor } from "../tune/choose/choose.ts";
import type { ScheduleChoice } from "../tune/choose/schedule-choice.ts";
import { type ExecutorOptions, resolveExecutorOptions, type RunOptions } from "./executor-options.ts";
import {
  bindTensors,
  type CallerTensor,
  createPreparedEntries,
  type ExecutorMemory,
  preparedBytes,
  type PreparedEntries,
  type PreparedEntry,
  readOutputs,
  requireOutputs,
  writeInputs,
} from "./prepared-entries.ts";
import {
  type InputArgument,
  type RunSizes,
  runSizes,
  type Shards,
  sizesKey,
  type TensorArgument,
} from "./tensor-arguments.ts";

/** No tensors for outputs are given, so the run makes new ones. */
export interface Unplaced {
  readonly outputs?: undefined;
}

/**
 * `create` compiles a program and opens a back end, `run` runs it on inputs, `close` frees what the executor holds.
 * `Output` is the default type of an output of `run`: a whole tensor, or shards with `localRanks`.
 */
export class MultiDeviceExecutor<Output extends TensorArgument = Tensor> {
  /** The chosen schedule and the reason; null without a choice. */
  readonly choice: ScheduleChoice<AnyCompilation> | null;
  /** With attention "auto" on GPUs: which attention is not one kernel, and why. */
  readonly notes: readonly Diagnostic[];
  readonly #lowered: Lowered;
  readonly #compileOptions: CompileOptions;
  /** Compiled at creation; null if runs must provide sizes or scalars. */
  readonly #compilation: AnyCompilation | null;
  readonly #group: Group;
  readonly #localRanks: readonly number[] | undefined;
  readonly #timeout: number;
  readonly #entries: PreparedEntries;
  /** Runs share buffers, so each waits for the previous one. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(
    { lowered, options, compilation, choice }: CompiledSource,
    group: Group,
    localRanks: readonly number[] | undefined,
    timeout: number,
    memoryBudget: number,
    notes: readonly Diagnostic[],
  ) {
    this.choice = choice;
    this.notes = notes;
    this.#lowered = lowered;
    this.#compileOptions = options;
    this.#compilation = compilation;
    this.#group = group;
    this.#localRanks = localRanks;
    this.#timeout = timeout;
    this.#entries = createPreparedEntries(memoryBudget);
  }

  /**
   * Compiles a Fusion or host programs (one for all ranks, one per rank, or a function of the rank) and opens the back
   * end. It also takes a Compilation, which keeps its options. Throws what `compile` throws, `bad-option`,
   * `device-count`, `backend-unavailable`, and the verifier's findings if all sizes are known.
   */
  static create(
    source: ProgramSource | AnyCompilation,
    options: ExecutorOptions & { readonly localRanks?: never },
  ): Promise<MultiDeviceExecutor>;
  static create(
    source: ProgramSource | AnyCompilation,
    options: ExecutorOptions & { readonly localRanks: readonly number[] },
  ): Promise<MultiDeviceExecutor<Shards>>;
  static create(
    source: ProgramSource | AnyCompilation,
    options: ExecutorOptions,
  ): Promise<MultiDeviceExecutor<TensorArgument>>;
  static async create(
    source: ProgramSource | AnyCompilation,
    options: ExecutorOptions,
  ): Promise<MultiDeviceExecutor<TensorArgument>> {
    const { on = "cpu", localRanks, timeout: _, schedule, profile = null, memoryBudget: __, ...given } = options;
    const { timeout, memoryBudget } = resolveExecutorOptions(options);
    const backend = await loadBackend(on);
    // Programs of constant sizes are checked before the back end opens.
    const target = { ...given, ...rewritesOf(schedule), on: backend.name === "cuda" ? "cuda" : "cpu" } as const;
    const { options: decided, notes } = chooseAttention(source, target, backend.attentionObstacle);
    const compiled = compileSource(source, decided, schedule, profile);
    const { hosts } = compiled.lowered;
    const group = await backend.open({
      world: hosts.length,
      localRanks: localRanks ?? hosts.map((_host, rank) => rank),
    });
    return new MultiDeviceExecutor(compiled, group, localRanks, timeout, memoryBudget, notes);
  }

  /** The host program of one rank. Throws `device-count` for a rank outside 0 to devices - 1. */
  hostProgram(rank: number): HostProgram {
    requireWholeNumber("hostProgram(rank)", rank, 0);
    const { hosts } = this.#lowered;
    return hosts[rank] ?? unknownRank(rank, hosts.length);
  }

  /**
   * One run. `inputs` has one entry per input of the program, in order: the whole row-major tensor, or one shard per
   * rank. A shard's shape is the whole shape with each sharded axis divided by its number of devices. Returns the
   * outputs in order: whole tensors, unless `options` asks for shards. The first run with new sizes or scalars compiles
   * and prepares a Program for them; later runs reuse it.
   *
   * An input may be null if an earlier run with these sizes gave it: it is not copied again, and an output that is
   * written over it (`alias`) stays there for the next run. In the results that output is null, too.
   *
   * Throws `input-count`, `input-shape`, `size-mismatch` and `device-count` for tensors that do not fit the program,
   * what `compile` and the verifier find for new sizes, and what the back end reports: `timed-out`, `stuck`,
   * `gpu-memory` and others.
   */
  run(
    inputs: readonly TensorArgument[],
    options?: RunOptions & Unplaced & { readonly gather?: never },
  ): Promise<Output[]>;
  run(inputs: readonly TensorArgument[], options: RunOptions & Unplaced & { readonly gather: true }): Promise<Tensor[]>;
  run(
    inputs: readonly TensorArgument[],
    options: RunOptions & Unplaced & { readonly gather: false },
  ): Promise<Shards[]>;
  run<T extends Tensor>(
    inputs: readonly TensorArgument[],
    options: RunOptions & { readonly outputs: readonly T[] },
  ): Promise<T[]>;
  run(
    inputs: readonly TensorArgument[],
    options: RunOptions & { readonly outputs: readonly Shards[] },
  ): Promise<Shards[]>;
  run(inputs: readonly TensorArgument[], options?: RunOptions): Promise<TensorArgument[]>;
  run(
    inputs: readonly InputArgument[],
    options?: RunOptions & Unplaced & { readonly gather?: never },
  ): Promise<(Output | null)[]>;
  run(inputs: readonly InputArgument[], options?: RunOptions): Promise<InputArgument[]>;
  run(inputs: readonly InputArgument[], options: RunOptions = {}): Promise<InputArgument[]> {
    const run = this.#last.then(() => this.#run(inputs, options));
    this.#last = run.catch(() => {});
    return run;
  }

  /**
   * Prepares the Program of the sizes that are known at creation, which the first run does otherwise. It shows whether
   * the memory suffices before there are inputs. Does nothing if runs must provide sizes. Throws what `run` throws when
   * it prepares.
   */
  prepare(): Promise<void> {
    const known = this.#compilation;
    const prepared = this.#last.then(async () => {
      if (this.#closed) closedExecutor();
      if (known !== null) await this.#entryFor({ sizes: known.sizes, scalars: numbersByName(known.options.scalars) });
    });
    this.#last = prepared.catch(() => {});
    return prepared;
  }

  /** What the executor holds for the sizes that it has run, within `memoryBudget`. */
  get memory(): ExecutorMemory {
    return this.#entries.memory();
  }

  /** Waits for the last run and frees what the back end holds. The executor cannot run afterwards. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#last;
    this.#entries.releaseAll();
    await this.#group.close();
  }

  async #run(inputs: readonly InputArgument[], options: RunOptions): Promise<InputArgument[]> {
    if (this.#closed) closedExecutor();
    const { devices, scalars } = this.#compileOptions;
    const given = { ...options, scalars: new Map([...numbersByName(scalars), ...numbersByName(options.scalars)]) };
    const { signature } = this.#lowered;
    const sizes = withOrigins(signature.tensors, () => runSizes(signature, inputs, devices, given));
    const entry = await this.#entryFor(sizes);
    const { outputs, onReport, trace = onReport !== undefined } = options;
    if (outputs !== undefined) {
      withOrigins(signature.tensors, () => {
        requireOutputs(entry, outputs);
      });
    }
    const start = clock();
    writeInputs(entry, inputs);
    const written = clock();
    const report = await entry.prepared.execute({
      timeout: this.#timeout,
      trace,
      together: onReport !== undefined,
    });
    const ended = clock();
    const results = readOutputs(entry, inputs, outputs, options.gather ?? this.#localRanks === undefined);
    onReport?.({ ...report, copyMilliseconds: written - start + (clock() - ended) }, entry.program);
    return results;
  }

  async #entryFor(run: Pick<RunSizes, "sizes" | "scalars">): Promise<PreparedEntry> {
    const key = sizesKey(run.sizes, run.scalars);
    return this.#entries.take(key) ?? (await this.#prepare(key, run));
  }

  async #prepare(key: string, { sizes, scalars }: Pick<RunSizes, "sizes" | "scalars">): Promise<PreparedEntry> {
    const known = this.#compilation;
    const isKnown = known !== null && sizesKey(known.sizes, numbersByName(known.options.scalars)) === key;
    const { program } = isKnown ? known : compileToRun(this.#lowered, { ...this.#compileOptions, sizes, scalars });
    for (const kernel of program.kernels) if (kernel.kind === "opaque") refuseOpaque(kernel);
    const bytes = preparedBytes(program, this.#localRanks);
    this.#entries.makeRoom(bytes);
    const prepared = await this.#group.prepare(program);
    const { tensors, inputs, outputs } = this.#lowered.signature;
    const bind = (role: "input" | "output", ids: readonly TensorId[]): readonly CallerTensor[] =>
      bindTensors(
        program,
        role,
        ids.map((id) => at(tensors, id)),
        sizes,
        this.#localRanks,
      );
    const { devices } = this.#compileOptions;
    const entry: PreparedEntry = {
      program,
      prepared,
      inputs: bind("input", inputs),
      outputs: bind("output", outputs),
      devices,
      given: new Set(),
    };
    this.#entries.add(key, entry, bytes);
    return entry;
  }
}

function unknownRank(rank: number, devices: number): never {
  return fail({
    code: "device-count",
    message: `there is no rank ${rank}`,
    place: { kind: "call", text: `hostProgram(${rank})` },
    found: String(rank),
    expected: `0 to ${devices - 1}`,
    help: "ask for a rank of this executor",
  });
}

function closedExecutor(): never {
  return fail({
    code: "bad-argument",
    message: "the executor is closed",
    place: { kind: "call", text: "run(inputs)" },
    found: "a run after close()",
    expected: "runs before close()",
    help: "create another executor",
  });
}

/**
 * Back ends by the names that `on` takes. Each is loaded when it is first used, so that a browser loads none that need
 * Node.
 */
const loaders: { readonly [K in Target]: () => Promise<Backend> } = {
  cpu: async () => (await import("../cpu.ts")).cpuBackend,
  cuda: async () => (await import("../cuda.ts")).cudaBackend,
};

/** Returns a given back end, or loads the one of that name. Throws `bad-option` for an unknown name. */
async function loadBackend(on: Target | Backend): Promise<Backend> {
  if (typeof on !== "string") return on;
  requireOptions(["on"], { on });
  return Object.hasOwn(loaders, on) ? loaders[on]() : noBackend(on);
}

/** The command line has more names. */
function noBackend(on: string): never {
  return fail({
    code: "bad-option",
    message: "the executor loads no back end of that name",
    place: { kind: "call", text: "MultiDeviceExecutor.create(source, { on })" },
    found: on,
    expected: `${Object.keys(loaders).join(", ")}, or a back end`,
    help: "for several processes pass `joinMpi().backend` of braid/mpi",
  });
}

// Compiles the source of an executor: host programs of all ranks, and the Program if it is known before the first run.

interface CompiledSource {
  readonly lowered: Lowered;
  /** Options for compiling with sizes that only a run knows. */
  readonly options: CompileOptions;
  /** Null if a run has to give sizes or scalars. */
  readonly compilation: AnyCompilation | null;
  readonly choice: ScheduleChoice<AnyCompilation> | null;
}

/**
 * A Compilation keeps its own options. Throws what `compile` and `choose` throw, and the verifier's findings.
 */
function compileSource(
  source: ProgramSource | AnyCompilation,
  options: CompileOptions,
  schedule: Schedule | undefined,
  profile: MachineProfile | null,
): CompiledSource {
  if (isCompilation(source)) return known(source, options, null);
  const choice = chooseFor(schedule, source, { ...options, verify: "off" }, profile);
  if (choice !== null) return known(choice.compilation, options, choice);
  const lowered = lowerAll(source, { devices: options.devices, ...loweringOf(options) });
  return { lowered, options, compilation: compileIfConstant(lowered, options), choice: null };
}

/** Throws the verifier's findings, unless `verify` is off. */
function compileToRun(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation {
  return requireVerified(compile(source, { ...options, notes: false }));
}

function known(
  compilation: AnyCompilation,
  { devices, verify = "on", onProgress }: CompileOptions,
  choice: CompiledSource["choice"],
): CompiledSource {
  const lowered = lowerAll(compilation, { devices });
  if (verify !== "off") {
    const listening = onProgress === undefined ? {} : { onProgress };
    const verifying = { notes: false, full: verify === "full", ...listening };
    requireVerified(compilation.report === null ? verified(compilation, verifying) : compilation);
  }
  return { lowered, options: { ...compilation.options, verify }, compilation, choice };
}

/** A run may provide these later. */
const givenByRuns: readonly DiagnosticCode[] = ["size-missing", "scalar-missing"];

function compileIfConstant(lowered: Lowered, options: CompileOptions): AnyCompilation | null {
  try {
    return compileToRun(lowered, options);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => givenByRuns.includes(code))) {
      return null;
    }
    throw error;
  }
}

function isCompilation(source: ProgramSource | AnyCompilation): source is AnyCompilation {
  return typeof source === "object" && "recorded" in source;
}

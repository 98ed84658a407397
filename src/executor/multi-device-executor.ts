/**
 * The whole flow behind one object: lowers a Fusion once per rank (or takes host programs as they are), records and links for each set of sizes it meets, prepares a
 * back end, and on every run shards the inputs, executes and gathers the outputs.
 */
import type { Backend, Group, Prepared, RunReport } from "../backends/backend.ts";
import type { PlacedBuffer } from "../commands/buffer.ts";
import type { Program } from "../commands/program.ts";
import type { DiagnosticCode } from "../diagnostics/codes.ts";
import { DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/whole-number.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { Tensor as IrTensor } from "../ir/domain.ts";
import { requireMeshSizes, shapeOf, type Sizes, sizesFromMeshes, sizesFromShapes } from "../ir/sizes.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../numerics/host-tensor.ts";
import type { LowerOptions } from "../passes/lower.ts";
import type { NamedNumbers } from "../record/options.ts";
import type { CopyLane } from "../schedule/copy-lane.ts";
import { at, invariant } from "../support/invariant.ts";
import { isOneOf } from "../support/is-one-of.ts";
import { type BackendName, loadBackend } from "./backend-by-name.ts";
import { type LinkOptions, linkPrograms, type VerifyUse, verifyUses } from "./linked-program.ts";
import { requireMeshDevices } from "./mesh-devices.ts";
import { type ProgramSource, type RankPrograms, rankPrograms, type Signature } from "./program-source.ts";
import { holders, packShard, shardOf, shardShape, unpackShard, unshardInto } from "./shard.ts";
import { isSharded, requireCount, requireShardShapes, type TensorArgument, wholeShape } from "./tensor-arguments.ts";

export interface ExecutorOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** The number of devices: ranks 0 .. devices-1. At least as many as the Fusion's meshes name. */
  readonly devices: number;
  /** A back end or its name; "cpu" if not given. */
  readonly on?: BackendName | Backend;
  /** `numberOfStreams`: how many worker streams a Stream loop alternates over; 4 if not given. */
  readonly streams?: number;
  /**
   * The ranks that this process holds, for a back end with one process per device; all if not given. Every process makes the same
   * calls with the same whole inputs, and gets the shards of its own ranks: outputs are not gathered from other processes.
   */
  readonly localRanks?: readonly number[];
  /**
   * `dedicated`: copies from and to peers run on a stream of their own on each device. If not given, so with `on: "cuda"` and not
   * elsewhere.
   */
  readonly copyLane?: CopyLane;
  /**
   * Whether a Program is proven free of races, deadlocks and misuse of memory before it first runs (docs/verifier.md), and refused with
   * the findings if it is not; "on" if not given.
   */
  readonly verify?: VerifyUse;
  /** Milliseconds after which a run ends with `timed-out`; 30,000 if not given. */
  readonly timeout?: number;
}

export interface RunOptions {
  /** Tensors (or shards) to write the results into; they are what `run` then returns. */
  readonly outputs?: readonly TensorArgument[] | undefined;
  /** false, and with `localRanks`: return one shard per rank (null for one that this process does not hold) instead of whole outputs. */
  readonly gather?: boolean;
  /** Values of the scalars that the host program takes, by name: they may steer loops and branches. Other values are another Program. */
  readonly scalars?: NamedNumbers;
  /** Sizes of symbolic extents that no input has, by name. */
  readonly sizes?: NamedNumbers;
  /** Called with the back end's report when the run has ended. */
  readonly onReport?: (report: RunReport, program: Program) => void;
  /** Whether the report is traced; so, if not given, where there is an `onReport`. A traced run on GPUs is no graph. */
  readonly trace?: boolean;
}

/** A Program prepared for one set of sizes. */
interface Entry {
  readonly program: Program;
  readonly prepared: Prepared;
  readonly inputShapes: readonly (readonly number[])[];
  readonly outputShapes: readonly (readonly number[])[];
}

export class MultiDeviceExecutor {
  readonly #signature: Signature;
  readonly #hosts: readonly HostProgram[];
  readonly #group: Group;
  readonly #options: ExecutorOptions;
  readonly #entries = new Map<string, Promise<Entry>>();
  /** What was linked at creation, by the key of its sizes. */
  readonly #linked: ReadonlyMap<string, Program>;
  /** Runs share buffers, so they follow one another. */
  #last: Promise<unknown> = Promise.resolve();
  #closed = false;

  private constructor(
    { signature, hosts }: RankPrograms,
    group: Group,
    options: ExecutorOptions,
    linked: ReadonlyMap<string, Program>,
  ) {
    this.#linked = linked;
    this.#signature = signature;
    this.#hosts = hosts;
    this.#group = group;
    this.#options = options;
  }

  /**
   * Lowers a Fusion for every rank, or takes host programs (one for all ranks, one of each, or a function of the rank), and opens
   * the back end. Throws what lowering throws, `host-programs-differ`, `device-count` and `mesh-too-large`, and the verifier's findings
   * where all sizes are known.
   */
  static async create(source: ProgramSource, options: ExecutorOptions): Promise<MultiDeviceExecutor> {
    const { devices, on = "cpu", streams, timeout, localRanks, copyLane, verify, ...lowering } = options;
    requireWholeNumber("MultiDeviceExecutor.create(fusion, { devices })", devices, 1);
    if (streams !== undefined) requireWholeNumber("MultiDeviceExecutor.create(fusion, { streams })", streams, 1);
    for (const rank of localRanks ?? []) requireLocalRank(rank, devices);
    if (timeout !== undefined) requireWholeNumber("MultiDeviceExecutor.create(fusion, { timeout })", timeout, 1);
    if (verify !== undefined) requireVerifyUse(verify);
    const programs = rankPrograms(source, devices, lowering);
    const { signature, hosts } = programs;
    requireMeshDevices(signature.tensors, devices);
    const backend = await loadBackend(on);
    const resolved = { ...options, copyLane: copyLane ?? (backend.name === "cuda" ? "dedicated" : "inline") } as const;
    const linked = linkedIfConstant(programs, resolved);
    const group = await backend.open({ world: devices, localRanks: localRanks ?? hosts.map((_, rank) => rank) });
    return new MultiDeviceExecutor(programs, group, resolved, linked);
  }

  /** The host program of one rank. */
  hostProgram(rank: number): HostProgram {
    requireWholeNumber("hostProgram(rank)", rank, 0);
    return this.#hosts[rank] ?? unknownRank(rank, this.#hosts.length);
  }

  /**
   * One run. `inputs` holds, per input of the program, the whole tensor or one shard per rank; the result holds the whole outputs
   * (or what `options` asks for). Sizes met before run what was prepared then; new sizes are recorded, linked and prepared.
   */
  run(inputs: readonly TensorArgument[], options: RunOptions = {}): Promise<TensorArgument[]> {
    const run = this.#last.then(() => this.#run(inputs, options));
    this.#last = run.catch(() => {});
    return run;
  }

  /** Frees what the back end holds. The executor cannot run afterwards. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#last;
    for (const entry of this.#entries.values()) {
      const settled = await entry.catch(() => null);
      settled?.prepared.release();
    }
    this.#entries.clear();
    await this.#group.close();
  }

  async #run(inputs: readonly TensorArgument[], options: RunOptions): Promise<TensorArgument[]> {
    if (this.#closed) closedExecutor();
    const entry = await this.#entryFor(inputs, options);
    const { program, prepared } = entry;
    const given = options.outputs;
    if (given !== undefined) this.#requireOutputs(entry, given);
    for (const buffer of this.#boundBuffers(program, "input")) {
      const position = positionOf(buffer);
      const tensor = this.#tensor(this.#signature.inputs, position);
      const argument = at(inputs, position);
      const bytes = isSharded(argument)
        ? packShard(tensor, at(entry.inputShapes, position), shardFor(argument, buffer.rank))
        : shardOf(tensor, at(entry.inputShapes, position), tensorBytes(argument), buffer.rank);
      prepared.write(buffer.id, bytes);
    }
    const report = await prepared.execute({
      timeout: this.#options.timeout ?? 30_000,
      trace: options.trace ?? options.onReport !== undefined,
    });
    options.onReport?.(report, program);
    return this.#readOutputs(entry, given, options.gather ?? this.#options.localRanks === undefined);
  }

  async #entryFor(inputs: readonly TensorArgument[], { scalars, sizes: given }: RunOptions): Promise<Entry> {
    const tensors = this.#signature.inputs.map((id) => at(this.#signature.tensors, id));
    requireCount("input", tensors, inputs);
    const shapes = tensors.map((tensor, i) => wholeShape("input", i, tensor, at(inputs, i), this.#options.devices));
    const sizes = new Map([
      ...sizesFromMeshes(this.#signature.tensors),
      ...entriesOf(given),
      ...sizesFromShapes(tensors, shapes),
    ]);
    requireMeshSizes(this.#signature.tensors, sizes);
    tensors.forEach((tensor, i) => requireShardShapes("input", i, tensor, at(shapes, i), at(inputs, i)));
    const key = keyOf(sizes, entriesOf(scalars));
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const made = this.#prepare(key, sizes, entriesOf(scalars), shapes);
    this.#entries.set(key, made);
    // A failed preparation must not be remembered: the next run reports it afresh.
    made.catch(() => this.#entries.delete(key));
    return made;
  }

  async #prepare(
    key: string,
    sizes: Sizes,
    scalars: readonly (readonly [string, number])[],
    inputShapes: readonly (readonly number[])[],
  ): Promise<Entry> {
    const program =
      this.#linked.get(key) ?? linkPrograms(this.#hosts, sizes, new Map(scalars), linkOptions(this.#options));
    const prepared = await this.#group.prepare(program);
    const outputShapes = this.#signature.outputs.map((id) => shapeOf(at(this.#signature.tensors, id), sizes));
    return { program, prepared, inputShapes, outputShapes };
  }

  /** Of the ranks that this process holds. */
  #boundBuffers(program: Program, role: PlacedBuffer["role"]): readonly PlacedBuffer[] {
    const { localRanks } = this.#options;
    return program.buffers.filter((buffer) => buffer.role === role && (localRanks?.includes(buffer.rank) ?? true));
  }

  #requireOutputs(entry: Entry, given: readonly TensorArgument[]): void {
    const tensors = this.#signature.outputs.map((id) => at(this.#signature.tensors, id));
    requireCount("output", tensors, given);
    tensors.forEach((tensor, i) => {
      wholeShape("output", i, tensor, at(given, i), this.#options.devices);
      requireShardShapes("output", i, tensor, at(entry.outputShapes, i), at(given, i));
    });
  }

  #readOutputs(
    { program, prepared, outputShapes }: Entry,
    given: readonly TensorArgument[] | undefined,
    gather: boolean,
  ): TensorArgument[] {
    const buffers = this.#boundBuffers(program, "output");
    return this.#signature.outputs.map((_, position) => {
      const tensor = this.#tensor(this.#signature.outputs, position);
      const shape = at(outputShapes, position);
      const bufferOn = new Map(
        buffers.filter((buffer) => positionOf(buffer) === position).map((buffer) => [buffer.rank, buffer]),
      );
      const into = given?.[position];
      if (into === undefined ? !gather : isSharded(into)) {
        const local = shardShape(tensor, shape);
        return Array.from({ length: this.#options.devices }, (_unused, rank): Tensor | null => {
          const buffer = bufferOn.get(rank);
          if (buffer === undefined) return null;
          const shard = (into !== undefined && isSharded(into) ? into[rank] : null) ?? emptyTensor(tensor.dtype, local);
          unpackShard(tensor, shape, prepared.read(buffer.id), shard);
          return shard;
        });
      }
      const whole = into !== undefined && !isSharded(into) ? into : emptyTensor(tensor.dtype, shape);
      for (const rank of holders(tensor)) {
        const buffer = bufferOn.get(rank);
        if (buffer !== undefined) unshardInto(tensor, shape, prepared.read(buffer.id), rank, tensorBytes(whole));
      }
      return whole;
    });
  }

  #tensor(ids: readonly IrTensor["id"][], position: number): IrTensor {
    return at(this.#signature.tensors, at(ids, position));
  }
}

function linkOptions({
  streams = 4,
  p2pProtocol = "get",
  copyLane = "inline",
  verify = "on",
}: ExecutorOptions): LinkOptions {
  return { numberOfStreams: streams, p2pProtocol, copyLane, verify };
}

function keyOf(sizes: Sizes, scalars: readonly (readonly [string, number])[]): string {
  return [...sizes, "scalars", ...scalars].join(" ");
}

/** What a run may still give. */
const givenByRuns: readonly DiagnosticCode[] = ["size-missing", "scalar-missing"];

/** The Program of sizes that are known without inputs, so that `create` refuses what record, link and the verifier find in it. */
function linkedIfConstant({ signature, hosts }: RankPrograms, options: ExecutorOptions): ReadonlyMap<string, Program> {
  const sizes = sizesFromMeshes(signature.tensors);
  try {
    return new Map([[keyOf(sizes, []), linkPrograms(hosts, sizes, new Map(), linkOptions(options))]]);
  } catch (error) {
    if (!(error instanceof DiagnosticError) || !error.diagnostics.every(({ code }) => givenByRuns.includes(code))) {
      throw error;
    }
    return new Map();
  }
}

/** That it is there was checked: buffers exist only on the tensor's devices. */
function shardFor(shards: readonly (Tensor | null)[], rank: number): Tensor {
  const shard = shards[rank] ?? null;
  invariant(shard !== null, "every device of the mesh has a shard", { rank });
  return shard;
}

function positionOf(buffer: PlacedBuffer): number {
  return buffer.position ?? -1;
}

function entriesOf(numbers: NamedNumbers = new Map()): readonly (readonly [string, number])[] {
  return numbers instanceof Map ? [...numbers] : Object.entries(numbers);
}

function requireLocalRank(rank: number, devices: number): void {
  requireWholeNumber("MultiDeviceExecutor.create(fusion, { localRanks })", rank, 0);
  if (rank < devices) return;
  fail({
    code: "device-count",
    message: `there is no rank ${rank}`,
    place: { kind: "call", text: "MultiDeviceExecutor.create(fusion, { localRanks })" },
    found: String(rank),
    expected: `0 to ${devices - 1}`,
    help: "name ranks of this world",
  });
}

function requireVerifyUse(verify: string): void {
  if (isOneOf(verifyUses, verify)) return;
  fail({
    code: "bad-argument",
    message: "verify is on or off",
    place: { kind: "call", text: "MultiDeviceExecutor.create(fusion, { verify })" },
    found: String(verify),
    expected: verifyUses.join(" or "),
    help: "leave it out to verify",
  });
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

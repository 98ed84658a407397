/**
 * The whole flow behind one object: lowers a Fusion once per rank (or takes host programs as they are), records and links for each set of sizes it meets, prepares a
 * back end, and on every run shards the inputs, executes and gathers the outputs.
 */
import type { Group } from "../backends/backend.ts";
import type { Program } from "../commands/program.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/whole-number.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { TensorId } from "../ir/domain.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { at } from "../support/invariant.ts";
import { loadBackend } from "./backend-by-name.ts";
import { type ExecutorOptions, requireExecutorOptions, type RunOptions } from "./executor-options.ts";
import { requireSchedule } from "../schedule/schedule.ts";
import type { ScheduleChoice } from "../tune/choose/choose.ts";
import { linkIfConstant, type LinkOptions, linkPrograms } from "../compile/compile.ts";
import { requireMeshDevices } from "../compile/mesh-devices.ts";
import {
  bindTensors,
  type BoundTensor,
  type PreparedEntry,
  readOutputs,
  requireOutputs,
  writeInputs,
} from "./prepared-entry.ts";
import { type ProgramSource, type RankPrograms, rankPrograms, type Signature } from "../compile/program-source.ts";
import { type RunSizes, runSizes, sizesKey } from "./run-sizes.ts";
import type { TensorArgument } from "./tensor-arguments.ts";
import { withChoice } from "./with-choice.ts";

/** Runs one program again and again: `create` lowers it, `run` takes whole tensors or shards and gives whole ones, `close` frees what it holds. */
export class MultiDeviceExecutor {
  /** What `scheduleChoice: "auto"` chose, and why; null without it. */
  readonly choice: ScheduleChoice | null;
  readonly #signature: Signature;
  readonly #hosts: readonly HostProgram[];
  readonly #group: Group;
  readonly #options: ExecutorOptions;
  readonly #entries = new Map<string, Promise<PreparedEntry>>();
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
    choice: ScheduleChoice | null,
  ) {
    this.choice = choice;
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
  static async create(source: ProgramSource, given: ExecutorOptions): Promise<MultiDeviceExecutor> {
    const { options, choice } = withChoice(source, given);
    const { devices, on = "cpu", streams, timeout, localRanks, copyLane, schedule = {}, verify, ...lowering } = options;
    requireExecutorOptions({ devices, streams, timeout, localRanks, verify });
    requireSchedule(schedule);
    const programs = rankPrograms(source, devices, lowering);
    const { signature, hosts } = programs;
    requireMeshDevices(signature.tensors, devices);
    const backend = await loadBackend(on);
    const resolved = { ...options, copyLane: copyLane ?? (backend.name === "cuda" ? "dedicated" : "inline") } as const;
    const sizes = sizesFromMeshes(signature.tensors);
    // What record, link and the verifier find in constant sizes is said before the back end opens.
    const program = linkIfConstant(hosts, sizes, linkOptions(resolved));
    const linked = new Map(program === null ? [] : [[sizesKey(sizes, new Map()), program]]);
    const group = await backend.open({ world: devices, localRanks: localRanks ?? hosts.map((_, rank) => rank) });
    return new MultiDeviceExecutor(programs, group, resolved, linked, choice);
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
    const entry = await this.#entryFor(runSizes(this.#signature, inputs, this.#options.devices, options));
    const { outputs, onReport, trace = onReport !== undefined } = options;
    if (outputs !== undefined) requireOutputs(entry, outputs);
    writeInputs(entry, inputs);
    const report = await entry.prepared.execute({ timeout: this.#options.timeout ?? 30_000, trace });
    onReport?.(report, entry.program);
    return readOutputs(entry, outputs, options.gather ?? this.#options.localRanks === undefined);
  }

  async #entryFor(run: RunSizes): Promise<PreparedEntry> {
    const key = sizesKey(run.sizes, run.scalars);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const made = this.#prepare(key, run);
    this.#entries.set(key, made);
    // A failed preparation must not be remembered: the next run reports it afresh.
    made.catch(() => this.#entries.delete(key));
    return made;
  }

  async #prepare(key: string, { sizes, scalars }: RunSizes): Promise<PreparedEntry> {
    const program = this.#linked.get(key) ?? linkPrograms(this.#hosts, sizes, scalars, linkOptions(this.#options));
    const prepared = await this.#group.prepare(program);
    const bind = (role: "input" | "output", ids: readonly TensorId[]): readonly BoundTensor[] => {
      const tensors = ids.map((id) => at(this.#signature.tensors, id));
      return bindTensors(program, role, tensors, sizes, this.#options.localRanks);
    };
    const inputs = bind("input", this.#signature.inputs);
    const outputs = bind("output", this.#signature.outputs);
    return { program, prepared, inputs, outputs, devices: this.#options.devices };
  }
}

function linkOptions({
  streams = 4,
  protocol = "get",
  copyLane = "inline",
  schedule = {},
  verify = "on",
}: ExecutorOptions): LinkOptions {
  return { streams, protocol, copyLane, schedule, verify };
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

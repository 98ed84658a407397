/** Times one small program on the machine. */
import type { BufferId } from "../../commands/buffer.ts";
import type { Program } from "../../commands/program.ts";
import { compile, requireVerified, verified } from "../../compile/compile.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { OptionValue } from "../../compile/options.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { at } from "../../support/invariant.ts";

/** The parts of a back end's Prepared that a probe uses. */
interface ProbeRun {
  write(buffer: BufferId, bytes: Uint8Array): void;
  execute(options: { readonly timeout: number; readonly deviceTime: boolean }): Promise<{
    readonly milliseconds: number;
    readonly hostMilliseconds?: number;
    readonly deviceMilliseconds?: number;
  }>;
  release(): void;
}

/** An open Group of a back end, and a barrier of its ranks. */
export interface ProbePlace {
  readonly group: { prepare(program: Program): Promise<ProbeRun> };
  /** The ranks that this process holds. */
  readonly ranks: readonly number[];
  /** A barrier of all ranks, on their devices too if they have some. */
  readonly barrier: () => Promise<void>;
  /** Seconds for one run. */
  readonly timeout: number;
}

/** Whether runs replay CUDA graphs, on back ends that have them. */
export type ProbeGraph = Exclude<OptionValue<"graph">, "on">;

export interface ProbeHost extends ProbeHosts {
  readonly placeFor: (graph: ProbeGraph) => Promise<ProbePlace>;
  /** Collective: the numbers of every rank, in rank order. */
  readonly gather: (own: readonly number[]) => Promise<readonly (readonly number[])[]>;
  /** Fills `bytes` with random elements, the same for the same name. */
  readonly fill: (dtype: DType, name: string, bytes: Uint8Array) => void;
}

export interface ProbeOptions {
  readonly lowering?: Partial<LoweringOptions>;
  readonly streams?: number;
  readonly schedule?: ScheduleOptions;
  /** Applied after the schedule. */
  readonly rewrite?: (program: Program) => Program;
  /** "auto" if omitted. */
  readonly graph?: ProbeGraph;
  /** "within" if omitted. */
  readonly scope?: ProbeScope;
}

export interface Probed {
  /** Microseconds of a run on its slowest rank: the least of all runs and the median. */
  readonly least: number;
  readonly median: number;
  /** The least microseconds of the host to issue a run; 0 if the back end does not report it. */
  readonly host: number;
  /** The number of commands of rank 0. */
  readonly commands: number;
}

const warmUp = 5;
const runs = 31;

/** Collective: all ranks call it together. Throws what recording and the back end throw. */
export async function probe(host: ProbeHost, fusion: Fusion, options: ProbeOptions = {}): Promise<Probed> {
  const { lowering = {}, streams = 4, schedule = {}, graph = "auto", rewrite, scope = "within" } = options;
  const { devices, hosts } = host;
  const machine = { devices: devices * hosts, devicesPerHost: devices };
  const compiled = requireVerified(
    compile(onHosts(fusion, host, scope), { ...lowering, ...machine, streams, schedule, notes: false }),
  );
  const program = rewrite?.(compiled.program) ?? compiled.program;
  if (program !== compiled.program) requireVerified(verified({ ...compiled, program }, { notes: false }));
  const place = await host.placeFor(graph);
  const prepared = await place.group.prepare(program);
  try {
    for (const { id, role, rank, dtype, bytes } of program.buffers) {
      if (role !== "input" || !place.ranks.includes(rank)) continue;
      const data = new Uint8Array(bytes);
      host.fill(dtype, `input ${id}`, data);
      prepared.write(id, data);
    }
    const own: number[] = [];
    for (let run = 0; run < warmUp + runs; run++) {
      await place.barrier();
      const report = await prepared.execute({ timeout: place.timeout, deviceTime: true });
      if (run >= warmUp) {
        own.push(1000 * (report.deviceMilliseconds ?? report.milliseconds), 1000 * (report.hostMilliseconds ?? 0));
      }
    }
    const all = await host.gather(own);
    const slowest = own.map((_, i) => Math.max(...all.map((each) => at(each, i))));
    const times = slowest.filter((_, i) => i % 2 === 0).sort((a, b) => a - b);
    return {
      least: at(times, 0),
      median: at(times, times.length >> 1),
      host: Math.min(...slowest.filter((_, i) => i % 2 === 1)),
      commands: at(program.ranks, 0).commands.length,
    };
  } finally {
    prepared.release();
  }
}

// Probes on several hosts. A probe is written for the devices of one host, 0 .. n-1, and runs on every host at once; or
// for one device of each host, and runs once for each place on a host, as all of them use the network together.

export interface ProbeHosts {
  /** Of each host. */
  readonly devices: number;
  readonly hosts: number;
}

/** Among the devices of a host, or among hosts. */
export type ProbeScope = "within" | "between";

export function onHosts(fusion: HasFusionData, { devices, hosts }: ProbeHosts, scope: ProbeScope): HasFusionData {
  if (hosts === 1) return fusion;
  const rows =
    scope === "within"
      ? list(hosts).map((host) => list(devices).map((place) => host * devices + place))
      : list(devices).map((place) => list(hosts).map((host) => host * devices + place));
  const mesh = new DeviceMesh(rows);
  const data = fusion.data();
  const tensors = data.tensors.map((tensor) => ({ ...tensor, mesh: tensor.mesh === null ? null : mesh }));
  const placed: FusionData = { ...data, tensors };
  return { data: () => placed };
}

function list(count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => i);
}

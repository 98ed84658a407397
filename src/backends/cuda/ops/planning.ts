/** The inputs from which device operations of commands are planned, and the forms of a command's work. */
import { getOrMake } from "../../../support/invariant.ts";
import type { Program } from "../../../commands/program.ts";
import type { KernelSource } from "../kernels/kernel-source.ts";
import type { KernelStep, KernelSteps } from "../kernels/plan/kernel-steps.ts";
import type { BarrierOperations } from "./barrier-operations.ts";
import type { DeviceAttention, DeviceGemm, DeviceOp, LaunchOp } from "./device-op.ts";
import type { StreamOperation } from "./memory-operations.ts";
import type { AddressPlaces } from "./places.ts";

/**
 * The work that a command puts on its stream. op: an operation as it is. memory: memory operations, which can join
 * their neighbours' into one batch. linkKernel: a kernel that can absorb the signals and waits around it.
 */
export type QueuedWork =
  | { readonly kind: "op"; readonly op: DeviceOp }
  | { readonly kind: "memory"; readonly operations: readonly StreamOperation[] }
  | ({ readonly kind: "linkKernel"; readonly operations: BarrierOperations } & LinkLaunch);

export interface LinkLaunch {
  /** Thread blocks of the kernel. */
  readonly blocks: number;
  /** The launch of the kernel with these operations inside. */
  readonly launch: (operations: BarrierOperations) => LaunchOp;
}

/** The GPU that a list is planned for. */
export interface DeviceTarget {
  /** Kernels that wait for peers hold at most half of them. */
  readonly multiprocessors: number;
  /** 90 for compute capability 9.0. */
  readonly capability: number;
}

export interface Planning {
  readonly program: Program;
  readonly rank: number;
  readonly target: DeviceTarget;
  readonly places: AddressPlaces;
  readonly tables: PlanningTables;
  readonly planned: PlannedKernels;
}

/** Kernels of launches that were planned before, on any rank: the Program numbers its kernels for all. */
export interface PlannedKernels {
  readonly stepsOf: (key: string, make: () => KernelSteps) => KernelSteps;
  readonly linkOf: (key: string, make: () => KernelSource | null) => KernelSource | null;
}

export function createPlannedKernels(): PlannedKernels {
  const steps = new Map<string, KernelSteps>();
  const links = new Map<string, KernelSource | null>();
  return {
    stepsOf: (key, make) => getOrMake(steps, key, make),
    linkOf: (key, make) => getOrMake(links, key, make),
  };
}

/** What operations refer to by number, and the memory of streams. */
export interface PlanningTables {
  readonly kernels: string[];
  readonly gemms: DeviceGemm[];
  readonly attentions: DeviceAttention[];
  /** The kernel's number. Equal texts have one. */
  readonly kernelOf: (source: KernelSource) => number;
  readonly gemmOf: (step: KernelStep, margin: number, make: () => DeviceGemm) => number;
  readonly attentionOf: (key: string, make: () => DeviceAttention) => number;
  readonly scratchBytes: number[];
  readonly workspaceBytes: number[];
  /** The stream needs at least `bytes` bytes. */
  readonly needScratch: (stream: number, bytes: number) => void;
  readonly needWorkspace: (stream: number, bytes: number) => void;
}

export function createPlanningTables(streams: number): PlanningTables {
  const kernels: string[] = [];
  const numbers = new Map<string, number>();
  const gemms: DeviceGemm[] = [];
  const gemmNumbers = new Map<KernelStep, Map<number, number>>();
  const attentions: DeviceAttention[] = [];
  const attentionNumbers = new Map<string, number>();
  const [scratchBytes, workspaceBytes] = [zeros(streams), zeros(streams)];
  const need = (list: number[]) => (stream: number, bytes: number) => {
    list[stream] = Math.max(list[stream] ?? 0, bytes);
  };
  return {
    kernels,
    gemms,
    attentions,
    kernelOf: ({ text }) => getOrMake(numbers, text, () => kernels.push(text) - 1),
    gemmOf: (step, margin, make) =>
      getOrMake(
        getOrMake(gemmNumbers, step, () => new Map<number, number>()),
        margin,
        () => gemms.push(make()) - 1,
      ),
    attentionOf: (key, make) => getOrMake(attentionNumbers, key, () => attentions.push(make()) - 1),
    scratchBytes,
    workspaceBytes,
    needScratch: need(scratchBytes),
    needWorkspace: need(workspaceBytes),
  };
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}

/** The launch of a kernel with these parameters. */
export function launchOf(
  { tables }: Planning,
  at: Pick<LaunchOp, "stream" | "command">,
  source: KernelSource,
  parameters: LaunchOp["parameters"],
): LaunchOp {
  const { text: _, parameters: __, ...shape } = source;
  return { kind: "launch", ...at, kernel: tables.kernelOf(source), ...shape, parameters };
}

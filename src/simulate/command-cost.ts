/** The resources that a command occupies, and for how long, on the machine of a profile. */
import { attentionFlops, type AttentionKernel, biasOf, isAttention } from "../commands/attention.ts";
import { touchesPeers } from "../commands/barriers.ts";
import type { Copy, Launch } from "../commands/command.ts";
import type { Kernel } from "../commands/kernel.ts";
import type { Program } from "../commands/program.ts";
import { accesses, type Region, regionBytes } from "../commands/region.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { at, invariant } from "../support/invariant.ts";
import { commandBytes, isLocalCopy, commandPeer } from "../trace/command-work.ts";
import { type Assume, assumedErrors, doublings } from "./assumption.ts";
import type { CommandClass } from "./command-class.ts";
import { type GemmCost, gemmCosts, inUse } from "./gemm-cost.ts";
import { commandsOf, nearestTo, rateAlong, timed, interpolatedTime } from "./interpolate.ts";
import {
  type AttentionRates,
  type MachineProfile,
  measuredMargin,
  type ReductionTimed,
  type Timing,
} from "./machine-profile.ts";
import { type DeviceUse, type RankResources, type Resource, resourcesOfRanks } from "./occupancy.ts";
import { type NetworkUse, transferCosts } from "./transfer-cost.ts";

export interface Cost {
  readonly resources: readonly Resource[];
  /** Whether it waits while a running GEMM occupies all SMs. It then starts before GEMMs that have not begun. */
  readonly needsSms: boolean;
  /** Microseconds before the resources are needed. */
  readonly latency: number;
  /** Microseconds for which they are held. */
  readonly busy: number;
  readonly deviceUse: DeviceUse;
  /** Of a transfer between hosts. Without it the command uses no network. */
  readonly network?: NetworkUse | null;
}

export type CostOf = (rank: number, index: number) => Cost;

const nothing: Cost = { resources: [], needsSms: false, latency: 0, busy: 0, deviceUse: "none" };

/** Costs of launches, copies and transfers; other commands occupy nothing. */
export function commandCosts(
  program: Program,
  profile: MachineProfile,
  assume: Assume,
  gemmsOfRun?: readonly number[],
): CostOf {
  const gemmCostOf = gemmCosts(program, profile, assume, gemmsOfRun);
  const resources = resourcesOfRanks(program.ranks.length);
  const workInPeers = program.ranks.map(({ rank, commands }) =>
    commands.some((command) => touchesPeers(program, rank, command)),
  );
  const launches = program.ranks.map(() => new Map<number, { readonly smMargin: number; readonly cost: Cost }>());
  const timedDevices = new Set<CommandClass>();
  const onDevices = (of: CommandClass): void => {
    if (!timedDevices.has(of)) assumeDevices(program, profile, of, assume);
    timedDevices.add(of);
  };
  const otherTimes = new Map<number, number>();
  const otherTime = (rank: number, index: number, command: Launch): number => {
    const known = otherTimes.get(command.kernel);
    if (known !== undefined) return known;
    const kernel = at(program.kernels, command.kernel);
    const timings = memoryTimings(kernel, profile, assume);
    const ofBytes = inUse(profile).memory * timed(timings, commandBytes(program, rank, index) ?? 0, "kernels", assume);
    const time = isAttention(kernel) ? Math.max(ofBytes, attentionTime(kernel, profile, assume)) : ofBytes;
    otherTimes.set(command.kernel, time);
    return time;
  };
  const transferCostOf = transferCosts(program, profile, assume);
  return (rank, index) => {
    const command = at(at(program.ranks, rank).commands, index);
    switch (command.kind) {
      case "launch": {
        const own = at(resources, rank);
        const inPeers = at(workInPeers, rank);
        if (inPeers && touchesPeers(program, rank, command)) {
          return peerKernelCost(program, rank, index, own, profile, assume, onDevices);
        }
        // Of a kernel and a margin, all launches of the rank take as long.
        const known = at(launches, rank).get(command.kernel);
        const { smMargin = 0 } = command;
        if (known?.smMargin === smMargin) return known.cost;
        const ofGemm = gemmCostOf(rank, command.kernel);
        const cost: Cost =
          ofGemm !== null
            ? gemmCost(own, ofGemm, command, inPeers, profile)
            : { ...kernelCost(own.kernel, otherTime(rank, index, command), profile), deviceUse: "none" };
        at(launches, rank).set(command.kernel, { smMargin, cost });
        return cost;
      }
      case "copy":
        return copyCost(program, rank, index, command, resources, profile, assume, onDevices);
      case "transfer":
        if (isLocalCopy(program, rank, command)) {
          return localCopyCost(program, rank, index, at(resources, rank), profile, assume);
        }
        return { ...nothing, ...transferCostOf(rank, index, command), deviceUse: "beside" };
      default:
        return nothing;
    }
  };
}

/** The first part of a kernel's time does not occupy the device. */
function kernelCost(resources: readonly Resource[], time: number, { costs }: MachineProfile): Omit<Cost, "deviceUse"> {
  const latency = Math.min(costs.launch, time);
  return { resources, needsSms: false, latency, busy: time - latency };
}

/**
 * With an SM margin a GEMM takes longer but leaves SMs for kernels in peers' memory, if there are any; those then cost
 * it nothing.
 */
function gemmCost(
  own: RankResources,
  { time, withMargin, leavesSms }: GemmCost,
  { smMargin = 0 }: Launch,
  worksInPeers: boolean,
  profile: MachineProfile,
): Cost {
  const longer = time * (1 + ((withMargin - 1) * smMargin) / measuredMargin);
  return smMargin < measuredMargin && !(worksInPeers && leavesSms)
    ? { ...kernelCost(own.kernel, longer, profile), deviceUse: "gemm" }
    : { ...kernelCost(own.compute, longer, profile), deviceUse: "none" };
}

/**
 * A kernel of few blocks is bound by the rank's links. Each direction carries what the kernel reads or writes there,
 * and as much of what its peers' kernels do here.
 */
function peerKernelCost(
  program: Program,
  rank: number,
  index: number,
  own: RankResources,
  profile: MachineProfile,
  assume: Assume,
  onDevices: (of: CommandClass) => void,
): Cost {
  if (profile.reductionsInPeers === undefined) {
    const text = "kernels in peers' memory are timed as copies between ranks of their bytes";
    assume({ text, of: "reductionsInPeers", error: assumedErrors.otherKernel });
  }
  onDevices("reductionsInPeers");
  const timings = profile.reductionsInPeers ?? profile.peerCopies;
  const time = timed(timings, peerBytesOf(program, rank, index), "reductionsInPeers", assume);
  const isSlow = profile.reductionsInPeers !== undefined && profile.on === "cuda" && readsOnePeer(program, rank, index);
  const busy = isSlow ? time + (ofOnePeer - 1) * (time - interpolatedTime(timings, 0)) : time;
  return { ...kernelCost([own.out, own.in], busy, profile), needsSms: true, deviceUse: "beside" };
}

/**
 * How many times as long a kernel's bytes take if it only reads them from one peer, because the profile's times are those
 * of kernels that read as much as they write. A thread then has 8 loads from peers in flight: chunks of reduce-scatters
 * on two H100 and H200 took about this much longer. With three peers it has 12, and they took no longer.
 */
const ofOnePeer = 1.5;

function readsOnePeer(program: Program, rank: number, index: number): boolean {
  const { reads, writes } = accesses(program, rank, index);
  const isPeers = ({ buffer }: Region): boolean => at(program.buffers, buffer).rank !== rank;
  return !writes.some(isPeers) && reads.length === 2;
}

/** Bytes that a launch reads from and writes to peers' memory. */
function peerBytesOf(program: Program, rank: number, index: number): number {
  const { reads, writes } = accesses(program, rank, index);
  return [...reads, ...writes]
    .filter(({ buffer }) => at(program.buffers, buffer).rank !== rank)
    .reduce((sum, region) => sum + regionBytes(region), 0);
}

/** A collective over one device whose result is its input does nothing. */
function localCopyCost(
  program: Program,
  rank: number,
  index: number,
  { local }: RankResources,
  profile: MachineProfile,
  assume: Assume,
): Cost {
  const { reads, writes } = accesses(program, rank, index);
  const [from, to] = [at(reads, 0), at(writes, 0)];
  if (from.buffer === to.buffer && from.offset === to.offset) return nothing;
  const bytes = commandBytes(program, rank, index) ?? 0;
  return {
    ...nothing,
    resources: local,
    busy: inUse(profile).memory * timed(profile.localCopies, bytes, "copies", assume),
  };
}

function copyCost(
  program: Program,
  rank: number,
  index: number,
  command: Copy,
  resources: readonly RankResources[],
  profile: MachineProfile,
  assume: Assume,
  onDevices: (of: CommandClass) => void,
): Cost {
  const bytes = commandBytes(program, rank, index) ?? 0;
  const peer = commandPeer(program, rank, command);
  if (peer === null) return localCopyCost(program, rank, index, at(resources, rank), profile, assume);
  onDevices("copies");
  const [from, to] = peer.direction === "from" ? [peer.rank, rank] : [rank, peer.rank];
  const busy = timed(profile.peerCopies, bytes, "copies", assume);
  return {
    ...nothing,
    resources: [at(resources, from).out, at(resources, to).in],
    busy,
    deviceUse: "none",
  };
}

/** Says that the profile is of another number of devices: how many share its links, no other figure shows. */
function assumeDevices(
  { ranks, replicas = 1, devicesPerHost = ranks.length * replicas }: Program,
  { transfers }: MachineProfile,
  of: CommandClass,
  assume: Assume,
): void {
  const length = Math.min(ranks.length * replicas, devicesPerHost);
  const measured = Math.max(...transfers.map((each) => each.ranks));
  if (length === measured) return;
  const text = `${commandsOf[of]} among ${length} devices are timed as among ${measured}`;
  assume({ text, of, error: assumedErrors.otherDevices * doublings(length, measured) });
}

function memoryTimings(kernel: Kernel, { memory, reductions = [] }: MachineProfile, assume: Assume): readonly Timing[] {
  const timed = reductionOf(kernel);
  if (timed === null) return memory;
  const alike = reductions.filter((each) => each.kernel === timed);
  const dtype = dtypeOfParts(kernel);
  const nearest = nearestTo(dtype, alike);
  if (nearest === undefined) {
    const text = "sums over slots are timed as other kernels of their bytes";
    assume({ text, of: "kernels", error: assumedErrors.otherKernel });
  } else if (nearest.dtype !== dtype) {
    const text = `sums over slots in ${dtype} are timed as in ${nearest.dtype}`;
    assume({ text, of: "kernels", error: assumedErrors.otherDType });
  }
  return nearest?.timings ?? memory;
}

/** Reductions over a leading axis have their own timings. A reduction within rows is a different kind of kernel. */
function reductionOf(kernel: Kernel): ReductionTimed | null {
  if (kernel.kind === "combine") return "combine";
  if (kernel.kind !== "reduction") return null;
  const { shape } = at(kernel.inputs, 0);
  const first = shape.findIndex((extent) => extent !== 1);
  return kernel.axes.includes(first) && kernel.axes.every((axis) => axis <= first) ? "reduction" : null;
}

/** The accumulator of a running sum is wider than its summands, and comes first. */
function dtypeOfParts({ inputs }: Kernel): DType {
  const last = inputs.at(-1);
  invariant(last !== undefined, "a reduction adds something");
  return last.dtype;
}

// The time that kernels of attention take: their operations at a rate that grows with the length of the sequences.

/**
 * Of the rate of the fastest GEMM of the dtype: what cuDNN's attention and its backward pass, with the same bits in
 * every run, reached on 2 x H100 with a causal mask and heads of 128 elements (bench/results/block-2xH100.txt).
 */
const usualShares = {
  lengths: [2048, 4096, 8192],
  forward: [0.5, 0.61, 0.72],
  backward: [0.38, 0.455, 0.49],
} as const satisfies Omit<AttentionRates, "dtype">;

/** What heads of more than 128 elements reach of it backward: 275 of 345 TFLOP/s on an H200, with 256, 4096 rows. */
const largeHeads = { elements: 128, backward: 0.8 };

/** Keys beside those of a window that tiles compute: from 593, 496 and 183 TFLOP/s of windows of 4096, 1024 and 128. */
const windowTile = 256;

/**
 * What attention reaches of its rate where something is added to the scores, one row for all queries or a row for each:
 * 396 of 593 and 366 of 683 TFLOP/s forward, 328 of 441 and 289 of 508 backward, on an H200, 2 x 32 heads, 4096 rows.
 */
const biased = { row: { forward: 0.66, backward: 0.73 }, rows: { forward: 0.54, backward: 0.57 } };

function shareOf(kernel: AttentionKernel, isForward: boolean, headSize: number): number {
  const bias = biasOf(kernel);
  const ofHeads = !isForward && headSize > largeHeads.elements ? largeHeads.backward : 1;
  if (bias === null) return ofHeads;
  return ofHeads * biased[bias.shape.at(-2) === 1 ? "row" : "rows"][isForward ? "forward" : "backward"];
}

/** What cuDNN computes: forward it leaves out what is before a window, backward it computes and hides it. */
function computedFlops(kernel: AttentionKernel): number {
  const { kind, window } = kernel;
  const computed = window === null || kind === "sdpaBackward" ? null : window + windowTile;
  return attentionFlops({ ...kernel, window: computed });
}

/** Microseconds. */
function attentionTime(kernel: AttentionKernel, profile: MachineProfile, assume: Assume): number {
  const { dtype, shape } = at(kernel.inputs, kernel.kind === "sdpa" ? 1 : 2);
  const length = at(shape, shape.length - 2);
  const rates = nearestTo(dtype, profile.attention ?? []) ?? usualRates(dtype, profile, assume);
  if (rates.dtype !== dtype) {
    const isAlike = dtypes[rates.dtype].bytes === dtypes[dtype].bytes;
    const error = isAlike ? assumedErrors.otherDType : assumedErrors.otherElementSize;
    const text = isAlike
      ? `attention in ${dtype} is timed as in ${rates.dtype}`
      : `no calibration for ${dtype}: attention is timed as in ${rates.dtype}`;
    assume({ text, of: "kernels", error });
  }
  const isForward = kernel.kind === "sdpa";
  const rate = rateAlong(rates.lengths, isForward ? rates.forward : rates.backward, length);
  return computedFlops(kernel) / (rate * shareOf(kernel, isForward, at(shape, shape.length - 1)) * 1e6);
}

function usualRates(dtype: DType, { products }: MachineProfile, assume: Assume): AttentionRates {
  assume({
    text: "attention is timed at its usual share of the rate of GEMMs",
    of: "kernels",
    error: assumedErrors.otherKernel,
  });
  const grid = nearestTo(dtype, products);
  invariant(grid !== undefined, "a profile has a grid of GEMMs");
  const most = Math.max(...grid.teraflops);
  const rates = (shares: readonly number[]): readonly number[] => shares.map((share) => share * most);
  const { lengths, forward, backward } = usualShares;
  return { dtype: grid.dtype, lengths, forward: rates(forward), backward: rates(backward) };
}

/**
 * Measures a machine profile with probes. The fixed cost of a run is measured first and subtracted from every other
 * time. Repeated operations are divided by their number. docs/simulation.md has the list.
 */
import type { Command } from "../../commands/command.ts";
import type { Kernel } from "../../commands/kernel.ts";
import type { Program } from "../../commands/program.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { type DType, dtypes } from "../../numerics/dtype.ts";
import {
  type AttentionRates,
  type BetweenHosts,
  type FixedCosts,
  type GemmGrid,
  type MachineProfile,
  reductionsTimed,
  type ReductionTimed,
  type ReductionTimings,
  type Timing,
  type TransferTimings,
} from "../../simulate/machine-profile.ts";
import { at, invariant, keysOf } from "../../support/invariant.ts";
import {
  type Calibration,
  type CalibrationHost,
  type CalibrationSizes,
  leastMeasuredTime,
  timingsOf,
  tookBeyond,
} from "./calibration-host.ts";
import { bytesInPeers, gemmGrid, gemmsBesideKernels, slowdownBesideTransfer, sustainedGemms } from "./measure-gemms.ts";
import {
  attention,
  chain,
  collectiveProbes,
  exchanges,
  fork,
  gatherAndMultiplyCopies,
  localCopy,
  pointwise,
  ring,
  slotSum,
} from "./probe-fusions.ts";
import { probe, type ProbeOptions } from "./probe.ts";
import { type MeasuredTables, residualsOf, sizesBetween } from "./residuals.ts";

const library = { backend: "nccl" } as const;

/** Collective: all ranks, at least two on each host, call it together. `machine` and `on` are written into the profile as given. */
export async function measureProfile(
  host: CalibrationHost,
  { machine, on }: Required<Pick<MachineProfile, "machine" | "on">>,
  sizes: CalibrationSizes,
): Promise<MachineProfile> {
  const { devices, say } = host;
  say("fixed costs");
  // Warms up: the first run may compile code.
  await probe(host, chain(devices, chainLength));
  const short = await probe(host, chain(devices, 1));
  const long = await probe(host, chain(devices, chainLength));
  const launch = Math.max(leastMeasuredTime, (long.least - short.least) / (chainLength - 1));
  const run = Math.max(0, short.least - launch);
  const calibration: Calibration = { ...host, sizes, took: tookBeyond(host, run) };
  const event = Math.max(0, ((await calibration.took(fork(devices), { streams: 2 })) - launch) / 2);
  const issue = await issueTime(host);
  const signal = await signalTime(calibration);
  const tables = await measureTables(calibration, signal);
  const attention: AttentionRates[] = [];
  for (const dtype of sizes.dtypes) attention.push(await attentionRates(calibration, dtype));
  const join = await joinTime(calibration, launch);
  const sustained = await sustainedGemms(calibration);
  const underTransfer = await slowdownBesideTransfer(calibration);
  const margins = await gemmsBesideKernels(calibration, tables.reductionsInPeers);
  const betweenHosts = await measureNetwork(calibration);
  say("sizes between the measured ones");
  const between = await measureTables({ ...calibration, sizes: sizesBetween(sizes), say: () => {} }, signal);
  const costs: FixedCosts = { run, launch, event, join, signal, issue, underTransfer };
  return {
    version: 1,
    machine,
    on,
    margins,
    sustained,
    attention,
    ...tables,
    ...(betweenHosts === null ? {} : { betweenHosts }),
    costs,
    residuals: residualsOf(tables, between, run),
  };
}

/** What is measured at sizes, between which times are interpolated. `signal`: microseconds of a signal. */
async function measureTables(calibration: Calibration, signal: number): Promise<MeasuredTables> {
  const { devices, sizes } = calibration;
  const products: GemmGrid[] = [];
  for (const dtype of [...sizes.dtypes, ...sizes.scaled]) products.push(await gemmGrid(calibration, dtype));
  return {
    products,
    memory: await timingsOf(calibration, "kernels", (bytes) => pointwise(devices, bytes)),
    reductions: await sums(calibration),
    reductionsInPeers: await reductionsOfPeers(calibration),
    localCopies: await timingsOf(calibration, "copies", (bytes) => localCopy(devices, bytes)),
    peerCopies: await measureCopies(calibration, signal),
    transfers: await libraryTransfers(calibration, devices),
  };
}

const chainLength = 16;

/** The host's microseconds to issue one command without a graph. */
async function issueTime(host: CalibrationHost): Promise<number> {
  const [short, long] = [
    await probe(host, chain(host.devices, 1), { graph: "off" }),
    await probe(host, chain(host.devices, chainLength), { graph: "off" }),
  ];
  return Math.max(0, (long.host - short.host) / (long.commands - short.commands));
}

/** From the lowered reduction to the kernel that is timed. */
const asTimed: { readonly [K in ReductionTimed]: ProbeOptions } = {
  reduction: {},
  combine: { rewrite: combinedSlots },
};

async function sums(calibration: Calibration): Promise<readonly ReductionTimings[]> {
  const { devices, sizes } = calibration;
  const measured: ReductionTimings[] = [];
  for (const dtype of sizes.summed) {
    for (const kernel of reductionsTimed) {
      const fusionOf = (bytes: number): Fusion => slotSum(devices, bytes, dtype);
      const timings = await timingsOf(calibration, `${kernel} of ${dtype}`, fusionOf, asTimed[kernel]);
      measured.push({ kernel, dtype, timings });
    }
  }
  return measured;
}

/** Timings of all-reduces in peers' memory, without GEMMs. */
async function reductionsOfPeers(calibration: Calibration): Promise<readonly Timing[]> {
  const { devices } = calibration;
  const fusionOf = (bytes: number): Fusion => collectiveProbes.Allreduce(devices, bytes);
  const copies = { lowering: { backend: "cuda" } } as const;
  const timings = await timingsOf(calibration, "all-reduces in peers' memory", fusionOf, copies);
  return timings.map(({ bytes, microseconds }) => ({
    bytes: bytesInPeers(devices, bytes),
    microseconds,
  }));
}

/** Of teams of so many ranks. `where` is said of them. */
async function libraryTransfers(
  calibration: Calibration,
  ranks: number,
  options: ProbeOptions = {},
  where = "",
): Promise<readonly TransferTimings[]> {
  const measured: TransferTimings[] = [];
  for (const type of keysOf(collectiveProbes)) {
    const fusionOf = (bytes: number): Fusion => collectiveProbes[type](ranks, bytes);
    const byLibrary = { ...options, lowering: library };
    measured.push({ type, ranks, timings: await timingsOf(calibration, `${type}${where}`, fusionOf, byLibrary) });
  }
  const exchanges = { ...options, lowering: { ...library, p2p: "rotated" } } as const;
  // Sent and received: twice the bytes of a chunk.
  const ringOf = (bytes: number): Fusion => ring(ranks, bytes / 2);
  const ofOne = (time: number): number => time / (ranks - 1);
  const timings = await timingsOf(calibration, `sends and receives${where}`, ringOf, exchanges, ofOne);
  return [...measured, { type: "group", ranks: 2, timings }];
}

// Times attention and its backward pass, by the length of a sequence.

/** Causal, one sequence. The backward pass is what a run with both takes longer. */
export async function attentionRates(
  { devices, sizes, say, took }: Pick<Calibration, "devices" | "sizes" | "say" | "took">,
  dtype: DType,
): Promise<AttentionRates> {
  const { heads, headSize, lengths } = sizes.attention;
  const [forward, backward] = [new Array<number>(), new Array<number>()];
  for (const length of lengths) {
    say(`attention in ${dtype}, sequences of ${length}`);
    const shape = { heads, length, headSize };
    const alone = await took(attention(devices, shape, dtype, "forward"), {}, "median");
    const both = await took(attention(devices, shape, dtype, "both"), {}, "median");
    // Two products for each score that the mask leaves, and five in the backward pass.
    const ofProduct = (2 * heads * headSize * length ** 2) / 2;
    forward.push((2 * ofProduct) / alone / 1e6);
    backward.push((5 * ofProduct) / Math.max(leastMeasuredTime, both - alone) / 1e6);
  }
  return { dtype, lengths, forward, backward };
}

// Times transfers between hosts, of all devices at once, each with those of its place on the other hosts.

/** Null for one host. Devices that share a network interface share its rate in these times. */
export async function measureNetwork(calibration: Calibration): Promise<BetweenHosts | null> {
  const { devices, hosts } = calibration;
  if (hosts === 1) return null;
  return {
    nics: devices,
    transfers: await libraryTransfers(calibration, hosts, { scope: "between" }, " between hosts"),
  };
}

// Rewrites a probe to compute the same sum with a different kernel. This times combinations of slots beside reductions
// over an axis.
//
//     reduction over [0]: slots [4, n] -> [n]     ->     combine slot 0, .., slot 3 -> [n]

/** Every launch of `program` must be a reduction over axis 0 only, as in `slotSum`. */
export function combinedSlots(program: Program): Program {
  return {
    ...program,
    kernels: program.kernels.map(combination),
    ranks: program.ranks.map((rank) => ({
      ...rank,
      commands: rank.commands.map((command) => launchOfParts(program.kernels, command)),
    })),
  };
}

function combination(kernel: Kernel): Kernel {
  const { op, inputs, outputs } = requireReduction(kernel);
  const { dtype, shape, strides } = at(inputs, 0);
  const part = { dtype, shape: shape.slice(1), strides: strides.slice(1) };
  return { kind: "combine", op, inputs: Array.from({ length: at(shape, 0) }, () => part), outputs };
}

function launchOfParts(kernels: readonly Kernel[], command: Command): Command {
  if (command.kind !== "launch") return command;
  const { dtype, shape, strides } = at(requireReduction(at(kernels, command.kernel)).inputs, 0);
  const { buffer, offset } = at(command.inputs, 0);
  const bytes = at(strides, 0) * dtypes[dtype].bytes;
  return {
    ...command,
    inputs: Array.from({ length: at(shape, 0) }, (_, i) => ({ buffer, offset: offset + i * bytes })),
  };
}

function requireReduction(kernel: Kernel): Extract<Kernel, { readonly kind: "reduction" }> {
  invariant(kernel.kind === "reduction" && kernel.axes.join() === "0", "a probe of sums reduces axis 0", kernel.kind);
  return kernel;
}

// Times copies between ranks and the signals around them. In a ring on the copy stream, all ranks signal that they are
// ready, make D - 1 copies, and signal that they are done. Exchanges of more and fewer tensors with the same signals
// differ by the time of small copies. In a small ring, the time that is not copies is that of the signals.
//
//     ring = 2 signals + (D - 1) copies        exchange of 8 tensors - exchange of 2 tensors = 6 copies

const copies = { backend: "cuda", p2p: "rotated", protocol: "get" } as const;

/** On a copy stream, with waits and signals batched, like the schedules that are simulated. */
const onCopyStream = {
  lowering: copies,
  streams: 64,
  schedule: { computeStreams: 1, batchSignals: true, copyStream: "dedicated" },
} as const satisfies ProbeOptions;

/** Microseconds of a signal, with its wait. */
async function signalTime(calibration: Calibration): Promise<number> {
  const { devices, sizes, say, took } = calibration;
  say("signals");
  const around = await took(ring(devices, at(sizes.bytes, 0)), onCopyStream);
  return Math.max(0, around - (devices - 1) * (await shortCopy(calibration))) / 2;
}

async function measureCopies(calibration: Calibration, signal: number): Promise<MachineProfile["peerCopies"]> {
  const { devices } = calibration;
  const ofOne = (time: number): number => (time - 2 * signal) / (devices - 1);
  const ringOf = (bytes: number): ReturnType<typeof ring> => ring(devices, bytes);
  return timingsOf(calibration, "copies between ranks", ringOf, onCopyStream, ofOne);
}

const [few, many] = [2, 8];

/** Microseconds that a tiny copy adds to a copy stream: between two ranks, whose tensors can share their signals. */
async function shortCopy({ sizes, took }: Calibration): Promise<number> {
  const options = { ...onCopyStream, schedule: { ...onCopyStream.schedule, dropSignals: true } };
  const of = (count: number): Promise<number> => took(exchanges(count, at(sizes.bytes, 0)), options);
  return Math.max(0, ((await of(many)) - (await of(few))) / (many - few));
}

/**
 * Microseconds of delay before a GEMM that follows a copy, even a copy that finished long before. A pipeline whose
 * copies are shorter than its GEMMs takes this much longer per chunk on one compute stream than on two, beyond the
 * latency of any kernel.
 */
async function joinTime({ devices, sizes, say, took }: Calibration, launch: number): Promise<number> {
  say("GEMMs after copies");
  const on = (computeStreams: number): Promise<number> => {
    const schedule = { ...onCopyStream.schedule, inPlace: true, computeStreams };
    const fusion = gatherAndMultiplyCopies(devices, sizes.afterCopies, at(sizes.dtypes, 0));
    return took(fusion, { ...onCopyStream, schedule }, "median");
  };
  return Math.max(0, ((await on(1)) - (await on(2))) / (devices - 1) - launch);
}

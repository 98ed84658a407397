/**
 * Measures a machine profile with probes. The fixed cost of a run is measured first and subtracted from every other
 * time. Repeated operations are divided by their number. docs/simulation.md has the list.
 */
import type { Fusion } from "../../ir/api/fusion.ts";
import {
  type AttentionRates,
  type FixedCosts,
  type MachineProfile,
  type GemmGrid,
  type ReductionTimed,
  type ReductionTimings,
  reductionsTimed,
  type Timing,
  type TransferTimings,
} from "../../simulate/machine-profile.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type Calibration, type CalibrationHost, leastTime, timingsOf, tookBeyond } from "./calibration-host.ts";
import type { CalibrationSizes } from "./calibration-sizes.ts";
import { attentionRates } from "./measure-attention.ts";
import { combinedSlots } from "./combined-slots.ts";
import { joinTime, measureCopies, signalTime } from "./measure-copies.ts";
import { bytesInPeers, gemmGrid, gemmsBesideKernels, slowdownBesideTransfer, sustainedGemms } from "./measure-gemms.ts";
import { probe, type ProbeOptions } from "./probe.ts";
import { measureNetwork } from "./measure-network.ts";
import { type MeasuredTables, residualsOf, sizesBetween } from "./residuals.ts";
import { chain, collectiveProbes, fork, localCopy, pointwise, ring, slotSum } from "./probe-fusions.ts";

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
  const launch = Math.max(leastTime, (long.least - short.least) / (chainLength - 1));
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
  for (const dtype of sizes.dtypes) products.push(await gemmGrid(calibration, dtype));
  return {
    products,
    memory: await timingsOf(calibration, "kernels", (bytes) => pointwise(devices, bytes)),
    reductions: await sums(calibration),
    reductionsInPeers: await reductionsOfPeers(calibration),
    localCopies: await timingsOf(calibration, "copies", (bytes) => localCopy(devices, bytes)),
    peerCopies: await measureCopies(calibration, signal),
    transfers: await libraryTransfers(calibration),
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

async function libraryTransfers(calibration: Calibration): Promise<readonly TransferTimings[]> {
  const { devices } = calibration;
  const measured: TransferTimings[] = [];
  for (const type of keysOf(collectiveProbes)) {
    const fusionOf = (bytes: number): Fusion => collectiveProbes[type](devices, bytes);
    measured.push({
      type,
      ranks: devices,
      timings: await timingsOf(calibration, type, fusionOf, { lowering: library }),
    });
  }
  const exchanges = { lowering: { ...library, p2p: "rotated" } } as const;
  // Sent and received: twice the bytes of a chunk.
  const fusionOf = (bytes: number): Fusion => ring(devices, bytes / 2);
  const ofOne = (time: number): number => time / (devices - 1);
  const timings = await timingsOf(calibration, "sends and receives", fusionOf, exchanges, ofOne);
  return [...measured, { type: "group", ranks: 2, timings }];
}

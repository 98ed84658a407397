/**
 * A machine profile from probes. What a run costs by itself is measured first and taken off every other time; what comes several times in a
 * run is divided by its number. docs/simulation.md has the list.
 */
import type { DType } from "../../numerics/dtype.ts";
import type { ProductShape } from "../../simulate/interpolate.ts";
import {
  type FixedCosts,
  type MachineProfile,
  type ProductGrid,
  type ReductionTimed,
  type ReductionTimings,
  reductionsTimed,
  type Timing,
  type TransferTimings,
} from "../../simulate/machine-profile.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { keysOf } from "../../support/keys-of.ts";
import { at } from "../../support/invariant.ts";
import type { CalibrationSizes } from "./calibration-sizes.ts";
import { combinedSlots } from "./combined-slots.ts";
import { probe, type ProbeHost, type ProbeOptions } from "./probe.ts";
import {
  chain,
  collectiveProbes,
  fork,
  gatherAndMultiply,
  hops,
  localCopy,
  pointwise,
  product,
  ring,
  slotSum,
} from "./probe-fusions.ts";

export interface CalibrationHost extends ProbeHost {
  /** What is measured next, a line each. */
  readonly say: (line: string) => void;
}

const library = { communicatorBackend: "nccl" } as const;
const copies = { communicatorBackend: "cuda", pointToPoint: "rotated", p2pProtocol: "get" } as const;
/** On a lane of their own, with waits and signals in batches, as the schedules that are simulated have them. */
const lane: ProbeOptions = {
  lowering: copies,
  streams: 64,
  copyLane: "dedicated",
  schedule: { computeStreams: 1, batchSignals: true },
};

/** No time is less than this: clocks are no finer. */
const least = 0.01;

/** All ranks call it together; at least two. `machine`: as results have it. */
export async function measureProfile(
  host: CalibrationHost,
  machine: string,
  sizes: CalibrationSizes,
): Promise<MachineProfile> {
  const { devices, say } = host;
  say("fixed costs");
  // What compiles code when it first runs has then done so.
  await probe(host, chain(devices, chainLength));
  const short = await probe(host, chain(devices, 1));
  const long = await probe(host, chain(devices, chainLength));
  const launch = Math.max(least, (long.time - short.time) / (chainLength - 1));
  const run = Math.max(0, short.time - launch);
  const took = async (fusion: Fusion, options: ProbeOptions = {}, times = 1): Promise<number> => {
    const { time } = await probe(host, fusion, options);
    return Math.max(least, (time - run) / times);
  };
  const timings = async (
    what: string,
    fusionOf: (bytes: number) => Fusion,
    options: ProbeOptions = {},
    times = 1,
  ): Promise<readonly Timing[]> => {
    const measured: Timing[] = [];
    for (const bytes of sizes.bytes) {
      say(`${what}, ${bytes} bytes`);
      measured.push({ bytes, microseconds: await took(fusionOf(bytes), options, times) });
    }
    return measured;
  };
  const memory = await timings("kernels", (bytes) => pointwise(devices, bytes));
  const reductions: ReductionTimings[] = [];
  for (const dtype of sizes.summed) {
    const fusionOf = (bytes: number): Fusion => slotSum(devices, bytes, dtype);
    for (const kernel of reductionsTimed) {
      reductions.push({ kernel, dtype, timings: await timings(`${kernel} of ${dtype}`, fusionOf, asTimed[kernel]) });
    }
  }
  const localCopies = await timings("copies", (bytes) => localCopy(devices, bytes));
  const around = (bytes: number): Fusion => ring(devices, bytes);
  const peerCopies = await timings("copies between ranks", around, lane, devices - 1);
  const byKernel = { ...lane, schedule: { ...lane.schedule, kernelCopies: Number.MAX_SAFE_INTEGER } };
  const kernelCopies = await timings("copies between ranks by kernel", around, byKernel, devices - 1);
  const transfers: TransferTimings[] = [];
  for (const type of keysOf(collectiveProbes)) {
    const fusionOf = (bytes: number): Fusion => collectiveProbes[type](devices, bytes);
    transfers.push({ type, ranks: devices, timings: await timings(type, fusionOf, { lowering: library }) });
  }
  const exchanges = { lowering: { ...library, pointToPoint: "rotated" } } as const;
  // Sent and received: twice the bytes of a part.
  const groups = await timings("sends and receives", (bytes) => ring(devices, bytes / 2), exchanges, devices - 1);
  transfers.push({ type: "group", ranks: 2, timings: groups });
  say("signals and events");
  const few = await took(hops(devices, 2), { lowering: copies });
  const many = await took(hops(devices, 2 + hopCount), { lowering: copies });
  const signal = Math.max(0, (many - few) / hopCount - at(peerCopies, 0).microseconds);
  const event = Math.max(0, ((await took(fork(devices), { streams: 2 })) - launch) / 2);
  const issue = await issueTime(host);
  const products: ProductGrid[] = [];
  for (const dtype of sizes.dtypes) products.push(await productGrid(host, sizes, dtype, took));
  const underTransfer = await slowdown(host, sizes, took);
  const costs: FixedCosts = { run, launch, event, signal, issue, underTransfer };
  return { version: 1, machine, products, memory, reductions, localCopies, peerCopies, kernelCopies, transfers, costs };
}

/** From the reduction that is lowered to what is timed. */
const asTimed: { readonly [K in ReductionTimed]: ProbeOptions } = {
  reduction: {},
  combine: { rewrite: combinedSlots },
};

const chainLength = 16;
const hopCount = 8;

type Took = (fusion: Fusion, options?: ProbeOptions, times?: number) => Promise<number>;

/** The host's microseconds for a command that is issued by itself. */
async function issueTime(host: CalibrationHost): Promise<number> {
  const [short, long] = [
    await probe(host, chain(host.devices, 1), { graph: "off" }),
    await probe(host, chain(host.devices, chainLength), { graph: "off" }),
  ];
  return Math.max(0, (long.host - short.host) / (long.commands - short.commands));
}

async function productGrid(
  { devices, say }: CalibrationHost,
  { m, n, k }: CalibrationSizes,
  dtype: DType,
  took: Took,
): Promise<ProductGrid> {
  const teraflops: number[] = [];
  for (const rows of m) {
    say(`products in ${dtype} of ${rows} rows`);
    for (const columns of n) {
      for (const contracted of k) {
        const time = await took(product(devices, { m: rows, n: columns, k: contracted }, dtype));
        teraflops.push((2 * rows * columns * contracted) / time / 1e6);
      }
    }
  }
  return { dtype, m, n, k, teraflops };
}

/**
 * How many times as long a product takes beside a transfer, from a pipeline of two chunks: gather, gather beside a product, product.
 * What it takes longer than gather and two products was lost while the second chunk travelled.
 */
async function slowdown(
  { devices, say }: CalibrationHost,
  { beside, dtypes }: CalibrationSizes,
  took: Took,
): Promise<number> {
  say("products beside a transfer");
  const dtype = at(dtypes, 0);
  const half: ProductShape = { ...beside, m: beside.m / 2 };
  const alone = await took(product(devices, half, dtype));
  const gather = await took(collectiveProbes.Allgather(devices, half.m * half.k * 2), { lowering: library });
  const both = await took(gatherAndMultiply(devices, beside, dtype), { lowering: library });
  const lost = Math.max(0, both - gather - 2 * alone);
  return 1 / Math.max(1 / mostSlowdown, 1 - lost / gather);
}

const mostSlowdown = 8;

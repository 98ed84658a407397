/**
 * What no schedule of a Program can beat on a machine: the kernels of one rank alone, the bytes over one link alone, and
 * the chain of commands that depend on each other, as if nothing else ran.
 */
import { touchesPeers } from "../commands/barriers.ts";
import { isGemmKernel, type Kernel } from "../commands/kernel.ts";
import type { Program } from "../commands/program.ts";
import { isWork } from "../commands/command.ts";
import type { CommandTime } from "./measured-costs.ts";
import { at, getOrMake } from "../support/invariant.ts";
import type { Dependences } from "./dependences.ts";
import { isLocalCopy } from "../trace/command-work.ts";
import { type LinkDirection, linksOf } from "./idle/links.ts";

/** Milliseconds. */
export interface Floor {
  /** The greatest of the others. */
  readonly milliseconds: number;
  /** The kernels of the busiest rank, of the serial program if that takes less. */
  readonly compute: number;
  /**
   * The copies over the busiest direction of a link, the library's transfers of the busiest communicator, or those of
   * the busiest network interface.
   */
  readonly communication: number;
  /** The longest chain of commands that wait for each other. */
  readonly chain: number;
}

/** A rank's kernels alone, with their launches, in milliseconds. */
export interface KernelTime {
  readonly all: number;
  /** Of each kind of kernel, by `kernelKey`. */
  readonly kinds: ReadonlyMap<string, number>;
  /** The launches among these: the first part of each kernel, beside which other kernels can run. */
  readonly launches: number;
}

export function kernelTimeOf({ ranks, kernels, buffers }: Program, rank: number, costOf: CommandTime): KernelTime {
  const kinds = new Map<string, number>();
  let [all, launches] = [0, 0];
  const keys = new Map<number, string>();
  for (const [index, command] of at(ranks, rank).commands.entries()) {
    if (command.kind !== "launch" || touchesPeers({ buffers }, rank, command)) continue;
    const key = getOrMake(keys, command.kernel, () => kernelKey(at(kernels, command.kernel)));
    const { latency, busy } = costOf(rank, index);
    const time = (latency + busy) / 1000;
    launches += latency / 1000;
    all += time;
    kinds.set(key, (kinds.get(key) ?? 0) + time);
  }
  return { all, kinds, launches };
}

/** Kernels of a chunk and of the whole have one key, as have all GEMMs. */
function kernelKey(kernel: Kernel): string {
  const isGemm: boolean = isGemmKernel(kernel);
  if (isGemm) return "gemm";
  if (kernel.kind === "unit") return kernel.steps.map((step) => ("op" in step ? step.op : step.kind)).join(" ");
  return "op" in kernel ? `${kernel.kind} ${kernel.op}` : kernel.kind;
}

export function floorOf(program: Program, dependences: Dependences, costOf: CommandTime, compute: number): Floor {
  const busiest = [linkTimes, networkTimes].flatMap((timesOf) => [...timesOf(program, costOf).values()]);
  const communication = Math.max(0, ...busiest, ...transferTimes(program, costOf));
  const chain = chainOf(program, dependences, costOf);
  return { milliseconds: Math.max(compute, communication, chain), compute, communication, chain };
}

/** Milliseconds for which copies occupy each direction of a link. */
function linkTimes(program: Program, costOf: CommandTime): ReadonlyMap<LinkDirection, number> {
  const times = new Map<LinkDirection, number>();
  for (const { rank, commands } of program.ranks) {
    for (const index of commands.keys()) {
      const links = linksOf(program, rank, index);
      if (links.length === 0) continue;
      const { busy } = costOf(rank, index);
      for (const link of links) times.set(link, (times.get(link) ?? 0) + busy / 1000);
    }
  }
  return times;
}

/** Milliseconds for which transfers hold each network interface. */
function networkTimes({ ranks }: Program, costOf: CommandTime): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  for (const { rank, commands } of ranks) {
    for (const [index, { kind }] of commands.entries()) {
      const network = kind === "transfer" ? (costOf(rank, index).network ?? null) : null;
      if (network !== null) times.set(network.nic, (times.get(network.nic) ?? 0) + network.busy / 1000);
    }
  }
  return times;
}

/** Of each stream: a rank's transfers on two communicators run at once. */
function transferTimes(program: Program, costOf: CommandTime): readonly number[] {
  return program.ranks.flatMap(({ rank, commands, streams }) => {
    const times = streams.map(() => 0);
    for (const [index, command] of commands.entries()) {
      const { kind, stream } = command;
      if (kind === "transfer" && !isLocalCopy(program, rank, command))
        times[stream] = at(times, stream) + costOf(rank, index).busy / 1000;
    }
    return times;
  });
}

function chainOf(
  { ranks }: Program,
  { order, previous, source, peers, rankOf, indexOf }: Dependences,
  costOf: CommandTime,
): number {
  const end = new Float64Array(order.length);
  let longest = 0;
  const endOf = (number: number): number => (number < 0 ? 0 : at(end, number));
  /** When the last of some peers arrives. */
  const arrivals = new Map<readonly number[], number>();
  const arrivalOf = (needed: readonly number[]): number => {
    return getOrMake(arrivals, needed, () =>
      needed.reduce((latest, peer) => Math.max(latest, endOf(at(previous, peer))), 0),
    );
  };
  for (const number of order) {
    const [rank, index] = [rankOf(number), indexOf(number)];
    const start = Math.max(endOf(at(previous, number)), endOf(at(source, number)), arrivalOf(peers(number)));
    const { kind } = at(at(ranks, rank).commands, index);
    const { latency, busy } = isWork(kind) ? costOf(rank, index) : { latency: 0, busy: 0 };
    end[number] = start + (latency + busy) / 1000;
    longest = Math.max(longest, at(end, number));
  }
  return longest;
}

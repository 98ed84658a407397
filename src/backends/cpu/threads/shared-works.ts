/**
 * Work that several workers of a Program may do together: large launches and copies, and large phases of transfers,
 * each with its parts. All threads number works alike, so one word names one.
 */
import type { Launch } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { type View } from "../../../commands/view.ts";
import { scratchBytes } from "../../../kernels/kernel-library.ts";
import { type KernelPart, kernelWork, splitKernel } from "../../../kernels/nests/split-kernel.ts";
import type { MachineTables } from "../../../machine/tables.ts";
import type { MoveChain, Move } from "../../../machine/transfers/moves.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { CommandNumbers } from "./command-numbers.ts";
import { mostParts } from "./part-board.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** The parts of one work, two or more. */
export type SharedWork =
  | { readonly kind: "launch"; readonly launch: Launch; readonly parts: readonly KernelPart[] }
  | { readonly kind: "chains"; readonly parts: readonly (readonly MoveChain[])[] };

export interface SharedWorks {
  /** By number. One worker does the works that are missing here. */
  readonly works: ReadonlyMap<number, SharedWork>;
  readonly ofPhase: (phase: number) => number;
}

/** Moves of fewer bytes take about as long as waking a worker: 50 us. */
const leastBytes = 2 ** 21;

/** The work of a launch or copy has its command's number; phases of transfers follow. */
export function shareWorks(tables: MachineTables, numbers: CommandNumbers, workers: number): SharedWorks {
  const ofPhase = (phase: number): number => numbers.count + phase;
  const works = new Map<number, SharedWork>();
  const { program, phases } = tables;
  if (workers === 1) return { works, ofPhase };
  const share = (number: number, chains: readonly MoveChain[]): void => {
    const parts = partsOf(chains, workers);
    invariant(parts.length <= mostParts, "the parts of a work fit its ticket", { parts: parts.length });
    if (parts.length > 1) works.set(number, { kind: "chains", parts });
  };
  const partition = partitionKernels(program, workers);
  for (const { rank, commands } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      const number = numbers.numberOf(rank, index);
      if (command.kind === "launch") {
        const parts = partition[command.kernel] ?? null;
        if (parts !== null) works.set(number, { kind: "launch", launch: command, parts });
      } else if (command.kind === "copy") {
        const { source, destination } = command;
        share(number, [[{ op: null, sources: [{ from: 0, view: source }], destination }]]);
      }
    }
  }
  for (const { number, chains } of phases) share(ofPhase(number), chains);
  return { works, ofPhase };
}

function partsOf(chains: readonly MoveChain[], workers: number): readonly (readonly MoveChain[])[] {
  const size = chains.reduce((sum, chain) => sum + chainBytes(chain), 0) / leastBytes;
  return size < 1 ? [] : cutChains(chains, partCount(size, workers));
}

/** Kernels with less work take about 50 us or less, as long as waking a worker. */
const leastWork = 2 ** 21;

/** More parts than workers, so that a worker that comes late still finds some. */
const partsPerWorker = 2;

/**
 * The number of parts for work that is `size` times the least that is worth cutting. No part takes less than about 12
 * us.
 */
function partCount(size: number, workers: number): number {
  return Math.min(partsPerWorker * workers, Math.floor(4 * size));
}

/** By KernelId: two parts or more, or null for a kernel that runs whole. */
type Partition = readonly (readonly KernelPart[] | null)[];

export function partitionKernels({ kernels }: Program, workers: number): Partition {
  return kernels.map((kernel) => {
    const size = kernelWork(kernel) / leastWork;
    if (workers === 1 || size < 1) return null;
    const parts = splitKernel(kernel, partCount(size, workers));
    return parts.length > 1 ? parts : null;
  });
}

/** The most scratch that the kernels and their parts need. */
export function mostScratch({ kernels }: Program, partition: Partition): number {
  const parts = partition.flatMap((each) => each?.map(({ kernel }) => kernel) ?? []);
  return [...kernels, ...new Set(parts)].reduce((most, kernel) => Math.max(most, scratchBytes(kernel)), 0);
}

// Cuts the moves of a transfer or a copy into parts that may run concurrently. Large chains of moves
// (machine/transfers/moves.ts) are sliced along one axis, small ones grouped. Every element is moved or combined as in
// the whole, so bits stay the same.

const lineBytes = 64;

/** Bytes that a chain reads and writes. */
function chainBytes(chain: MoveChain): number {
  return chain.reduce(
    (sum, { sources, destination: { dtype, shape } }) =>
      sum + elementCount(shape) * dtypes[dtype].bytes * (sources.length + 1),
    0,
  );
}

/** At most `count` parts of about equal bytes; each part is a sequence of chains. */
export function cutChains(chains: readonly MoveChain[], count: number): readonly (readonly MoveChain[])[] {
  const share = chains.reduce((sum, chain) => sum + chainBytes(chain), 0) / count;
  const parts = Array.from({ length: count }, (): MoveChain[] => []);
  let before = 0;
  for (const slice of chains.flatMap((chain) => slicesOf(chain, Math.ceil(chainBytes(chain) / share)))) {
    const bytes = chainBytes(slice);
    // A slice belongs to the part that contains its middle.
    at(parts, Math.min(count - 1, Math.floor((before + bytes / 2) / share))).push(slice);
    before += bytes;
  }
  return parts.filter(({ length }) => length > 0);
}

/** At most `count` slices along the outermost axis of the result that has enough elements, or else the longest axis. */
function slicesOf(chain: MoveChain, count: number): readonly MoveChain[] {
  const { shape, strides, dtype } = at(chain, 0).destination;
  if (count < 2 || shape.length === 0) return [chain];
  const outermost = [...shape.keys()].toSorted((a, b) => at(strides, b) - at(strides, a));
  const longest = at(
    [...shape.keys()].toSorted((a, b) => at(shape, b) - at(shape, a)),
    0,
  );
  const axis = outermost.find((each) => at(shape, each) >= count) ?? longest;
  const extent = at(shape, axis);
  // No two workers write the same cache line.
  const grain = strides[axis] === 1 ? lineBytes / dtypes[dtype].bytes : 1;
  const blocks = Math.ceil(extent / grain);
  const slices = Math.min(count, blocks);
  const boundary = (i: number): number => Math.min(extent, Math.floor((i * blocks) / slices) * grain);
  return Array.from({ length: slices }, (_, i) => {
    const [start, stop] = [boundary(i), boundary(i + 1)];
    return chain.map((move) => sliceOfMove(move, axis, start, stop - start));
  });
}

function sliceOfMove({ op, sources, destination }: Move, axis: number, start: number, length: number): Move {
  const slice = (view: View): View => ({
    ...view,
    offset: view.offset + start * at(view.strides, axis) * dtypes[view.dtype].bytes,
    shape: view.shape.with(axis, length),
  });
  return {
    op,
    sources: sources.map(({ from, view }) => ({ from, view: slice(view) })),
    destination: slice(destination),
  };
}

/**
 * How threads share a reduction. Rows: memory is contiguous along the reduced loops. `lanes` neighbouring threads share
 * one element of the result and take a vector each in turn. Columns: memory is contiguous along the kept loops. A warp
 * takes 32 vectors of the result, and eight warps take turns over the reduced ones.
 */
import { accumulatesRows } from "../../../../kernels/nests/arrange-loops.ts";
import { iterationCount, loadsOf, type Access, type Loop, type Nest } from "../../../../kernels/nests/nest.ts";
import { type AlignmentOf, vectorWidth } from "./vector-width.ts";

export const blockThreads = 256;
const mostColumnLanes = 8;
/** A thread adds this many elements of a column before a second thread shares the column. */
const columnShare = 8;
/** Reduced elements of one part: few enough that blocks of all parts fill a GPU, enough to outweigh adding the parts. */
const rowPart = 1 << 14;
const columnPart = 1 << 7;

/** The number of parts of a long reduction. It depends only on the reduced extents and the layout. */
export function partCount(nest: Nest): number {
  const reduced = iterationCount(nest.reducedLoops);
  return Math.ceil(reduced / (accumulatesRows(nest) ? columnPart : rowPart));
}

/** How threads share elements. A vector has `keptWidth` kept and `reducedWidth` reduced elements, one of which is 1. */
export interface ReductionShape {
  readonly width: number;
  readonly keptWidth: number;
  readonly reducedWidth: number;
  readonly vectorLoop: Loop | undefined;
  readonly keptVectors: number;
  readonly reducedVectors: number;
  /** Threads that share one kept vector (a power of two), and their distance in the block. */
  readonly lanes: number;
  readonly laneStride: number;
  readonly lane: string;
  readonly kept: (type: string) => string;
  readonly blocks: number;
}

/** `target` is what this kernel writes, in `parts` parts. */
export function reductionShape(nest: Nest, alignmentOf: AlignmentOf, target: Access, parts: number): ReductionShape {
  return accumulatesRows(nest) ? columnShape(nest, alignmentOf, target, parts) : rowShape(nest, alignmentOf, parts);
}

function rowShape(nest: Nest, alignmentOf: AlignmentOf, parts: number): ReductionShape {
  const vectorLoop = nest.reducedLoops.at(-1);
  const width = vectorWidth(loadsOf(nest), [], nest.atoms, vectorLoop, alignmentOf);
  const reducedVectors = iterationCount(nest.reducedLoops) / width;
  const keptVectors = iterationCount(nest.loops);
  // Widths depend on alignment, which may differ between chunks; lanes do not.
  const lanes = Math.min(blockThreads, powerOfTwoAtLeast(Math.ceil(iterationCount(nest.reducedLoops) / parts / 32)));
  const rows = blockThreads / lanes;
  return {
    width,
    keptWidth: 1,
    reducedWidth: width,
    vectorLoop,
    keptVectors,
    reducedVectors,
    lanes,
    laneStride: 1,
    lane: lanes === 1 ? "0u" : `threadIdx.x % ${lanes}u`,
    kept: (type) => `(${type})blockIdx.x * ${rows}u + threadIdx.x / ${lanes}u`,
    blocks: Math.ceil(keptVectors / rows),
  };
}

function columnShape(nest: Nest, alignmentOf: AlignmentOf, target: Access, parts: number): ReductionShape {
  const vectorLoop = nest.loops.at(-1);
  const width = vectorWidth(loadsOf(nest), [target], nest.atoms, vectorLoop, alignmentOf);
  const keptVectors = iterationCount(nest.loops) / width;
  const reducedVectors = iterationCount(nest.reducedLoops);
  const lanes = Math.min(mostColumnLanes, powerOfTwoAtLeast(Math.ceil(reducedVectors / parts / columnShare)));
  const columns = blockThreads / lanes;
  return {
    width,
    keptWidth: width,
    reducedWidth: 1,
    vectorLoop,
    keptVectors,
    reducedVectors,
    lanes,
    laneStride: columns,
    lane: lanes === 1 ? "0u" : `threadIdx.x / ${columns}u`,
    kept: (type) => `(${type})blockIdx.x * ${columns}u + threadIdx.x % ${columns}u`,
    blocks: Math.ceil(keptVectors / columns),
  };
}

/** Iterations of the loops. */
export function powerOfTwoAtLeast(value: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(value)));
}

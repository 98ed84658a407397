/**
 * Runs a unit with reductions in blocks of rows: all nests of the unit over a few rows, then over the next. A norm or
 * softmax then reads a row from memory once, and its intermediate values stay in the cache. Every element is computed as
 * in the whole unit, so the bits are the same. A unit runs whole if its rows depend on each other, or if they are so long
 * that a block would not stay in the cache; every nest then reads memory.
 */
import type { Kernel, Operand } from "../commands/kernel.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { planKernel } from "./kernel-plan.ts";
import { accumulatesRows } from "./nests/arrange-loops.ts";
import { axesByStride, cutsAlong, type KernelPart, kernelParts, wholeKernel } from "./nests/split-kernel.ts";
import type { Phase } from "./phase.ts";
import { planUnit, type UnitPlan } from "./unit-plan.ts";
import { elementCount } from "../numerics/tensor/storage.ts";

/** Bytes of all values of a block: a share of a core's second-level cache, and the most where rows are long. */
const blockBytes = 2 ** 19;
const mostBlockBytes = 2 ** 21;

/** Rows that the lanes of a reduction take at once. */
const laneRows = 8;

/** The bytes of scratch that the blocks need, one after the other. */
export function blockScratchBytes(kernel: Kernel): number {
  const kernels = new Set(rowBlocks(kernel).map((block) => block.kernel));
  return [...kernels].reduce((most, each) => {
    const { valueBytes, workBytes } = planKernel(each);
    return Math.max(most, valueBytes + workBytes);
  }, 0);
}

/** In order; the kernel itself if it runs whole. */
export function rowBlocks(kernel: Kernel): readonly KernelPart[] {
  if (kernel.kind !== "unit" || !kernel.steps.some(({ kind }) => kind === "Reduction")) return [wholeKernel(kernel)];
  const plan = planUnit(kernel);
  const bytes = [...kernel.inputs, ...kernel.outputs].reduce((sum, each) => sum + bytesOf(each), plan.valueBytes);
  if (bytes <= blockBytes || plan.phases.length < 2 || !plan.phases.every(isRowWise)) return [wholeKernel(kernel)];
  const { shape } = at(kernel.outputs, 0);
  for (const axis of axesByStride(kernel)) {
    const extent = at(shape, axis);
    const most = Math.floor(mostBlockBytes / (bytes / extent));
    const wanted = Math.floor(blockBytes / (bytes / extent));
    const lengths = [wanted < laneRows ? wanted : wanted - (wanted % laneRows), laneRows];
    const axes = most < 1 || extent < 2 ? null : cutsAlong(kernel, axis);
    if (axes === null) continue;
    for (const length of lengths) {
      if (length < 1 || length > most || length >= extent) continue;
      const ranges = Array.from({ length: Math.ceil(extent / length) }, (_, i) => ({
        start: i * length,
        stop: Math.min(extent, (i + 1) * length),
      }));
      const blocks = kernelParts(kernel, axes, ranges);
      const block = at(blocks, 0).kernel;
      if (block.kind === "unit" && lanesOf(planUnit(block)) >= Math.min(laneRows, lanesOf(plan))) return blocks;
    }
  }
  return [wholeKernel(kernel)];
}

/** Blocks of rows would read columns in short strips. */
function isRowWise(phase: Phase): boolean {
  return phase.kind === "nest" && (phase.nest.reduction === null || !accumulatesRows(phase.nest));
}

/** The fewest elements that a reduction computes side by side. */
function lanesOf({ phases }: UnitPlan): number {
  const extents = phases.flatMap((phase) =>
    phase.kind === "nest" && phase.nest.reduction !== null ? [phase.nest.loops.at(-1)?.extent ?? 1] : [],
  );
  return Math.min(...extents);
}

/** Elements along an axis of stride 0 count once. */
function bytesOf({ dtype, shape, strides }: Operand): number {
  return elementCount(shape.filter((_, axis) => strides[axis] !== 0)) * dtypes[dtype].bytes;
}

/** Which kernels of a Program idle workers may help with, and their parts. Every thread computes the same. */
import type { Program } from "../../../commands/program.ts";
import { scratchBytes } from "../../../kernels/kernel-library.ts";
import { kernelWork } from "../../../kernels/kernel-work.ts";
import { type KernelPart, splitKernel } from "../../../kernels/nests/split-kernel.ts";

/** Below this a kernel takes about 50 us or less, as long as waking a worker. */
const leastWork = 2 ** 21;

/** More parts than workers, so that a worker that comes late still finds some. */
const partsPerWorker = 2;

/**
 * The number of parts for work that is `size` times the least that is worth cutting. No part takes less than about 12
 * us.
 */
export function partCount(size: number, workers: number): number {
  return Math.min(partsPerWorker * workers, Math.floor(4 * size));
}

/** By KernelId: two parts or more, or null for a kernel that runs whole. */
export type Partition = readonly (readonly KernelPart[] | null)[];

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

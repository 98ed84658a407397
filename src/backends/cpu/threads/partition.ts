/** Which kernels of a Program idle workers may take parts of, and those parts: the same on every thread. */
import type { Program } from "../../../commands/program.ts";
import { scratchBytes } from "../../../kernels/kernel-library.ts";
import { kernelWork } from "../../../kernels/kernel-work.ts";
import { type KernelPart, splitKernel } from "../../../kernels/split-kernel.ts";

/** Below this a kernel takes about 50 us or less: as long as waking a worker. */
const leastWork = 2 ** 21;

/** More parts than workers, so that one that comes late still finds some. */
export const partsPerWorker = 2;

/** By KernelId: two parts or more, or null for a kernel that runs whole. */
export type Partition = readonly (readonly KernelPart[] | null)[];

export function partitionKernels({ kernels }: Program, workers: number): Partition {
  return kernels.map((kernel) => {
    if (workers === 1 || kernelWork(kernel) < leastWork) return null;
    const parts = splitKernel(kernel, partsPerWorker * workers);
    return parts.length > 1 ? parts : null;
  });
}

/** Scratch that the kernels and their parts need at most. */
export function mostScratch({ kernels }: Program, partition: Partition): number {
  const parts = partition.flatMap((each) => each?.map(({ kernel }) => kernel) ?? []);
  return [...kernels, ...new Set(parts)].reduce((most, kernel) => Math.max(most, scratchBytes(kernel)), 0);
}

/** The buffers and kernels of a Program together with those that are added to it while its commands are rewritten. */
import { makeId, at, getOrMake } from "../support/invariant.ts";
import { dtypes } from "../numerics/dtype.ts";
import type { BufferId, PlacedBuffer } from "./buffer.ts";
import type { KernelId } from "./command.ts";
import type { Kernel } from "./kernel.ts";
import { bufferAlignment } from "./link/memory/memory-layout.ts";
import type { Program } from "./program.ts";
import { elementCount } from "../numerics/tensor/host-tensor.ts";

export interface AddedKernels {
  /** The Program's kernels and those that were added. */
  readonly kernels: readonly Kernel[];
  /** The id of a kernel. A new kernel is added. */
  readonly kernelId: (kernel: Kernel) => KernelId;
}

export interface Additions extends AddedKernels {
  /** The Program's buffers and those that were added. */
  readonly buffers: Program["buffers"];
  /** A new contiguous temporary of a rank. It shares bytes with no other buffer. */
  readonly addTemporary: (rank: number, tensor: Pick<PlacedBuffer, "dtype" | "shape" | "name">) => BufferId;
  /** Bytes of a rank's arena of temporaries. */
  readonly temporaryBytes: (rank: number) => number;
}

/** `textOf`: equal for equal kernels. */
export function createAddedKernels(given: readonly Kernel[], textOf: (kernel: Kernel) => string): AddedKernels {
  const kernels = [...given];
  let known: Map<string, KernelId> | null = null;
  return {
    kernels,
    kernelId: (kernel) => {
      known ??= new Map(given.map((each, id) => [textOf(each), makeId<KernelId>(id)]));
      const text = textOf(kernel);
      return getOrMake(known, text, () => makeId<KernelId>(kernels.push(kernel) - 1));
    },
  };
}

export function createAdditions(
  { ranks, buffers: placed, kernels }: Pick<Program, "ranks" | "buffers" | "kernels">,
  textOf: (kernel: Kernel) => string,
): Additions {
  const buffers = [...placed];
  const temporaryBytes = ranks.map(({ arenaBytes }) => arenaBytes.temporary);
  return {
    ...createAddedKernels(kernels, textOf),
    buffers,
    addTemporary: (rank, { dtype, shape, name }) => {
      const id = makeId<BufferId>(buffers.length);
      const bytes = elementCount(shape) * dtypes[dtype].bytes;
      const offset = at(temporaryBytes, rank);
      temporaryBytes[rank] = offset + Math.ceil(bytes / bufferAlignment) * bufferAlignment;
      const place = { rank, arena: "temporary", offset } as const;
      buffers.push({ id, role: "temporary", ...place, bytes, dtype, shape, name, position: null });
      return id;
    },
    temporaryBytes: (rank) => at(temporaryBytes, rank),
  };
}

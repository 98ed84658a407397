/**
 * The memory accesses of a Program's commands, by arena, and the kernels and buffers that a rewrite adds. Buffers that
 * share bytes of an arena conflict here too, so a rewrite that keeps the order of conflicting commands also keeps
 * lifetimes apart.
 */
import type { BufferId, PlacedBuffer } from "../../../commands/buffer.ts";
import type { Command, KernelId } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import { bufferAlignment } from "../../../commands/link/memory/memory-layout.ts";
import type { Program } from "../../../commands/program.ts";
import { elementCount } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { Touch } from "./touch.ts";
import type { TouchCache } from "./touch-cache.ts";

export interface Memory {
  /** The Program's buffers and those that rewrites add. */
  readonly buffers: Program["buffers"];
  /** The Program's kernels and those that rewrites add. */
  readonly kernels: readonly Kernel[];
  /** The id of a kernel. A new kernel is added. */
  readonly kernelId: (kernel: Kernel) => KernelId;
  readonly touches: (command: Command) => readonly Touch[];
  /** A new contiguous temporary of a rank. It shares bytes with no other buffer. */
  readonly addTemporary: (rank: number, tensor: Pick<PlacedBuffer, "dtype" | "shape" | "name">) => BufferId;
  /** Bytes of a rank's arena of temporaries. */
  readonly temporaryBytes: (rank: number) => number;
}

/** `touched`: the accesses of commands that are known, shared by all memories of one Program. */
export function createMemory(
  { ranks, buffers: placed, kernels: given }: Program,
  cache: TouchCache,
  touched: Map<Command, readonly Touch[]>,
): Memory {
  const [kernels, buffers] = [[...given], [...placed]];
  const temporaryBytes = ranks.map(({ arenaBytes }) => arenaBytes.temporary);
  const operands = { buffers, kernels };
  let knownKernels: Map<string, KernelId> | null = null;
  return {
    buffers,
    kernels,
    kernelId: (kernel) => {
      knownKernels ??= new Map(given.map((each, id) => [cache.textOf(each), makeId<KernelId>(id)]));
      const text = cache.textOf(kernel);
      const id = knownKernels.get(text) ?? makeId<KernelId>(kernels.push(kernel) - 1);
      knownKernels.set(text, id);
      return id;
    },
    touches: (command) => {
      const known = touched.get(command);
      if (known !== undefined) return known;
      const found = cache.touchesOf(command, operands);
      touched.set(command, found);
      return found;
    },
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

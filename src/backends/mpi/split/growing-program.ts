/** A Program that gets more buffers, kernels, slots and channels while its commands are rewritten. */
import type { BufferId, PlacedBuffer } from "../../../commands/buffer.ts";
import type { KernelId, SlotId } from "../../../commands/command.ts";
import type { Kernel } from "../../../commands/kernel.ts";
import { bufferAlignment } from "../../../commands/link/memory/memory-layout.ts";
import type { Program, Slot } from "../../../commands/program.ts";
import { contiguousStrides, elementCount, type View } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { Channel } from "./channel.ts";

export interface GrowingProgram {
  readonly program: Program;
  /** By rank: the process that holds it. */
  readonly processOf: readonly number[];
  readonly channels: readonly Channel[];
  readonly addChannel: (channel: Omit<Channel, "id">) => number;
  /** `waiter` waits for what `signaller` does. */
  readonly addSlot: (signaller: number, waiter: number) => SlotId;
  /** Memory of the rank for elements of the view, in row-major order. */
  readonly addBox: (rank: number, view: View) => View;
  /** Memory of the rank for all bytes between the first and the last element of the view, with its strides. */
  readonly addSpan: (rank: number, view: View) => View;
  readonly kernelId: (kernel: Kernel) => KernelId;
  readonly bufferRank: (buffer: BufferId) => number;
  /** With what was added. */
  readonly grown: () => Pick<Program, "buffers" | "kernels" | "slots"> & {
    readonly temporaryBytes: readonly number[];
  };
}

export function growingProgram(program: Program, processOf: readonly number[]): GrowingProgram {
  const buffers: PlacedBuffer[] = [...program.buffers];
  const kernels: Kernel[] = [...program.kernels];
  const slots: Slot[] = [...program.slots];
  const channels: Channel[] = [];
  const temporaryBytes = program.ranks.map(({ arenaBytes }) => arenaBytes.temporary);
  const known = new Map<string, KernelId>();
  const addBuffer = (rank: number, view: View, elements: number): BufferId => {
    const id = makeId<BufferId>(buffers.length);
    const bytes = elements * dtypes[view.dtype].bytes;
    const offset = at(temporaryBytes, rank);
    temporaryBytes[rank] = offset + Math.ceil(bytes / bufferAlignment) * bufferAlignment;
    const { name } = at(buffers, view.buffer);
    const place = { rank, arena: "temporary", offset } as const;
    buffers.push({
      id,
      role: "temporary",
      ...place,
      bytes,
      dtype: view.dtype,
      shape: [elements],
      name,
      position: null,
    });
    return id;
  };
  return {
    program,
    processOf,
    channels,
    addChannel: (channel) => {
      const id = channels.length;
      channels.push({ id, ...channel });
      return id;
    },
    addSlot: (signaller, waiter) => {
      const id = makeId<SlotId>(slots.length);
      slots.push({ id, signaller, waiter });
      return id;
    },
    addBox: (rank, view) => ({
      ...view,
      buffer: addBuffer(rank, view, elementCount(view.shape)),
      offset: 0,
      strides: contiguousStrides(view.shape),
    }),
    addSpan: (rank, view) => {
      const last = view.shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(view.strides, axis), 0);
      const elements = view.shape.includes(0) ? 0 : last + 1;
      return { ...view, buffer: addBuffer(rank, view, elements), offset: 0 };
    },
    kernelId: (kernel) => {
      const text = JSON.stringify(kernel);
      const id = known.get(text) ?? makeId<KernelId>(kernels.push(kernel) - 1);
      known.set(text, id);
      return id;
    },
    bufferRank: (buffer) => at(buffers, buffer).rank,
    grown: () => ({ buffers, kernels, slots, temporaryBytes }),
  };
}

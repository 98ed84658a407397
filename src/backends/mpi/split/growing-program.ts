/** A Program that gets more buffers, kernels, slots and channels while its commands are rewritten. */
import { type Additions, createAdditions } from "../../../commands/additions.ts";
import type { BufferId } from "../../../commands/buffer.ts";
import type { SlotId } from "../../../commands/command.ts";
import type { Program, Slot } from "../../../commands/program.ts";
import { contiguousStrides, isEmpty, type View } from "../../../commands/view.ts";
import { makeId, at } from "../../../support/invariant.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

export interface GrowingProgram extends Additions {
  readonly program: Program;
  /** By rank: the process that holds it. */
  readonly processOf: readonly number[];
  readonly slots: readonly Slot[];
  readonly channels: readonly Channel[];
  /** Of one message in a run, unless `count` says more, and with nothing that is left out. */
  readonly addChannel: (channel: Pick<Channel, "from" | "to"> & Partial<Omit<Channel, "id">>) => number;
  /** `waiter` waits for what `signaller` does. */
  readonly addSlot: (signaller: number, waiter: number) => SlotId;
  /** Memory of the rank for elements of the view, in row-major order. */
  readonly addBox: (rank: number, view: View) => View;
  /** Memory of the rank for all bytes between the first and the last element of the view, with its strides. */
  readonly addSpan: (rank: number, view: View) => View;
  readonly bufferRank: (buffer: BufferId) => number;
}

const empty = { raise: null, count: 1, payload: null, sent: null, ready: null, slots: [], reply: null } as const;

export function growingProgram(program: Program, processOf: readonly number[]): GrowingProgram {
  const additions = createAdditions(program, (kernel) => JSON.stringify(kernel));
  const { buffers, addTemporary } = additions;
  const slots: Slot[] = [...program.slots];
  const channels: Channel[] = [];
  const addMemory = (rank: number, { dtype, buffer }: View, elements: number): BufferId =>
    addTemporary(rank, { dtype, shape: [elements], name: at(buffers, buffer).name });
  return {
    ...additions,
    program,
    processOf,
    slots,
    channels,
    addChannel: (channel) => channels.push({ ...empty, ...channel, id: channels.length }) - 1,
    addSlot: (signaller, waiter) => {
      const id = makeId<SlotId>(slots.length);
      slots.push({ id, signaller, waiter });
      return id;
    },
    addBox: (rank, view) => ({
      ...view,
      buffer: addMemory(rank, view, elementCount(view.shape)),
      offset: 0,
      strides: contiguousStrides(view.shape),
    }),
    addSpan: (rank, view) => {
      const last = view.shape.reduce((sum, extent, axis) => sum + (extent - 1) * at(view.strides, axis), 0);
      return { ...view, buffer: addMemory(rank, view, isEmpty(view) ? 0 : last + 1), offset: 0 };
    },
    bufferRank: (buffer) => at(buffers, buffer).rank,
  };
}

// Channels: what processes send each other in a run. A message leaves when a slot of its process is signalled, or as the
// answer to another message; its arrival signals slots of the receiving process. All processes number channels alike.

export interface Channel {
  /** The tag of its messages. */
  readonly id: number;
  readonly from: number;
  readonly to: number;
  /** The slot whose signal sends a message; null if it answers another channel. */
  readonly raise: SlotId | null;
  /** Messages in a run. */
  readonly count: number;
  /** Read by the sender, and written by the receiver: of one shape and dtype. Null for a message without data. */
  readonly payload: ChannelPayload | null;
  /** Signalled in the sending process when a message has left, so that its source may change; null for none. */
  readonly sent: SlotId | null;
  /** The slot whose signal lets a message arrive, because its destination is in use before; null for any time. */
  readonly ready: SlotId | null;
  /** Signalled when a message has arrived. */
  readonly slots: readonly SlotId[];
  /** The channel whose message answers; null for none. */
  readonly reply: number | null;
}

export interface ChannelPayload {
  readonly source: View;
  readonly destination: View;
}

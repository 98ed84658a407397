/**
 * Random linked Programs of a few commands, right and wrong ones alike: two or three ranks, two streams each, every
 * kind of edge.
 */
import type { BufferId, PlacedBuffer } from "../../../src/commands/buffer.ts";
import type {
  Collective,
  Command,
  CommandStreamId,
  EventId,
  PointToPoint,
  SlotId,
  TransferId,
} from "../../../src/commands/command.ts";
import type { CollectiveType } from "../../../src/commands/collectives.ts";
import type { LinkedTransfer, Participant, Program, Slot, TransferEdge } from "../../../src/commands/program.ts";
import type { View } from "../../../src/commands/view.ts";
import { makeId, at } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";

const streamCount = 2;
const bufferBytes = 16;

/** About `size` commands over all ranks. */
export function randomProgram(random: Random, size: number): Program {
  const rankCount = 2 + random.integer(2);
  const commands: Command[][] = Array.from({ length: rankCount }, () => []);
  const eventCounts = commands.map(() => 0);
  const slots: Slot[] = [];
  const transfers: LinkedTransfer[] = [];
  const stream = (): CommandStreamId => makeId(random.integer(streamCount));
  const rank = (): number => random.integer(rankCount);
  const view = (of: number, elements = 1 + random.integer(2)): View => ({
    buffer: makeId<BufferId>(of),
    offset: 4 * random.integer(bufferBytes / 4 - elements + 1),
    dtype: "float",
    shape: [elements],
    strides: [1],
  });
  /** At a random later position, so that lists are not in an order in which they run. */
  const insert = (of: number, command: Command): void => {
    const list = at(commands, of);
    const from = Math.max(0, list.length - random.integer(3));
    list.splice(from, 0, command);
  };
  let count = 0;
  while (count < size) {
    switch (random.integer(5)) {
      case 0:
      case 1: {
        const own = rank();
        const elements = 1 + random.integer(2);
        const source = view(random.integer(2) === 0 ? own : rank(), elements);
        const destination = view(own, elements);
        if (source.buffer === destination.buffer) break;
        insert(own, { kind: "copy", stream: stream(), source, destination });
        count++;
        break;
      }
      case 2: {
        const own = rank();
        const event = makeId<EventId>(at(eventCounts, own));
        eventCounts[own] = event + 1;
        at(commands, own).push({ kind: "recordEvent", stream: stream(), event });
        at(commands, own).push({ kind: "waitEvent", stream: stream(), event });
        count += 2;
        break;
      }
      case 3: {
        const [signaller, waiter] = [rank(), rank()];
        if (signaller === waiter) break;
        const again = slots.find((slot) => slot.signaller === signaller && slot.waiter === waiter);
        const slot = again !== undefined && random.integer(2) === 0 ? again.id : makeId<SlotId>(slots.length);
        if (slot === slots.length) slots.push({ id: slot, signaller, waiter });
        insert(signaller, { kind: "signal", stream: stream(), slot });
        insert(waiter, { kind: "waitSignal", stream: stream(), slot });
        count += 2;
        break;
      }
      case 4: {
        const id = makeId<TransferId>(transfers.length);
        const made =
          random.integer(2) === 0 ? collective(random, id, rankCount, view) : exchange(random, id, rankCount, view);
        transfers.push({
          ...made,
          participants: made.participants.map((member) => {
            const { operation } = member;
            insert(member.rank, { kind: "transfer", stream: stream(), communicator: `c${id}`, operation });
            return member;
          }),
        });
        count += made.participants.length;
        break;
      }
    }
  }
  return finish(commands, eventCounts, slots, transfers);
}

function collective(
  random: Random,
  id: TransferId,
  rankCount: number,
  view: (of: number, elements?: number) => View,
): LinkedTransfer {
  const types: readonly CollectiveType[] = ["Allreduce", "Broadcast", "Reduce"];
  const type = at(types, random.integer(types.length));
  const root = type === "Allreduce" ? null : random.integer(rankCount);
  const team = Array.from({ length: rankCount }, (_, own) => own);
  const participants = team.map((own): Participant => {
    const operation: Collective = {
      kind: "collective",
      type,
      team,
      root,
      reduceOp: type === "Broadcast" ? null : "sum",
      input: type === "Broadcast" && own !== root ? null : view(own, 1),
      output: type === "Reduce" && own !== root ? null : view(own, 1),
    };
    return { rank: own, command: -1, operation };
  });
  return { kind: "collective", id, communicator: `c${id}`, participants };
}

/** A send, or one in each direction. */
function exchange(
  random: Random,
  id: TransferId,
  rankCount: number,
  view: (of: number, elements?: number) => View,
): LinkedTransfer {
  const from = random.integer(rankCount);
  const to = (from + 1 + random.integer(rankCount - 1)) % rankCount;
  const both = random.integer(2) === 0;
  const op = (type: PointToPoint["type"], own: number, peer: number): PointToPoint => ({
    type,
    peer,
    view: view(own, 1),
  });
  const ops = [
    [op("send", from, to), ...(both ? [op("recv", from, to)] : [])],
    [op("recv", to, from), ...(both ? [op("send", to, from)] : [])],
  ];
  const participants = [from, to].map((rank, i): Participant => ({
    rank,
    command: -1,
    operation: { kind: "group", ops: at(ops, i) },
  }));
  const edges: TransferEdge[] = [{ from: 0, sendOp: 0, to: 1, recvOp: 0 }];
  if (both) edges.push({ from: 1, sendOp: 1, to: 0, recvOp: 1 });
  return { kind: "group", id, communicator: `c${id}`, participants, edges };
}

/** A memory of one buffer per rank; transfers that moved with insertions are found again by their communicator. */
function finish(
  commands: readonly (readonly Command[])[],
  eventCounts: readonly number[],
  slots: readonly Slot[],
  transfers: readonly LinkedTransfer[],
): Program {
  const communicatorAt = (rank: number, name: string): number =>
    at(commands, rank).findIndex((command) => command.kind === "transfer" && command.communicator === name);
  const placed = transfers.map((transfer): LinkedTransfer => ({
    ...transfer,
    participants: transfer.participants.map((member) => ({
      ...member,
      command: communicatorAt(member.rank, transfer.communicator),
    })),
  }));
  const buffers = commands.map((_, rank): PlacedBuffer => ({
    id: makeId<BufferId>(rank),
    role: "temporary",
    arena: "symmetric",
    bytes: bufferBytes,
    dtype: "float",
    shape: [bufferBytes / 4],
    name: `T${rank}`,
    position: null,
    rank,
    offset: 0,
  }));
  return {
    kind: "Program",
    buffers,
    kernels: [],
    slots,
    transfers: placed,
    ranks: commands.map((list, rank) => ({
      rank,
      streams: Array.from({ length: streamCount }, (_, id) => ({
        id: makeId<CommandStreamId>(id),
        role: id === 0 ? "caller" : "worker",
        name: `stream ${id}`,
      })),
      eventCount: at(eventCounts, rank),
      commands: list,
      origins: list.map((_, index) => ({ statement: `command ${index}`, path: [index], iteration: [] })),
      transferOf: list.map((command) =>
        command.kind === "transfer"
          ? (placed.find(({ communicator }) => communicator === command.communicator)?.id ?? null)
          : null,
      ),
      arenaBytes: { input: 0, output: 0, temporary: 0, symmetric: bufferBytes },
    })),
  };
}

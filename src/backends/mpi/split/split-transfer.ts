/**
 * A transfer between processes as copies, signals and messages. A participant copies what others need of its input into
 * boxes, so that it need not wait for them; they read the boxes, or receive them, and make their outputs in team order,
 * by the moves of the machine.
 *
 *     Allreduce      ->      copy input -> box; signals;      waits;  combine inputs and boxes -> output
 */
import type { Command, SlotId } from "../../../commands/command.ts";
import type { LinkedTransfer } from "../../../commands/program.ts";
import { isEmpty, operandOf, refOf, type View } from "../../../commands/view.ts";
import { copyChains, type Move, movesTo } from "../../../machine/transfers/moves.ts";
import { at, invariant } from "../../../support/invariant.ts";
import type { GrowingProgram } from "./growing-program.ts";

/** What replaces the transfer commands, in order of participants. */
export type SplitTransfer = readonly (readonly Command[])[];

/** A box in another process, and what its message signals. */
interface Elsewhere {
  readonly box: View;
  readonly raise: SlotId;
  readonly slots: SlotId[];
}

/** A view of a participant's input that others need. */
interface Needed {
  readonly from: number;
  readonly view: View;
  /** The copy that its process's ranks read. */
  readonly box: View;
  /** Of other processes. */
  readonly elsewhere: Map<number, Elsewhere>;
}

export function splitTransfer(growing: GrowingProgram, transfer: LinkedTransfer): SplitTransfer {
  const { participants } = transfer;
  const rankAt = (position: number): number => at(participants, position).rank;
  const processAt = (position: number): number => at(growing.processOf, rankAt(position));
  const needed = new Map<string, Needed>();
  const meetings = new Map<string, SlotId>();
  const waits = participants.map((): Set<SlotId> => new Set());
  const raised = participants.map((): Set<SlotId> => new Set());

  /** Where the participant at `to` reads a view of the one at `from`. */
  const sourceFor = (from: number, view: View, to: number): View => {
    if (from === to || isEmpty(view)) return view;
    const key = JSON.stringify([from, view]);
    const found: Needed = needed.get(key) ?? {
      from,
      view,
      box: growing.addBox(rankAt(from), view),
      elsewhere: new Map(),
    };
    needed.set(key, found);
    const process = processAt(to);
    if (process === processAt(from)) {
      const meeting = `${from} ${to}`;
      const slot = meetings.get(meeting) ?? growing.addSlot(rankAt(from), rankAt(to));
      meetings.set(meeting, slot);
      at(raised, from).add(slot);
      at(waits, to).add(slot);
      return found.box;
    }
    const own: Elsewhere = found.elsewhere.get(process) ?? {
      box: growing.addBox(rankAt(to), view),
      raise: growing.addSlot(rankAt(from), rankAt(to)),
      slots: [],
    };
    found.elsewhere.set(process, own);
    at(raised, from).add(own.raise);
    const slot = growing.addSlot(rankAt(from), rankAt(to));
    own.slots.push(slot);
    at(waits, to).add(slot);
    return own.box;
  };

  const streamOf = participants.map(
    ({ rank, command }) => at(at(growing.program.ranks, rank).commands, command).stream,
  );
  const made = participants.map((_, position) =>
    movesOf(transfer, position).map((move): Command => {
      const stream = at(streamOf, position);
      const sources = move.sources.map(({ from, view }) => sourceFor(from, view, position));
      const { op, destination } = move;
      if (op === null) return { kind: "copy", stream, source: at(sources, 0), destination };
      const kernel = growing.kernelId({
        kind: "combine",
        op,
        inputs: sources.map(operandOf),
        outputs: [operandOf(destination)],
      });
      return { kind: "launch", stream, kernel, inputs: sources.map(refOf), outputs: [refOf(destination)] };
    }),
  );
  const boxed = participants.map((): Command[] => []);
  for (const { from, view, box, elsewhere } of needed.values()) {
    boxed[from]?.push({ kind: "copy", stream: at(streamOf, from), source: view, destination: box });
    for (const [process, { box: theirs, raise, slots }] of elsewhere) {
      growing.addChannel({
        from: processAt(from),
        to: process,
        raise,
        count: 1,
        payload: { source: box, destination: theirs },
        slots,
        reply: null,
      });
    }
  }
  return participants.map((_, position) => {
    const stream = at(streamOf, position);
    return [
      ...at(boxed, position),
      ...[...at(raised, position)].map((slot): Command => ({ kind: "signal", stream, slot })),
      ...[...at(waits, position)].map((slot): Command => ({ kind: "waitSignal", stream, slot })),
      ...at(made, position),
    ];
  });
}

/** The moves that make what the participant at `to` receives. */
function movesOf(transfer: LinkedTransfer, to: number): readonly Move[] {
  if (transfer.kind === "collective") {
    const operations = transfer.participants.map(({ operation }) => {
      invariant(operation.kind === "collective", "the participants of a collective are collectives", transfer.id);
      return operation;
    });
    return movesTo(operations, to);
  }
  const viewOf = (position: number, op: number): View => {
    const { operation } = at(transfer.participants, position);
    invariant(operation.kind === "group", "the participants of a group are groups", transfer.id);
    return at(operation.ops, op).view;
  };
  return transfer.edges
    .filter((edge) => edge.to === to)
    .flatMap(({ from, sendOp, recvOp }) => copyChains(from, viewOf(from, sendOp), viewOf(to, recvOp)).flat());
}

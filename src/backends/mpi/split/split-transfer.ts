/**
 * A transfer between processes as copies, signals and messages. Messages to other processes leave from the participant's
 * input, which stays as it is until they have left. Ranks of its own process read a box, into which it copies. Whoever
 * receives makes its output in team order, by the moves of the machine; where one message is the whole move, it arrives
 * in the output at once.
 *
 *     Allreduce      ->      copy input -> box; signals;      waits;  combine inputs and boxes -> output
 *     Allgather      ->      signals;                         waits
 */
import type { Command, SlotId } from "../../../commands/command.ts";
import type { LinkedTransfer, Participant } from "../../../commands/program.ts";
import { isEmpty, operandOf, refOf, type View } from "../../../commands/view.ts";
import { copyChains, type Move, movesTo } from "../../../machine/transfers/moves.ts";
import { at, invariant, pushTo } from "../../../support/invariant.ts";
import type { GrowingProgram } from "./growing-program.ts";

/** What replaces the transfer commands, in order of participants. */
export type SplitTransfer = readonly (readonly Command[])[];

/** A read of another participant's input. */
interface Use {
  readonly from: number;
  readonly view: View;
  readonly to: number;
  readonly move: Move;
}

export function splitTransfer(growing: GrowingProgram, transfer: LinkedTransfer): SplitTransfer {
  const { participants } = transfer;
  const rankAt = (position: number): number => at(participants, position).rank;
  const processAt = (position: number): number => at(growing.processOf, rankAt(position));
  const streamAt = (position: number): Command["stream"] => {
    const { rank, command } = at(participants, position);
    return at(at(growing.program.ranks, rank).commands, command).stream;
  };
  const parts = participants.map((): Parts => ({ boxed: [], raised: new Set(), waits: new Set() }));
  const movesAt = participants.map((_, position) => movesOf(transfer, position));
  /** Where a move reads what another participant has; null if a message brings it to the move's destination. */
  const sources = new Map<Move, Map<View, View | null>>();
  const read = ({ move, view }: Use, source: View | null): void => {
    sources.set(move, (sources.get(move) ?? new Map<View, View | null>()).set(view, source));
  };

  for (const uses of grouped(movesAt, processAt)) {
    const [first] = uses;
    invariant(first !== undefined, "groups are not empty");
    const { from, view, to, move } = first;
    const own = at(parts, from);
    if (processAt(to) === processAt(from)) {
      const box = growing.addBox(rankAt(from), view);
      own.boxed.push({ kind: "copy", stream: streamAt(from), source: view, destination: box });
      for (const use of uses) {
        const slot = growing.addSlot(rankAt(from), rankAt(use.to));
        own.raised.add(slot);
        at(parts, use.to).waits.add(slot);
        read(use, box);
      }
      continue;
    }
    const isWhole = uses.length === 1 && move.op === null && arrivesApart(transfer, at(participants, to), move);
    const destination = isWhole ? move.destination : growing.addBox(rankAt(to), view);
    const [raise, sent] = [growing.addSlot(rankAt(from), rankAt(to)), growing.addSlot(rankAt(from), rankAt(from))];
    own.raised.add(raise);
    own.waits.add(sent);
    const ready = isWhole ? growing.addSlot(rankAt(to), rankAt(to)) : null;
    if (ready !== null) at(parts, to).raised.add(ready);
    const slots = uses.map((use): SlotId => {
      const slot = growing.addSlot(rankAt(from), rankAt(use.to));
      at(parts, use.to).waits.add(slot);
      read(use, isWhole ? null : destination);
      return slot;
    });
    const payload = { source: view, destination };
    growing.addChannel({ from: processAt(from), to: processAt(to), raise, payload, sent, ready, slots });
  }

  return participants.map((_, position) => {
    const stream = streamAt(position);
    const { boxed, raised, waits } = at(parts, position);
    const made = at(movesAt, position).flatMap((move): readonly Command[] => {
      const known = sources.get(move);
      const views = move.sources.map(({ view }) => known?.get(view) ?? (known?.get(view) === null ? null : view));
      return views.includes(null)
        ? []
        : [
            commandOf(
              growing,
              move,
              views.flatMap((each) => each ?? []),
              stream,
            ),
          ];
    });
    return [
      ...boxed,
      ...[...raised].map((slot): Command => ({ kind: "signal", stream, slot })),
      // Also until messages have left: what is made may overwrite the input.
      ...[...waits].map((slot): Command => ({ kind: "waitSignal", stream, slot })),
      ...made,
    ];
  });
}

/** The commands of a participant, in this order. */
interface Parts {
  readonly boxed: Command[];
  readonly raised: Set<SlotId>;
  readonly waits: Set<SlotId>;
}

/** The reads of others' inputs, by what is read and the process that reads it. */
function grouped(
  movesAt: readonly (readonly Move[])[],
  processAt: (position: number) => number,
): Iterable<readonly Use[]> {
  const groups = new Map<string, Use[]>();
  for (const [to, moves] of movesAt.entries()) {
    for (const move of moves) {
      for (const { from, view } of move.sources) {
        if (from === to || isEmpty(view)) continue;
        const key = JSON.stringify([from, view, processAt(to)]);
        pushTo(groups, key, { from, view, to, move });
      }
    }
  }
  return groups.values();
}

/**
 * Whether bytes may arrive in the participant's output while messages leave from its input: the two share no bytes that
 * matter. In place, an Allgather's input is its own slice of the output, which no message brings.
 */
function arrivesApart(transfer: LinkedTransfer, { operation }: Participant, { destination }: Move): boolean {
  if (operation.kind === "collective" && operation.type === "Allgather") return true;
  const inputs =
    operation.kind === "collective"
      ? [operation.input]
      : operation.ops.map(({ type, view }) => (type === "send" ? view : null));
  return transfer.kind === "group" || inputs.every((input) => input?.buffer !== destination.buffer);
}

function commandOf(
  growing: GrowingProgram,
  { op, destination }: Move,
  sources: readonly View[],
  stream: Command["stream"],
): Command {
  if (op === null) return { kind: "copy", stream, source: at(sources, 0), destination };
  const kernel = growing.kernelId({
    kind: "combine",
    op,
    inputs: sources.map(operandOf),
    outputs: [operandOf(destination)],
  });
  return { kind: "launch", stream, kernel, inputs: sources.map(refOf), outputs: [refOf(destination)] };
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

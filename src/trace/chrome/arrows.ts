/**
 * Which commands make streams wait for each other: the arrows of a trace. A pure function of a Program; the rules are
 * those of docs/commands.md.
 */
import { dependsOn } from "../../commands/collectives.ts";
import type { LinkedTransfer, Program } from "../../commands/program.ts";
import { at, invariant } from "../../support/invariant.ts";

/** A command of a rank. */
export interface CommandPlace {
  readonly rank: number;
  readonly command: number;
}

/**
 * event: from a recordEvent to a waitEvent. signal: from the n-th signal of a slot to its n-th wait. transfer: from the
 * start of one rank to the completion of another that needs its data.
 */
export interface Arrow {
  readonly kind: "event" | "signal" | "transfer";
  readonly from: CommandPlace;
  readonly to: CommandPlace;
}

export function arrowsOf(program: Program): readonly Arrow[] {
  return [...eventArrows(program), ...signalArrows(program), ...program.transfers.flatMap(transferArrows)];
}

function eventArrows({ ranks }: Program): readonly Arrow[] {
  return ranks.flatMap(({ rank, commands }) => {
    const recorded: number[] = [];
    const arrows: Arrow[] = [];
    for (const [index, command] of commands.entries()) {
      if (command.kind === "recordEvent") recorded[command.event] = index;
      if (command.kind !== "waitEvent") continue;
      const from = { rank, command: at(recorded, command.event, "an event is recorded before it is waited for") };
      arrows.push({ kind: "event", from, to: { rank, command: index } });
    }
    return arrows;
  });
}

/** The signals of a slot are ordered among themselves, and list order is one of the possible orders of a run. */
function signalArrows({ ranks, slots }: Program): readonly Arrow[] {
  const signals = slots.map((): CommandPlace[] => []);
  const waits = slots.map((): CommandPlace[] => []);
  for (const { rank, commands } of ranks) {
    for (const [index, command] of commands.entries()) {
      if (command.kind === "signal") at(signals, command.slot).push({ rank, command: index });
      if (command.kind === "waitSignal") at(waits, command.slot).push({ rank, command: index });
    }
  }
  return waits.flatMap((list, slot) =>
    list.map((to, n): Arrow => ({ kind: "signal", from: at(at(signals, slot), n, "as many signals as waits"), to })),
  );
}

function transferArrows(transfer: LinkedTransfer): readonly Arrow[] {
  const { participants } = transfer;
  const arrow = (from: number, to: number): readonly Arrow[] =>
    from === to ? [] : [{ kind: "transfer", from: placeOf(at(participants, from)), to: placeOf(at(participants, to)) }];
  if (transfer.kind === "group") return transfer.edges.flatMap(({ from, to }) => arrow(from, to));
  const { operation } = at(participants, 0);
  invariant(operation.kind === "collective", "the participants of a collective are collectives", {
    transfer: transfer.id,
  });
  return participants.flatMap((_, to) =>
    dependsOn(operation.type, participants.length, operation.root, to).flatMap((from) => arrow(from, to)),
  );
}

function placeOf({ rank, command }: CommandPlace): CommandPlace {
  return { rank, command };
}

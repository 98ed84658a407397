/** What a blocked queue waits for, and which commands of which ranks could unblock it, as data and as text. */
import type { RankProgram } from "../commands/program.ts";
import { originText } from "../commands/command.ts";
import { at } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import { hasArrived, isComplete, type Progress, runNumber } from "./execution.ts";
import { commandAt, participantNumber, type Tables } from "./tables.ts";

/** A command of one rank, by its position in the rank's list. */
export interface CommandPosition {
  readonly rank: number;
  readonly command: number;
}

export interface Obstacle {
  /** The command that is blocked. */
  readonly at: CommandPosition;
  readonly kind: "event" | "signal" | "transfer";
  /**
   * Commands that have not happened yet: the recordEvent, every signal to the slot, or the missing participants of a
   * transfer.
   */
  readonly missing: readonly CommandPosition[];
}

/** The obstacle of `queue`; null if its next command could run, or if it has finished. */
export function obstacleOf(execution: Progress, queue: number): Obstacle | null {
  const { tables, state } = execution;
  const { layout } = tables;
  const { rank, commands } = at(tables.queues, queue);
  const index = commands[Atomics.load(state, layout.cursors + queue)];
  if (index === undefined) return null;
  const position = { rank, command: index };
  const command = commandAt(tables, rank, index);
  switch (command.kind) {
    case "waitEvent": {
      const { event } = command;
      if (Atomics.load(state, layout.events + at(tables.eventBase, rank) + event) === runNumber(state)) return null;
      const missing = positions(tables, rank, (other) => other.kind === "recordEvent" && other.event === event);
      return { at: position, kind: "event", missing };
    }
    case "waitSignal": {
      const { slot } = command;
      if (Atomics.load(state, layout.slots + slot) === 1) return null;
      const { signaller } = at(tables.program.slots, slot);
      const signals = positions(tables, signaller, (other) => other.kind === "signal" && other.slot === slot);
      return { at: position, kind: "signal", missing: signals.filter((signal) => !hasRun(execution, signal)) };
    }
    case "transfer": {
      const missing = missingParticipants(execution, rank, index);
      return missing.length === 0 ? null : { at: position, kind: "transfer", missing };
    }
    case "launch":
    case "copy":
    case "recordEvent":
    case "signal":
    case "alloc":
    case "free":
      return null;
    default:
      return unreachable(command);
  }
}

/** The participants that an arrived participant waits for: all others, or its direct peers in a group. */
function missingParticipants(execution: Progress, rank: number, command: number): readonly CommandPosition[] {
  const { tables } = execution;
  const own = participantNumber(tables, rank, command);
  if (!hasArrived(execution, own) || isComplete(execution, own)) return [];
  const { transfer: id, position } = at(tables.participants, own);
  const table = at(tables.transfers, id);
  const { participants } = at(tables.program.transfers, id);
  const peers =
    table.kind === "collective"
      ? [...participants.keys()]
      : at(table.edgesOf, position).map((index) => {
          const { from, to } = at(table.edges, index);
          return from === position ? to : from;
        });
  return [...new Set(peers)]
    .filter((peer) => !hasArrived(execution, table.firstParticipant + peer))
    .map((peer) => {
      const { rank: peerRank, command: peerCommand } = at(participants, peer);
      return { rank: peerRank, command: peerCommand };
    });
}

function hasRun({ tables, state }: Progress, { rank, command }: CommandPosition): boolean {
  const queue = at(at(tables.queueOf, rank), commandAt(tables, rank, command).stream);
  const next = at(tables.queues, queue).commands[Atomics.load(state, tables.layout.cursors + queue)];
  return next === undefined || command < next;
}

function positions(
  { program }: Tables,
  rank: number,
  matches: (command: RankProgram["commands"][number]) => boolean,
): readonly CommandPosition[] {
  return at(program.ranks, rank).commands.flatMap((command, index) =>
    matches(command) ? [{ rank, command: index }] : [],
  );
}

const verbs: { readonly [K in Obstacle["kind"]]: string } = {
  event: "record its event",
  signal: "signal",
  transfer: "arrive",
};

/** `waits for rank 1, stream 2 to signal at: P2PCommunication 38 (...)`. */
export function obstacleText({ program }: Tables, { kind, missing }: Obstacle): string {
  if (missing.length === 0)
    return kind === "signal" ? "waits for a signal that nothing sends" : "waits for an event that nothing records";
  const whom = missing.map(({ rank, command }) => {
    const { commands, origins } = at(program.ranks, rank);
    return `rank ${rank}, stream ${at(commands, command).stream} to ${verbs[kind]} at: ${originText(at(origins, command))}`;
  });
  return `waits for ${whom.join("; ")}`;
}

/** What a blocked queue waits for, and which commands of which ranks could unblock it, as data and as text. */
import { type CommandRef, originText, type Signal } from "../commands/command.ts";
import type { RankProgram } from "../commands/program.ts";
import { type Diagnostic, fail, type Place } from "../diagnostics/diagnostic.ts";
import { at, unreachable } from "../support/invariant.ts";
import { hasArrived, isComplete, type RunProgress, runNumber } from "./execution.ts";
import { commandAt, participantNumber, type MachineTables } from "./tables.ts";

export interface Obstacle {
  /** The command that is blocked. */
  readonly at: CommandRef;
  readonly kind: "event" | "signal" | "transfer";
  /**
   * Commands that have not happened yet: the recordEvent, every signal to the slot, or the missing participants of a
   * transfer.
   */
  readonly missing: readonly CommandRef[];
}

/** The obstacle of `queue`; null if its next command could run, or if it has finished. */
export function obstacleOf(execution: RunProgress, queue: number): Obstacle | null {
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
function missingParticipants(execution: RunProgress, rank: number, command: number): readonly CommandRef[] {
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

function hasRun({ tables, state }: RunProgress, { rank, command }: CommandRef): boolean {
  const queue = at(at(tables.queueOf, rank), commandAt(tables, rank, command).stream);
  const next = at(tables.queues, queue).commands[Atomics.load(state, tables.layout.cursors + queue)];
  return next === undefined || command < next;
}

function positions(
  { program }: MachineTables,
  rank: number,
  matches: (command: RankProgram["commands"][number]) => boolean,
): readonly CommandRef[] {
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
export function obstacleText({ program }: MachineTables, { kind, missing }: Obstacle): string {
  if (missing.length === 0)
    return kind === "signal" ? "waits for a signal that nothing sends" : "waits for an event that nothing records";
  const whom = missing.map(({ rank, command }) => {
    const { commands, origins } = at(program.ranks, rank);
    return `rank ${rank}, stream ${at(commands, command).stream} to ${verbs[kind]} at: ${originText(at(origins, command))}`;
  });
  return `waits for ${whom.join("; ")}`;
}

// The diagnostics of a run that cannot continue. They name the host programs' statements.

/** A signal found that the previous signal of its slot has not been waited for. */
export function slotOverrun(tables: MachineTables, rank: number, index: number, { slot }: Signal): never {
  const { waiter } = at(tables.program.slots, slot);
  fail({
    code: "slot-overrun",
    message: `rank ${rank} signals rank ${waiter} again before rank ${waiter} has waited for the previous signal`,
    place: placeOf(tables, { rank, command: index }),
    found: `slot ${slot} still holds a signal`,
    expected: "every signal comes after the wait for the previous signal, also across repeated runs",
    help: `wait for this communication on rank ${waiter} before rank ${rank} posts it again`,
  });
}

/**
 * The `stuck` diagnostic of a state in which no queue can continue. Its notes list what each queue with commands left
 * waits for, and on which ranks.
 */
export function stuck(progress: RunProgress): Diagnostic {
  const { obstacles, place, found } = waits(progress);
  return {
    code: "stuck",
    message: `no stream can proceed: ${obstacles.length} wait for each other or for something that never happens`,
    ...place,
    ...found,
    expected: "waits that another stream or rank can still satisfy",
    help: "post and wait in the same order on all ranks, and post before waiting",
    notes: firstOf(obstacles.map((obstacle) => noteOf(progress.tables, obstacle))),
  };
}

/** The `timed-out` diagnostic of an aborted run. Its notes list the running and waiting commands. */
export function timedOutDiagnostic(progress: RunProgress, milliseconds: number): Diagnostic {
  const { obstacles, place, found } = waits(progress);
  const { tables, state } = progress;
  const running = tables.queues.flatMap(({ rank, commands }, queue): string[] => {
    const command = commands[Atomics.load(state, tables.layout.cursors + queue)];
    if (command === undefined || obstacleOf(progress, queue) !== null) return [];
    return [`${positionText(tables, { rank, command })}: running or ready`];
  });
  return {
    code: "timed-out",
    message: `the run did not end within ${milliseconds} ms`,
    ...place,
    ...found,
    expected: `an end within ${milliseconds} ms`,
    help: "allow more time (--timeout), or use smaller sizes",
    notes: firstOf([...running, ...obstacles.map((obstacle) => noteOf(tables, obstacle))]),
  };
}

/**
 * The `command-threw` diagnostic for an error that is not a diagnostic, given as text. `position` is null outside of
 * commands.
 */
export function commandThrew(
  tables: Pick<MachineTables, "program">,
  position: CommandRef | null,
  text: string,
): Diagnostic {
  const lines = text.split("\n");
  return {
    code: "command-threw",
    message: "a command threw an error during the run",
    ...(position === null ? {} : { place: { kind: "statement", text: positionText(tables, position) } }),
    found: lines[0] ?? text,
    expected: "commands that run without an error",
    help: "this is a bug in Braid; please report it with the program that caused it",
    notes: lines.slice(1, 4),
  };
}

/** A kernel's diagnostic at the command that ran it: a kernel knows its op alone. */
export function atCommand(
  diagnostic: Diagnostic,
  tables: Pick<MachineTables, "program">,
  position: CommandRef | null,
): Diagnostic {
  const { place } = diagnostic;
  if (place?.kind !== "call" || position === null) return diagnostic;
  return { ...diagnostic, place: { kind: "statement", text: `${place.text}, ${positionText(tables, position)}` } };
}

/** Enough to see a pattern; more notes would hide it. */
const mostNotes = 8;

function firstOf(notes: readonly string[]): readonly string[] {
  return notes.length <= mostNotes
    ? notes
    : [...notes.slice(0, mostNotes), `and ${notes.length - mostNotes} more streams`];
}

interface Waits {
  readonly obstacles: readonly Obstacle[];
  /** The place of the first obstacle; absent if no queue waits. */
  readonly place: Pick<Diagnostic, "place">;
  readonly found: Pick<Diagnostic, "found">;
}

function waits(progress: RunProgress): Waits {
  const { tables } = progress;
  const obstacles = [...tables.queues.keys()].flatMap((queue) => obstacleOf(progress, queue) ?? []);
  const [first] = obstacles;
  if (first === undefined) return { obstacles, place: {}, found: {} };
  return { obstacles, place: { place: placeOf(tables, first.at) }, found: { found: obstacleText(tables, first) } };
}

function placeOf({ program }: MachineTables, { rank, command }: CommandRef): Place {
  const { commands, origins } = at(program.ranks, rank);
  return { kind: "command", rank, stream: at(commands, command).stream, text: originText(at(origins, command)) };
}

function noteOf(tables: MachineTables, obstacle: Obstacle): string {
  return `${positionText(tables, obstacle.at)}: ${obstacleText(tables, obstacle)}`;
}

/** `rank 0, stream 5, command 12 (transfer) of: Communication 0 (...)`. */
export function positionText({ program }: Pick<MachineTables, "program">, { rank, command }: CommandRef): string {
  const { commands, origins } = at(program.ranks, rank);
  const { stream, kind } = at(commands, command);
  return `rank ${rank}, stream ${stream}, command ${command} (${kind}) of: ${originText(at(origins, command))}`;
}

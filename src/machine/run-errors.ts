/** The diagnostics of a run that cannot continue. They name the host programs' statements. */
import { originText, type Signal } from "../commands/command.ts";
import { type Diagnostic, fail, type Place } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import type { Progress } from "./execution.ts";
import { type CommandPosition, type Obstacle, obstacleOf, obstacleText } from "./obstacle.ts";
import type { Tables } from "./tables.ts";

/** A signal found that the previous signal of its slot has not been waited for. */
export function slotOverrun(tables: Tables, rank: number, index: number, { slot }: Signal): never {
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
export function stuck(progress: Progress): Diagnostic {
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
export function timedOut(progress: Progress, milliseconds: number): Diagnostic {
  const { obstacles, place, found } = waits(progress);
  const { tables, state } = progress;
  const running = tables.queues.flatMap(({ rank, commands }, queue): string[] => {
    const command = commands[Atomics.load(state, tables.layout.cursors + queue)];
    if (command === undefined || obstacleOf(progress, queue) !== null) return [];
    return [`${commandText(tables, { rank, command })}: running or ready`];
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
  tables: Pick<Tables, "program">,
  position: CommandPosition | null,
  text: string,
): Diagnostic {
  const lines = text.split("\n");
  return {
    code: "command-threw",
    message: "a command threw an error during the run",
    ...(position === null ? {} : { place: { kind: "statement", text: commandText(tables, position) } }),
    found: lines[0] ?? text,
    expected: "commands that run without an error",
    help: "this is a bug in Braid; please report it with the program that caused it",
    notes: lines.slice(1, 4),
  };
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

function waits(progress: Progress): Waits {
  const { tables } = progress;
  const obstacles = [...tables.queues.keys()].flatMap((queue) => obstacleOf(progress, queue) ?? []);
  const [first] = obstacles;
  if (first === undefined) return { obstacles, place: {}, found: {} };
  return { obstacles, place: { place: placeOf(tables, first.at) }, found: { found: obstacleText(tables, first) } };
}

function placeOf({ program }: Tables, { rank, command }: CommandPosition): Place {
  const { commands, origins } = at(program.ranks, rank);
  return { kind: "command", rank, stream: at(commands, command).stream, text: originText(at(origins, command)) };
}

function noteOf(tables: Tables, obstacle: Obstacle): string {
  return `${commandText(tables, obstacle.at)}: ${obstacleText(tables, obstacle)}`;
}

/** `rank 0, stream 5, command 12 (transfer) of: Communication 0 (...)`. */
export function commandText({ program }: Pick<Tables, "program">, { rank, command }: CommandPosition): string {
  const { commands, origins } = at(program.ranks, rank);
  const { stream, kind } = at(commands, command);
  return `rank ${rank}, stream ${stream}, command ${command} (${kind}) of: ${originText(at(origins, command))}`;
}

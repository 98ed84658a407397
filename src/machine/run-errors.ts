/** The diagnostics of a run that cannot go on, in terms of the host programs' statements. */
import type { Signal } from "../commands/command.ts";
import { originText } from "../commands/origin-text.ts";
import { type Diagnostic, fail, type Place } from "../diagnostics/diagnostic.ts";
import { at } from "../support/invariant.ts";
import type { Execution } from "./execution.ts";
import { type CommandPosition, type Obstacle, obstacleOf, obstacleText } from "./obstacle.ts";
import type { Tables } from "./tables.ts";

/** A signal found its slot's last signal not yet waited for. */
export function slotOverrun(tables: Tables, rank: number, index: number, { slot }: Signal): never {
  const { waiter } = at(tables.program.slots, slot);
  fail({
    code: "slot-overrun",
    message: `rank ${rank} signals rank ${waiter} again before rank ${waiter} has waited for the signal before`,
    place: placeOf(tables, { rank, command: index }),
    found: `slot ${slot} still holds a signal`,
    expected: "every signal happens after the wait for the one before it, over repeated runs too",
    help: `wait for this communication on rank ${waiter} before rank ${rank} posts it again`,
  });
}

/**
 * The `stuck` diagnostic of a state in which no queue can go on: its notes say for every queue with commands left what
 * it waits for, and for whom.
 */
export function stuck<Saved>(execution: Execution<Saved>): Diagnostic {
  const { tables } = execution;
  const obstacles = [...tables.queues.keys()].flatMap((queue) => obstacleOf(execution, queue) ?? []);
  const [first] = obstacles;
  return {
    code: "stuck",
    message: `no stream can go on: ${obstacles.length} wait for each other or for what never comes`,
    ...(first === undefined ? {} : { place: placeOf(tables, first.at) }),
    ...(first === undefined ? {} : { found: obstacleText(tables, first) }),
    expected: "every wait is for something that another stream or rank can still do",
    help: "order the posts and waits alike on all ranks, and post before waiting",
    notes: obstacles.map((obstacle) => noteOf(tables, obstacle)),
  };
}

function placeOf({ program }: Tables, { rank, command }: CommandPosition): Place {
  const { commands, origins } = at(program.ranks, rank);
  return { kind: "command", rank, stream: at(commands, command).stream, text: originText(at(origins, command)) };
}

function noteOf(tables: Tables, obstacle: Obstacle): string {
  const { rank, command } = obstacle.at;
  const { commands, origins } = at(tables.program.ranks, rank);
  const { stream, kind } = at(commands, command);
  return `rank ${rank}, stream ${stream}, command ${command} (${kind}) of: ${originText(at(origins, command))}: ${obstacleText(tables, obstacle)}`;
}

/**
 * Reads one rank's list into a Draft. Events go; of the order that they and the streams gave, what other ranks rely on is kept as
 * `sync`: what a signal tells must have happened, what follows a wait must stay behind it.
 *
 * Only commands that another rank can notice count: those that touch a peer's memory, or own memory that peers touch too, unless
 * both only read. A product that reads what a copy has brought is none of them.
 */
import type { RankProgram } from "../commands/program.ts";
import { at, invariant } from "../support/invariant.ts";
import { conflict, type Memory, type Touch } from "./memory.ts";
import { type Draft, type DraftCommand, type DraftNode, isBlocking, isSignalling } from "./draft.ts";

/** `foreign`: what other ranks do to this one's memory. */
export function readDraft(list: RankProgram, memory: Memory, foreign: readonly Touch[]): Draft {
  const order = listOrder(list);
  const nodes: DraftNode[] = [];
  /** Nodes that a later one may have to stay behind, with how they matter. */
  const noticed: { readonly node: DraftNode; readonly position: number; readonly seen: boolean }[] = [];
  for (const [position, command] of list.commands.entries()) {
    if (command.kind === "recordEvent" || command.kind === "waitEvent") continue;
    const seen = isNoticed(list.rank, memory.touches(command), foreign);
    const synchronizes = isBlocking(command) || isSignalling(command);
    const sync =
      seen || synchronizes
        ? noticed
            .filter(({ node, position: other, seen: wasSeen }) => {
              if (!mustStay({ command: node.command, seen: wasSeen }, { command, seen })) return false;
              return order.before(other, position);
            })
            .map(({ node }) => node.id)
        : [];
    const node: DraftNode = {
      id: nodes.length,
      command,
      origin: at(list.origins, position),
      transfer: at(list.transferOf, position),
      sources: [position],
      sync,
    };
    nodes.push(node);
    if (seen || synchronizes) noticed.push({ node, position, seen });
  }
  return { rank: list.rank, streams: list.streams, nodes };
}

function isNoticed(rank: number, touches: readonly Touch[], foreign: readonly Touch[]): boolean {
  return touches.some((touch) => touch.rank !== rank) || conflict(touches, foreign);
}

interface Role {
  readonly command: DraftCommand;
  readonly seen: boolean;
}

/** Whether an order of the two means something to other ranks. Two accesses to the same memory keep theirs in any case. */
function mustStay(earlier: Role, later: Role): boolean {
  if (isSignalling(later.command) && (earlier.seen || isBlocking(earlier.command))) return true;
  if (isBlocking(earlier.command) && later.seen) return true;
  const [a, b] = [earlier.command, later.command];
  if (a.kind === "transfer" && b.kind === "transfer") return true;
  const [slotA, slotB] = [slotOf(a), slotOf(b)];
  return slotA !== null && slotA === slotB;
}

function slotOf(command: DraftCommand): number | null {
  return command.kind === "signal" || command.kind === "waitSignal" ? command.slot : null;
}

interface ListOrder {
  /** Whether the streams and events of the list put one command before another. */
  readonly before: (earlier: number, later: number) => boolean;
}

/** One clock per command: how many commands of each stream have completed when it starts. */
function listOrder({ streams, commands }: RankProgram): ListOrder {
  const width = streams.length;
  const clocks = new Int32Array(commands.length * width);
  const places = new Int32Array(commands.length);
  const now = streams.map(() => new Int32Array(width));
  const recorded = new Map<number, Int32Array>();
  for (const [position, command] of commands.entries()) {
    const clock = at(now, command.stream);
    if (command.kind === "waitEvent") {
      const event = recorded.get(command.event);
      invariant(event !== undefined, "a list waits for events that it has recorded", command);
      for (let s = 0; s < width; s++) clock[s] = Math.max(at(clock, s), at(event, s));
    }
    clocks.set(clock, position * width);
    places[position] = at(clock, command.stream) + 1;
    clock[command.stream] = at(places, position);
    if (command.kind === "recordEvent") recorded.set(command.event, clock.slice());
  }
  return {
    before: (earlier, later) => at(clocks, later * width + at(commands, earlier).stream) >= at(places, earlier),
  };
}

/**
 * Every single change of synchronization or communication in the command lists of a program: one command deleted, aimed
 * elsewhere, or swapped with the next of its stream or list. Mutants are lists before link, as a recorder with a bug
 * would make them.
 */
import type { CommandList, OneSided, UnlinkedCommand } from "../../../src/commands/command-list.ts";
import type { Collective, CommandStreamId, EventId, PointToPoint } from "../../../src/commands/command.ts";
import { makeId, at } from "../../../src/support/invariant.ts";

export const mutatedKinds = ["event", "wait", "signal", "take", "transfer", "send", "recv", "copy", "combine"] as const;
export type MutatedKind = (typeof mutatedKinds)[number];
export type Change = "delete" | "retarget" | "reorder";

export interface Mutant {
  readonly kind: MutatedKind;
  readonly change: Change;
  /** For people: the rank, the command and the change. */
  readonly what: string;
  readonly lists: readonly CommandList[];
}

/** All of them, in the order of ranks and commands. */
export function* mutants(lists: readonly CommandList[]): Generator<Mutant> {
  for (const list of lists) {
    for (const mutant of mutantsOfList(list, lists.length)) {
      yield {
        ...mutant,
        what: `rank ${list.rank}: ${mutant.what}`,
        lists: lists.map((other) => (other === list ? mutant.list : other)),
      };
    }
  }
}

interface ListMutant {
  readonly kind: MutatedKind;
  readonly change: Change;
  readonly what: string;
  readonly list: CommandList;
}

function* mutantsOfList(list: CommandList, worldSize: number): Generator<ListMutant> {
  for (const [index, command] of list.commands.entries()) {
    const kind = kindOf(command, list);
    if (kind === null) continue;
    const name = `${command.kind} at ${index}`;
    if (!isLastOfCollective(list, index)) {
      yield { kind, change: "delete", what: `${name} deleted`, list: without(list, index) };
    }
    for (const [change, replaced] of retargeted(list, index, command)) {
      yield { kind, change: "retarget", what: `${name} ${change}`, list: replaced };
    }
    for (const other of swapPartners(list, index)) {
      yield { kind, change: "reorder", what: `${name} swapped with ${other}`, list: swapped(list, index, other) };
    }
    if (command.kind !== "transfer" || command.operation.kind !== "group") continue;
    const { ops } = command.operation;
    for (const [i, op] of ops.entries()) {
      const inGroup = `${op.type} ${i} of the group at ${index}`;
      const put = (next: readonly PointToPoint[]): CommandList =>
        replace(list, index, { ...command, operation: { kind: "group", ops: next } });
      yield { kind: op.type, change: "delete", what: `${inGroup} deleted`, list: put(ops.filter((_, o) => o !== i)) };
      for (let peer = 0; peer < worldSize; peer++) {
        if (peer === op.peer) continue;
        const next = ops.map((each, o) => (o === i ? { ...each, peer } : each));
        yield { kind: op.type, change: "retarget", what: `${inGroup} with rank ${peer}`, list: put(next) };
      }
    }
  }
  for (const [index, pair] of list.pairs.entries()) {
    for (let peer = 0; peer < worldSize; peer++) {
      if (peer === pair.peer || peer === list.rank) continue;
      yield {
        kind: pair.role,
        change: "retarget",
        what: `one-sided ${pair.role} ${index} with rank ${peer}`,
        list: { ...list, pairs: renumbered(list.pairs.map((each, i) => (i === index ? { ...each, peer } : each))) },
      };
    }
  }
}

function kindOf(command: UnlinkedCommand, { pairs }: CommandList): MutatedKind | null {
  switch (command.kind) {
    case "recordEvent":
      return "event";
    case "waitEvent":
      return "wait";
    case "signalPeer":
    case "signalRank":
      return "signal";
    case "waitPeer":
    case "waitRank":
      return "take";
    case "transfer":
      return "transfer";
    case "copyPeer":
      return at(pairs, command.pair).role;
    case "copyRank":
      return "copy";
    case "combineRanks":
      return "combine";
    case "launch":
    case "copy":
    case "alloc":
    case "free":
      return null;
  }
}

/** The command with another event, stream, slot, rank or root. */
function* retargeted(list: CommandList, index: number, command: UnlinkedCommand): Generator<[string, CommandList]> {
  for (const stream of list.streams.keys()) {
    if (stream === command.stream) continue;
    yield [`on stream ${stream}`, replace(list, index, { ...command, stream: makeId<CommandStreamId>(stream) })];
  }
  switch (command.kind) {
    case "waitEvent":
      for (const event of [command.event - 1, command.event + 1]) {
        if (event < 0 || event >= list.eventCount) continue;
        yield [`of event ${event}`, replace(list, index, { ...command, event: makeId<EventId>(event) })];
      }
      return;
    case "signalRank":
    case "waitRank": {
      for (const slot of ["ready", "done"] as const) {
        if (slot !== command.slot) yield [`of slot ${slot}`, replace(list, index, { ...command, slot })];
      }
      const { team } = at(list.peerCollectives, command.collective).operation;
      for (const member of team.keys()) {
        if (member === command.position || team[member] === list.rank) continue;
        yield [`of member ${member}`, replace(list, index, { ...command, position: member })];
      }
      return;
    }
    case "transfer": {
      const { operation } = command;
      if (operation.kind !== "collective" || operation.root === null) return;
      for (const root of operation.team.keys()) {
        if (root === operation.root) continue;
        const other: Collective = { ...operation, root };
        yield [`with root ${root}`, replace(list, index, { ...command, operation: other })];
      }
      return;
    }
    default:
  }
}

/**
 * Later commands: the next of the list on another stream where one of the two orders streams, and the next of the same
 * stream.
 */
function swapPartners({ commands }: CommandList, index: number): readonly number[] {
  const own = at(commands, index);
  const next = commands.findIndex(({ stream }, i) => i > index && stream === own.stream);
  const partners = next < 0 ? [] : [next];
  const adjacent = commands[index + 1];
  if (adjacent !== undefined && adjacent.stream !== own.stream) partners.push(index + 1);
  return partners;
}

function swapped(list: CommandList, a: number, b: number): CommandList {
  const swap = <T>(values: readonly T[]): readonly T[] =>
    values.map((value, i) => (i === a ? at(values, b) : i === b ? at(values, a) : value));
  return { ...list, commands: swap(list.commands), origins: swap(list.origins) };
}

/** A rank that does nothing in a collective takes no part in it, and a recorder does not write such a list. */
function isLastOfCollective({ commands }: CommandList, index: number): boolean {
  const own = at(commands, index);
  if (!("collective" in own)) return false;
  return commands.every((other, i) => i === index || !("collective" in other) || other.collective !== own.collective);
}

function without(list: CommandList, index: number): CommandList {
  const keep = <T>(values: readonly T[]): readonly T[] => values.filter((_, i) => i !== index);
  return { ...list, commands: keep(list.commands), origins: keep(list.origins) };
}

function replace(list: CommandList, index: number, command: UnlinkedCommand): CommandList {
  return { ...list, commands: list.commands.map((each, i) => (i === index ? command : each)) };
}

/** k counts the ops of a role with a peer, as a recorder counts them. */
function renumbered(pairs: readonly OneSided[]): readonly OneSided[] {
  const counts = new Map<string, number>();
  return pairs.map((pair) => {
    const key = `${pair.protocol} ${pair.role} ${pair.peer}`;
    const sequence = counts.get(key) ?? 0;
    counts.set(key, sequence + 1);
    return { ...pair, sequence };
  });
}

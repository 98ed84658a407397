/**
 * One change of the command lists of all ranks, or of one: a command left out, moved or put on another stream, or a
 * wait for another event. The same change of all ranks keeps their symmetry.
 */
import { type CommandList, DiagnosticError, link, type Program } from "@braid-compiler/braid";
import { makeId, at } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";

type Change = (list: CommandList) => CommandList;

/** Null if the lists of the ranks differ in length, or the changed ones do not link. */
export function mutateAlike(lists: readonly CommandList[], random: Random, onlyRank: number | null): Program | null {
  const first = at(lists, 0);
  const length = first.commands.length;
  if (length < 2 || lists.some(({ commands }) => commands.length !== length)) return null;
  const change = someChange(first, random);
  try {
    return link(lists.map((list) => (onlyRank === null || list.rank === onlyRank ? change(list) : list)));
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function someChange({ commands, streams, eventCount }: CommandList, random: Random): Change {
  const index = random.integer(commands.length);
  const to = random.integer(commands.length);
  const stream = at(streams, random.integer(streams.length)).id;
  const event = random.integer(Math.max(1, eventCount));
  switch (random.integer(5)) {
    case 0:
      return (list) => reordered(list, without(order(list), index));
    case 1:
      return (list) => reordered(list, without(order(list), index).toSpliced(to, 0, index));
    case 2:
      return (list) => reordered(list, without(order(list), index).toSpliced(Math.max(0, index - 1), 0, index));
    case 3:
      return (list) => ({
        ...list,
        commands: list.commands.map((each, i) => (i === index ? { ...each, stream } : each)),
      });
    default: {
      const waits = [...commands.keys()].filter((i) => commands[i]?.kind === "waitEvent");
      const wait = waits[index % Math.max(1, waits.length)];
      return (list) => ({
        ...list,
        commands: list.commands.map((each, i) =>
          i === wait && each.kind === "waitEvent" ? { ...each, event: makeId(event) } : each,
        ),
      });
    }
  }
}

function order({ commands }: CommandList): readonly number[] {
  return [...commands.keys()];
}

function without(indices: readonly number[], index: number): readonly number[] {
  return indices.filter((each) => each !== index);
}

function reordered(list: CommandList, indices: readonly number[]): CommandList {
  return {
    ...list,
    commands: indices.map((i) => at(list.commands, i)),
    origins: indices.map((i) => at(list.origins, i)),
  };
}

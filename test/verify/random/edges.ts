/**
 * The edges of a program, as what can be taken away from its lists: one command alone, as a recorder with a bug would
 * forget it, or an edge whole, which leaves all that remains well formed.
 */
import type { CommandList, SignalRank, SignalPeer, UnlinkedCommand } from "../../../src/commands/command-list.ts";
import { at } from "../../../src/support/invariant.ts";

export const edgeKinds = ["event", "wait", "signal", "take", "event with its waits", "signal with its take"] as const;
export type EdgeKind = (typeof edgeKinds)[number];

/** Commands of which none orders anything without the others, or one of them. */
export interface Edge {
  readonly kind: EdgeKind;
  readonly commands: readonly CommandRef[];
}

interface CommandRef {
  readonly rank: number;
  readonly index: number;
}

export function edgesOf(lists: readonly CommandList[]): readonly Edge[] {
  return lists.flatMap(({ rank, commands }) =>
    commands.flatMap((command, index): readonly Edge[] => {
      const own = { rank, index };
      const alone = (kind: EdgeKind): Edge => ({ kind, commands: [own] });
      switch (command.kind) {
        case "recordEvent": {
          const waits = places(lists, rank, (c) => c.kind === "waitEvent" && c.event === command.event);
          return [alone("event"), { kind: "event with its waits", commands: [own, ...waits] }];
        }
        case "waitEvent":
          return [alone("wait")];
        case "signalPeer":
        case "signalRank": {
          const take =
            command.kind === "signalPeer" ? takeOfPair(lists, rank, command) : takeOfMember(lists, rank, command);
          return [alone("signal"), { kind: "signal with its take", commands: [own, ...take] }];
        }
        case "waitPeer":
        case "waitRank":
          return [alone("take")];
        default:
          return [];
      }
    }),
  );
}

/** Null if a rank would do nothing in a collective, because a recorder does not write that. */
export function withoutEdge(lists: readonly CommandList[], { commands }: Edge): readonly CommandList[] | null {
  const without = lists.map((list) => {
    const kept = (_: unknown, index: number): boolean =>
      !commands.some((removed) => removed.rank === list.rank && removed.index === index);
    return { ...list, commands: list.commands.filter(kept), origins: list.origins.filter(kept) };
  });
  const takesPart = without.every((list) =>
    list.peerCollectives.every((_, collective) =>
      list.commands.some((command) => "collective" in command && command.collective === collective),
    ),
  );
  return takesPart ? without : null;
}

function places(
  lists: readonly CommandList[],
  rank: number,
  matches: (command: UnlinkedCommand) => boolean,
): readonly CommandRef[] {
  return at(lists, rank).commands.flatMap((command, index) => (matches(command) ? [{ rank, index }] : []));
}

/** Of the other half: the k-th recv from here for the k-th send to there. */
function takeOfPair(lists: readonly CommandList[], rank: number, { pair, slot }: SignalPeer): readonly CommandRef[] {
  const { peer, role, sequence } = at(at(lists, rank).pairs, pair);
  const half = at(lists, peer).pairs.findIndex(
    (other) => other.peer === rank && other.role !== role && other.sequence === sequence,
  );
  return places(lists, peer, (c) => c.kind === "waitPeer" && c.pair === half && c.slot === slot);
}

/** Of the other rank: its k-th collective of the communicator for this rank's k-th. */
function takeOfMember(
  lists: readonly CommandList[],
  rank: number,
  { collective, position: member, slot }: SignalRank,
): readonly CommandRef[] {
  const own = at(lists, rank).peerCollectives;
  const { communicator, operation } = at(own, collective);
  const place = own.slice(0, collective).filter((other) => other.communicator === communicator).length;
  const peer = at(operation.team, member);
  const [theirs] = [...at(lists, peer).peerCollectives.entries()]
    .filter(([, other]) => other.communicator === communicator)
    .slice(place);
  const position = operation.team.indexOf(rank);
  return places(
    lists,
    peer,
    (c) => c.kind === "waitRank" && c.collective === theirs?.[0] && c.position === position && c.slot === slot,
  );
}

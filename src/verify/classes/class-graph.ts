/**
 * The graph of the representatives' commands. Chains are counted over all ranks, as in the graph of all commands; nodes
 * are those of the representatives.
 */
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { kindOf, nodeKinds } from "../order/graph.ts";
import type { Participants } from "../order/participants.ts";
import { createParts, type Parts, type RepresentativeNodes } from "./class-parts.ts";
import type { RankGroup } from "./rank-group.ts";

export interface ClassGraph extends RepresentativeNodes {
  /** By rank: the first node, of representatives; -1 of others. */
  readonly firstNode: Int32Array;
  readonly rankOf: Int32Array;
  /** By signal: the element that takes the representative to `frame`, the rank that signals a representative. */
  readonly frame: Int32Array;
  /** By rank: its first chain, and one more entry at the end. */
  readonly chainBase: Int32Array;
  readonly chainOf: Int32Array;
  /** By chain of a representative: its nodes. */
  readonly nodesOf: ReadonlyMap<number, Int32Array>;
  readonly eventCount: number;
  readonly eventWaits: Int32Array;
  readonly participants: Participants;
  readonly parts: Parts;
}

/** The signal at a node is that of the command at `index` of rank `by`. */
interface Signalled {
  readonly node: number;
  readonly index: number;
  readonly by: number;
}

/** `nodeBase` is that of the participants: the node before each rank's command 0. */
export function createClassGraph(
  program: Program,
  group: RankGroup,
  participants: Participants,
  nodeBase: Int32Array,
): ClassGraph {
  const { ranks } = program;
  const { elements, inverse, representative, elementTo } = group;
  const representatives = [...new Set(representative)].sort((a, b) => a - b);
  const firstNode = new Int32Array(ranks.length).fill(-1);
  const eventBase = new Int32Array(ranks.length);
  let [nodeCount, eventCount] = [0, 0];
  for (const rank of representatives) {
    firstNode[rank] = nodeCount;
    eventBase[rank] = eventCount;
    nodeCount += at(ranks, rank).commands.length + 2;
    eventCount += at(ranks, rank).eventCount;
  }
  const streams = new Map(representatives.map((rank) => [rank, chainsOf(program, rank)]));
  const streamsOf = (rank: number): ReadonlyMap<number, number> => streams.get(at(representative, rank)) ?? new Map();
  const chainBase = new Int32Array(ranks.length + 1);
  for (const rank of ranks.keys()) chainBase[rank + 1] = at(chainBase, rank) + streamsOf(rank).size;
  const kind = new Uint8Array(nodeCount);
  const argument = new Int32Array(nodeCount).fill(-1);
  const frame = new Int32Array(nodeCount);
  const rankOf = new Int32Array(nodeCount);
  const chainOf = new Int32Array(nodeCount);
  const eventWaits = new Int32Array(eventCount);
  const nodesOf = new Map<number, number[]>();
  const place = (node: number, rank: number, stream: number, what: number): void => {
    const chain = at(chainBase, rank) + (streamsOf(rank).get(stream) ?? 0);
    const nodes = nodesOf.get(chain) ?? [];
    nodesOf.set(chain, nodes);
    nodes.push(node);
    chainOf[node] = chain;
    rankOf[node] = rank;
    kind[node] = what;
  };
  const signals: Signalled[] = [];
  for (const rank of representatives) {
    const { commands, transferOf } = at(ranks, rank);
    const base = at(firstNode, rank);
    place(base, rank, 0, nodeKinds.callerWrites);
    for (const [index, command] of commands.entries()) {
      const node = base + 1 + index;
      place(node, rank, command.stream, kindOf[command.kind]);
      switch (command.kind) {
        case "recordEvent":
          argument[node] = at(eventBase, rank) + command.event;
          break;
        case "waitEvent": {
          const event = at(eventBase, rank) + command.event;
          argument[node] = event;
          eventWaits[event] = at(eventWaits, event) + 1;
          break;
        }
        case "signal": {
          // The command of the rank that signals a representative where this one signals the waiter.
          const element = at(inverse, at(elementTo, at(program.slots, command.slot).waiter));
          frame[node] = element;
          signals.push({ node, index, by: at(at(elements, element), rank) });
          break;
        }
        case "waitSignal":
          argument[node] = command.slot;
          break;
        case "transfer": {
          const own = participants.of.get(at(nodeBase, rank) + 1 + index);
          if (at(transferOf, index) !== null && own !== undefined) argument[node] = own;
          break;
        }
        case "alloc":
        case "free":
          argument[node] = command.buffer;
          break;
        case "launch":
        case "copy":
          break;
      }
    }
    place(base + commands.length + 1, rank, 0, nodeKinds.callerReads);
  }
  // Rank by rank: a long Program makes the commands of each when they are asked for.
  for (const { node, index, by } of signals.sort((a, b) => a.by - b.by)) {
    const other = at(at(ranks, by).commands, index);
    if (other.kind === "signal") argument[node] = other.slot;
  }
  const graph = { program, group, representatives, nodeCount, firstNode, rankOf, kind, argument, frame };
  return {
    ...graph,
    chainBase,
    chainOf,
    nodesOf: new Map([...nodesOf].map(([chain, nodes]) => [chain, Int32Array.from(nodes)])),
    eventCount,
    eventWaits,
    participants,
    parts: createParts(graph),
  };
}

/** The streams of a rank in the order of first use, the caller's first. */
function chainsOf({ ranks }: Program, rank: number): ReadonlyMap<number, number> {
  const used = new Set<number>([0, ...at(ranks, rank).commands.map(({ stream }) => stream)]);
  return new Map([...used].map((stream, i) => [stream, i]));
}

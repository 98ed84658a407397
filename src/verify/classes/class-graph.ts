/**
 * The graph of the representatives' commands. Chains are counted over all ranks, as in the graph of all commands; nodes
 * are those of the representatives.
 */
import { linkedCommandAt, type Program } from "../../commands/program.ts";
import { accessesOf, type Accesses, type Region } from "../../commands/region.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { boundBuffers, createTableRows, type RegionTable, touchesMemory, wholeBuffer } from "../check/region-table.ts";
import { commandKinds, nodeKinds } from "../order/graph.ts";
import { createIntList } from "../order/known.ts";
import type { Participants } from "../order/slots.ts";
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
    pushTo(nodesOf, chain, node);
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
      place(node, rank, command.stream, commandKinds[command.kind]);
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
  for (const { node, index, by } of signals) {
    const other = linkedCommandAt(at(ranks, by), index);
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

// The memory accesses of the representatives' commands, moved into the buffers of representatives. If a command of
// representative r touches a buffer of another rank q, and the symmetry g takes representative p to q, the access is
// recorded as one of rank g⁻¹(r) to p's buffer. A node has one part for each rank as which it is recorded.

interface RepresentativeNodes {
  readonly program: Program;
  readonly group: RankGroup;
  readonly representatives: readonly number[];
  readonly nodeCount: number;
  readonly kind: Uint8Array;
  /** The event (counted over all representatives), the slot of `frame`, the participant, or the buffer; else -1. */
  readonly argument: Int32Array;
}

interface Parts {
  /** Parts start[n] to start[n + 1] - 1 are those of node n. */
  readonly start: Int32Array;
  /** By part: the element that takes the representative to the rank that it is noted as. */
  readonly element: Int32Array;
  /** The kind and argument of the node, by part. */
  readonly kind: Uint8Array;
  readonly argument: Int32Array;
  /** By part, of regions in the representatives' buffers. */
  readonly table: RegionTable;
}

function createParts({ program, group, representatives, nodeCount, kind, argument }: RepresentativeNodes): Parts {
  const own = program.buffers.filter(({ rank }) => at(group.elementTo, rank) === 0);
  const { inputs, outputs } = boundBuffers(own, program.ranks.length);
  const start = new Int32Array(nodeCount + 1);
  const element = createIntList();
  const nodeOf = createIntList();
  const pieces: { readonly reads: readonly Region[]; readonly writes: readonly Region[] }[] = [];
  const { elements, inverse, elementTo } = group;
  const ownerOf = (buffer: number): number => at(program.buffers, buffer).rank;
  const isOfRepresentative = ({ buffer }: Region): boolean => at(elementTo, ownerOf(buffer)) === 0;
  const accessesOn = (rank: number, index: number): Accesses =>
    accessesOf(linkedCommandAt(at(program.ranks, rank), index), program);
  let node = 0;
  const add = (as: number, piece: Accesses): void => {
    pieces.push(piece);
    element.push(as);
    nodeOf.push(node);
  };
  const close = (): void => {
    start[++node] = pieces.length;
  };
  for (const rank of representatives) {
    add(0, { reads: [], writes: at(inputs, rank).map(wholeBuffer) });
    close();
    for (const [index, command] of at(program.ranks, rank).commands.entries()) {
      if (touchesMemory(command.kind)) {
        const accessed = accessesOn(rank, index);
        const touched = [...accessed.reads, ...accessed.writes];
        for (const as of new Set(touched.map(({ buffer }) => at(inverse, at(elementTo, ownerOf(buffer)))))) {
          const { reads, writes } = as === 0 ? accessed : accessesOn(at(at(elements, as), rank), index);
          add(as, { reads: reads.filter(isOfRepresentative), writes: writes.filter(isOfRepresentative) });
        }
      }
      close();
    }
    add(0, { reads: at(outputs, rank).map(wholeBuffer), writes: [] });
    close();
  }
  const rows = createTableRows(program, pieces.length);
  for (const { reads, writes } of pieces) {
    for (const region of reads) rows.read(region);
    for (const region of writes) rows.write(region);
    rows.close();
  }
  const nodes = nodeOf.toArray();
  return {
    start,
    element: element.toArray(),
    kind: Uint8Array.from(nodes, (each) => at(kind, each)),
    argument: Int32Array.from(nodes, (each) => at(argument, each)),
    table: rows.finish(own),
  };
}

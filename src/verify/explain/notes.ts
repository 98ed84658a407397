/** Possible improvements of a correct Program. Notes never make a Program wrong. */
import type { RawFinding } from "./raw-finding.ts";
import { commandIndex, type Graph, nodeKinds, nodeOf } from "../order/graph.ts";
import type { RegionTable } from "../check/region-table.ts";
import { serializationNotes } from "./serialization-notes.ts";
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Origin } from "../../commands/command.ts";
import { at } from "../../support/invariant.ts";
import { placeOf, placeText } from "./places.ts";
import { sweep } from "../order/sweep.ts";

export function noteFindings(graph: Graph, table: RegionTable): readonly RawFinding[] {
  return [...redundancyNotes(graph), ...serializationNotes(graph, table), ...leakNotes(graph)];
}

/**
 * Tensors whose memory is freed on one rank or path and kept on another. Kept memory stays until the Program is
 * released.
 */
interface Marks {
  readonly buffer: PlacedBuffer;
  readonly alloc: number;
  free: number | null;
}

function leakNotes(graph: Graph): readonly RawFinding[] {
  const { program } = graph;
  const marks = new Map<number, Marks>();
  for (const { rank, commands } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "alloc" && command.kind !== "free") continue;
      const known = marks.get(command.buffer);
      const node = nodeOf(graph, rank, index);
      if (command.kind === "alloc" && known === undefined) {
        marks.set(command.buffer, { buffer: at(program.buffers, command.buffer), alloc: node, free: null });
      }
      if (command.kind === "free" && known !== undefined) known.free = node;
    }
  }
  return [...byTensor([...marks.values()])].flatMap(([tensor, all]): readonly RawFinding[] => {
    const kept = all.find(({ free }) => free === null);
    const freed = all.find(({ free }) => free !== null);
    if (kept === undefined || freed === undefined || freed.free === null) return [];
    const { rank, bytes } = kept.buffer;
    return [
      {
        code: "buffer-leaked",
        severity: "note",
        message: `${tensor} is freed on rank ${freed.buffer.rank} and kept on rank ${rank}`,
        visits: [freed.free, kept.alloc],
        memory: { rank, tensor, slice: tensor, bytes },
        found: `${placeText(placeOf(graph, kept.alloc))} without a Deallocate`,
        expected: "a Deallocate on every path of every rank, or on none",
        help: `free ${tensor} on rank ${rank} as well`,
        notes: [`freed: ${placeText(placeOf(graph, freed.free))}`],
        edge: null,
      },
    ];
  });
}

function byTensor(marks: readonly Marks[]): ReadonlyMap<string, readonly Marks[]> {
  const groups = new Map<string, Marks[]>();
  for (const mark of marks) {
    const known = groups.get(mark.buffer.name);
    if (known === undefined) groups.set(mark.buffer.name, [mark]);
    else known.push(mark);
  }
  return groups;
}

/**
 * Statements that synchronize work that is already in order. One wait of a loop may be redundant while another
 * iteration needs it. A statement is therefore reported only if every one of its waits, on all ranks, adds no order.
 */
function redundancyNotes(graph: Graph): readonly RawFinding[] {
  const { nodeCount, kind } = graph;
  const idle = new Set(idleWaits(graph));
  const needed = new Set<string>();
  for (let node = 0; node < nodeCount; node++) {
    if (kind[node] === nodeKinds.wait && !idle.has(node)) needed.add(statementKey(originOf(graph, node)));
  }
  const first = new Map<string, { readonly node: number; occurrences: number }>();
  for (const node of idle) {
    const origin = originOf(graph, node);
    const key = statementKey(origin);
    if (!isSynchronization(origin) || needed.has(key)) continue;
    const known = first.get(key);
    if (known === undefined) first.set(key, { node, occurrences: 1 });
    else known.occurrences++;
  }
  return [...first.values()].map(({ node, occurrences }) => ({
    code: "redundant-synchronization",
    severity: "note",
    message: "a synchronization orders commands that are already ordered",
    visits: [node],
    occurrences,
    memory: null,
    found: placeText(placeOf(graph, node)),
    expected: "synchronizations that add an order",
    help: "remove it: it costs two calls on the host and changes nothing",
    notes: [],
    edge: null,
  }));
}

/** Waits that add no work to the past of their stream, in the order of the first run. */
function idleWaits(graph: Graph): readonly number[] {
  const works = workCounts(graph);
  const workOf = (chain: number, position: number): number =>
    position === 0 ? 0 : at(works, at(graph.chainStart, chain) + position - 1);
  const idle: number[] = [];
  sweep(graph, 1, {
    waits: (node, known, recorded, from, position) => {
      const own = at(graph.chainOf, node);
      const adds = (chain: number, reached: number, learned: number): boolean =>
        chain !== own && workOf(chain, learned) > workOf(chain, reached);
      if (adds(from, known.of(from), position)) return;
      if (!known.differs(recorded, (chain, mine, theirs) => chain !== from && adds(chain, mine, theirs)))
        idle.push(node);
    },
  });
  return idle;
}

/** Along each chain, the number of nodes so far that do work, in contrast to nodes that only order others. */
function workCounts({ chains, chainStart, chainNodes, kind }: Graph): Int32Array {
  const counts = new Int32Array(chainNodes.length);
  for (const chain of chains.keys()) {
    let count = 0;
    for (let i = at(chainStart, chain); i < at(chainStart, chain + 1); i++) {
      const node = kind[at(chainNodes, i)];
      if (node !== nodeKinds.record && node !== nodeKinds.wait && node !== nodeKinds.signal) count++;
      counts[i] = count;
    }
  }
  return counts;
}

/** Whether the host program contains the wait. The recorder adds the waits around transfers and copies. */
export function isSynchronization({ statement }: Origin): boolean {
  return /^(Synchronize|Wait)\b/.test(statement);
}

export function statementKey({ path, statement }: Origin): string {
  return `${path.join(".")} ${statement}`;
}

function originOf(graph: Graph, node: number): Origin {
  return at(at(graph.program.ranks, at(graph.rankOf, node)).origins, commandIndex(graph, node));
}

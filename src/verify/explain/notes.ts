/** Possible improvements of a correct Program. Notes never make a Program wrong. */
import type { PlacedBuffer } from "../../commands/buffer.ts";
import type { Origin } from "../../commands/command.ts";
import { at, groupedBy, getOrMake } from "../../support/invariant.ts";
import type { RegionTable } from "../check/region-table.ts";
import { commandIndex, type Graph, nodeKinds, nodeOf } from "../order/graph.ts";
import { captureOrders, sweep } from "../order/sweep.ts";
import { placeOf, placeText } from "./places.ts";
import type { RawFinding } from "./to-findings.ts";

/** Whether there are notes; `lowered`: all but those on waits, of a Program whose host programs a person did not write. */
export type WantedNotes = boolean | "lowered";

export function noteFindings(graph: Graph, table: RegionTable, wanted: WantedNotes): readonly RawFinding[] {
  return [
    ...(wanted === "lowered" ? [] : redundancyNotes(graph)),
    ...serializationNotes(graph, table),
    ...leakNotes(graph),
    ...stateNotes(graph),
  ];
}

/** Outputs that are copied over inputs, where they could be written over them. */
function stateNotes(graph: Graph): readonly RawFinding[] {
  const { program } = graph;
  const found = new Map<string, RawFinding>();
  for (const { rank, commands } of program.ranks) {
    for (const [index, command] of commands.entries()) {
      if (command.kind !== "copy") continue;
      const { name, output, bytes } = at(program.buffers, command.destination.buffer);
      if (output === undefined || found.has(name)) continue;
      const node = nodeOf(graph, rank, index);
      found.set(name, {
        code: "state-copied",
        severity: "note",
        message: `output ${output} is copied over ${name} instead of being written there`,
        visits: [node],
        memory: { rank, tensor: name, slice: name, bytes },
        found: placeText(placeOf(graph, node)),
        expected: `reads of ${name} that end before the output is written`,
        help: `read the output instead of ${name}, or write it by dynamicUpdate or elementwise ops alone`,
        notes: [],
        edge: null,
      });
    }
  }
  return [...found.values()];
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
  return [...groupedBy(marks.values(), ({ buffer }) => buffer.name)].flatMap(([tensor, all]): readonly RawFinding[] => {
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
    help: "remove it from the host program: it costs two calls on the host and changes nothing",
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

// Iterations of a loop that share no data but run one after the other, although on different streams. A loop that
// returns to one stream between iterations and synchronizes both ways prevents all overlap (the one-loop form of
// nvFuser before #4402).
//
//   for i: stream i waits for stream 0; work on stream i; stream 0 waits for stream i     <- iteration 1 waits for iteration 0
//
// Iterations share data if one writes bytes that the other touches. Only consecutive iterations are compared, and only
// work on worker streams: order on a library's stream is intended.

/** The work of one iteration of one loop on one rank. */
export interface Iteration {
  readonly nodes: number[];
  /** On worker streams. */
  readonly workers: number[];
}

function serializationNotes(graph: Graph, table: RegionTable): readonly RawFinding[] {
  const apart = neighboursOnOtherStreams(graph).filter(([a, b]) => !shareData(table, a, b));
  if (apart.length === 0) return [];
  const orders = captureOrders(
    graph,
    apart.flatMap(([before, after]) => {
      const [first, last] = ends(before, after);
      const transfers = transfersOf(graph, before);
      return [
        [last, first] as const,
        ...transfers.flatMap((transfer) => [[last, transfer] as const, [transfer, first] as const]),
      ];
    }),
  );
  return apart.flatMap(([before, after]): readonly RawFinding[] => {
    const [first, last] = ends(before, after);
    if (!orders.has(last, first)) return [];
    const through = transfersOf(graph, before).find(
      (transfer) => orders.has(last, transfer) && orders.has(transfer, first),
    );
    return [
      {
        code: "iterations-serialized",
        severity: "note",
        message: "iterations that share no data run one after the other",
        visits: [last, first],
        memory: null,
        found: `${placeText(placeOf(graph, first))} comes after ${placeText(placeOf(graph, last))}`,
        expected: "iterations that overlap on separate streams",
        help:
          through === undefined
            ? "synchronize all streams in separate loops before and after the loop, instead of in every iteration"
            : "one communicator runs its transfers in order: start those of later iterations first, by " +
              "--schedule earlyGathers if they wait for no kernel, or else post the sends in a separate loop at the end",
        notes: through === undefined ? [] : [`through ${placeText(placeOf(graph, through))}`],
        edge: null,
      },
    ];
  });
}

function transfersOf({ kind }: Graph, { nodes }: Iteration): readonly number[] {
  return nodes.filter((node) => kind[node] === nodeKinds.transfer);
}

/** The first work of the later iteration on a worker stream, and the last of the earlier one. */
export function ends(before: Iteration, after: Iteration): readonly [number, number] {
  return [at(after.workers, 0), at(before.workers, before.workers.length - 1)];
}

type Nodes = Pick<Graph, "program" | "nodeBase" | "kind" | "chainOf">;

/** Consecutive iterations of one loop and rank whose work on worker streams has no stream in common. */
export function neighboursOnOtherStreams(graph: Nodes): readonly (readonly [Iteration, Iteration])[] {
  return [...iterationsByLoop(graph).values()].flatMap((iterations) => {
    const inOrder = [...iterations.values()];
    return inOrder
      .slice(1)
      .map((next, i): readonly [Iteration, Iteration] => [at(inOrder, i), next])
      .filter(([a, b]) => onOtherStreams(graph, a, b));
  });
}

function iterationsByLoop(graph: Nodes): ReadonlyMap<string, ReadonlyMap<number, Iteration>> {
  const loops = new Map<string, Map<number, Iteration>>();
  for (const { rank, commands, origins, streams } of graph.program.ranks) {
    const isWorker = new Set(streams.flatMap(({ id, role }) => (role === "worker" ? [id] : [])));
    for (const [index, { path, iteration }] of origins.entries()) {
      const value = iteration.at(-1);
      const node = nodeOf(graph, rank, index);
      const works = graph.kind[node] === nodeKinds.work || graph.kind[node] === nodeKinds.transfer;
      if (value === undefined || !works) continue;
      const key = `${rank} ${path.slice(0, -1).join(".")} ${iteration.slice(0, -1).join(".")}`;
      const loop = getOrMake(loops, key, () => new Map<number, Iteration>());
      const own = getOrMake(loop, value, () => ({ nodes: [], workers: [] }));
      own.nodes.push(node);
      if (isWorker.has(at(commands, index).stream)) own.workers.push(node);
    }
  }
  return loops;
}

function onOtherStreams({ chainOf }: Nodes, a: Iteration, b: Iteration): boolean {
  if (a.workers.length === 0 || b.workers.length === 0) return false;
  const chains = new Set(a.workers.map((node) => chainOf[node]));
  return b.workers.every((node) => !chains.has(chainOf[node]));
}

/** Whether one of the two writes bytes that the other touches. */
function shareData({ reads, writes, overlaps }: RegionTable, a: Iteration, b: Iteration): boolean {
  const regions = (nodes: readonly number[], rows: typeof reads): readonly number[] =>
    nodes.flatMap((node) => [...rows.values.subarray(at(rows.start, node), at(rows.start, node + 1))]);
  const meets = (written: readonly number[], touched: ReadonlySet<number>): boolean =>
    written.some((region) =>
      overlaps.values
        .subarray(at(overlaps.start, region), at(overlaps.start, region + 1))
        .some((other) => touched.has(other)),
    );
  const [writtenA, writtenB] = [regions(a.nodes, writes), regions(b.nodes, writes)];
  const touched = (nodes: readonly number[], written: readonly number[]): ReadonlySet<number> =>
    new Set([...regions(nodes, reads), ...written]);
  return meets(writtenA, touched(b.nodes, writtenB)) || meets(writtenB, touched(a.nodes, writtenA));
}

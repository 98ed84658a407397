/**
 * Iterations of a loop that share no data but run one after the other, although on different streams. A loop that
 * returns to one stream between iterations and synchronizes both ways prevents all overlap (the one-loop form of
 * nvFuser before #4402).
 *
 *   for i: stream i waits for stream 0; work on stream i; stream 0 waits for stream i     <- iteration 1 waits for iteration 0
 *
 * Iterations share data if one writes bytes that the other touches. Only consecutive iterations are compared, and only
 * work on worker streams: order on a library's stream is intended.
 */
import { at } from "../../support/invariant.ts";
import { captureOrders } from "../order/captures.ts";
import type { RawFinding } from "./raw-finding.ts";
import { type Graph, nodeKinds, nodeOf } from "../order/graph.ts";
import { placeOf, placeText } from "./places.ts";
import type { RegionTable } from "../check/region-table.ts";

/** The work of one iteration of one loop on one rank. */
export interface Iteration {
  readonly nodes: number[];
  /** On worker streams. */
  readonly workers: number[];
}

export function serializationNotes(graph: Graph, table: RegionTable): readonly RawFinding[] {
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
            : "post an iteration's sends at the end of a separate loop: one communicator runs its transfers in order",
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
      const loop = loops.get(key) ?? new Map<number, Iteration>();
      loops.set(key, loop);
      const own = loop.get(value) ?? { nodes: [], workers: [] };
      loop.set(value, own);
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

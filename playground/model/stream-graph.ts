/** A rank's commands as a graph: a column for each stream, and edges for what one stream waits for from another. */
import type { RankCommands } from "../compiler/parts.ts";

export interface GraphNode {
  /** The position in the rank's list. */
  readonly command: number;
  readonly stream: number;
  readonly column: number;
  /** After all that it waits for. */
  readonly row: number;
}

export interface GraphEdge {
  /** Indices of nodes. */
  readonly from: number;
  readonly to: number;
}

export interface StreamGraph {
  /** Streams with nodes, by column. */
  readonly streams: readonly number[];
  readonly nodes: readonly GraphNode[];
  /** Between streams; the order within a stream is its column. */
  readonly edges: readonly GraphEdge[];
  /** Work that is left out. */
  readonly hidden: number;
}

const work: ReadonlySet<string> = new Set(["launch", "copy", "transfer", "signal", "waitSignal"]);

/** The first `most` commands that do work. Events become edges from the work before them to the work after them. */
export function streamGraph({ rows, edges }: RankCommands, most: number): StreamGraph {
  const works = rows.flatMap(({ kind }, index) => (work.has(kind) ? [index] : []));
  const shown = works.slice(0, most);
  const nodeOf = new Map(shown.map((command, node) => [command, node]));
  const streams = [...new Set(shown.map((command) => rows[command]?.stream ?? 0))].sort((a, b) => a - b);
  const recordOf = new Map(edges.map(({ from, to }) => [to, from]));
  const nodes: GraphNode[] = [];
  const found: GraphEdge[] = [];
  /** By stream: the last node, and the nodes that its next one waits for. */
  const last = new Map<number, number>();
  const waited = new Map<number, Set<number>>();
  /** By record: what is done when it is. */
  const recorded = new Map<number, ReadonlySet<number>>();
  const end = (shown.at(-1) ?? -1) + 1;
  rows.slice(0, end).forEach(({ kind, stream }, index) => {
    const node = nodeOf.get(index);
    const pending = waited.get(stream) ?? new Set<number>();
    if (node !== undefined) {
      const before = last.get(stream);
      const sources = [...pending].filter((other) => other !== before);
      const row = Math.max(
        -1,
        ...[...sources, ...(before === undefined ? [] : [before])].map((each) => nodes[each]?.row ?? -1),
      );
      nodes.push({ command: index, stream, column: streams.indexOf(stream), row: row + 1 });
      found.push(...sources.filter((from) => nodes[from]?.stream !== stream).map((from) => ({ from, to: node })));
      last.set(stream, node);
      waited.delete(stream);
    } else if (kind === "recordEvent") {
      const before = last.get(stream);
      recorded.set(index, new Set([...pending, ...(before === undefined ? [] : [before])]));
    } else if (kind === "waitEvent") {
      for (const source of recorded.get(recordOf.get(index) ?? -1) ?? []) pending.add(source);
      waited.set(stream, pending);
    }
  });
  return { streams, nodes, edges: found, hidden: works.length - shown.length };
}

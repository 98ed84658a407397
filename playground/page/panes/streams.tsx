/** The streams of a rank as a graph of what waits for what. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { fittedLabel } from "../../../src/report/view/describe.ts";
import type { CommandRow } from "../../compiler/parts.ts";
import { type GraphEdge, type GraphNode, streamGraph } from "../../model/stream-graph.ts";
import { useLinked, useStore } from "../hooks.ts";
import type { PageProps } from "../props.ts";
import { Empty } from "./empty.tsx";
import { RankPicker, shownRank } from "./rank-picker.tsx";

const [columnWidth, rowHeight, boxWidth, boxHeight, top, left] = [146, 42, 122, 26, 36, 12];
const atFirst = 60;
/** Characters that fit into a box. */
const boxRoom = 16;

export function StreamsPane({ store, pointing }: PageProps): JSX.Element {
  const { results } = useStore(store);
  const { verdict } = results;
  const linked = useLinked(pointing);
  const [most, setMost] = useState(atFirst);
  const rank = shownRank(store);
  const list = verdict?.commands[rank] ?? null;
  const graph = useMemo(() => (list === null ? null : streamGraph(list, most)), [list, most]);
  if (list === null || graph === null) {
    return <Empty results={results} />;
  }
  const { streams, nodes, edges, hidden } = graph;
  const height = top + rowHeight * (1 + nodes.reduce((last, { row }) => Math.max(last, row), 0));
  const width = left + columnWidth * streams.length;
  return (
    <>
      <div class="toolbar">
        <RankPicker store={store} />
        <span class="hint">
          Each column is a stream, in order from the top. An arrow is an event: the work that it points to waits for the
          work that it comes from. The number is the iteration.
        </span>
        {hidden > 0 && (
          <button
            type="button"
            onClick={() => {
              setMost(most * 4);
            }}
          >
            Show more ({hidden} left)
          </button>
        )}
      </div>
      <div class="graph" tabIndex={0}>
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`${nodes.length} commands on ${streams.length} streams, with ${edges.length} waits between streams`}
          onMouseLeave={() => {
            pointing.point(null);
          }}
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0 8 4 0 8z" />
            </marker>
          </defs>
          {streams.map((stream, column) => (
            <g key={stream} class={`stream-${stream % 8}`}>
              <line class="lane" x1={xOf(column)} x2={xOf(column)} y1={top - 8} y2={height} />
              <text class="lane-name" x={xOf(column)} y={18} text-anchor="middle">
                {list.streams[stream]}
              </text>
            </g>
          ))}
          {edges.map((edge) => (
            <path
              key={`${edge.from} ${edge.to}`}
              class={isEdgeLinked(edge, nodes, (command) => linked.hasCommand(rank, command)) ? "edge linked" : "edge"}
              d={curveOf(nodes, edge)}
              marker-end="url(#arrow)"
            />
          ))}
          {nodes.map((node) => (
            <Box
              key={node.command}
              node={node}
              row={list.rows[node.command]}
              isLinked={linked.hasCommand(rank, node.command)}
              point={() => {
                pointing.point({ kind: "command", rank, command: node.command });
              }}
            />
          ))}
        </svg>
      </div>
    </>
  );
}

function xOf(column: number): number {
  return left + columnWidth * column + boxWidth / 2;
}

function yOf(row: number): number {
  return top + rowHeight * row;
}

function isEdgeLinked(
  { from, to }: GraphEdge,
  nodes: readonly GraphNode[],
  has: (command: number) => boolean,
): boolean {
  return [from, to].some((node) => has(nodes[node]?.command ?? -1));
}

function curveOf(nodes: readonly GraphNode[], { from, to }: GraphEdge): string {
  const [a, b] = [nodes[from], nodes[to]];
  if (a === undefined || b === undefined) return "";
  const side = b.column > a.column ? 1 : -1;
  const [x1, y1] = [xOf(a.column) + (side * boxWidth) / 2, yOf(a.row) + boxHeight / 2];
  const [x2, y2] = [xOf(b.column) - (side * boxWidth) / 2, yOf(b.row) + boxHeight / 2];
  const bend = (columnWidth - boxWidth) * 1.4 * side;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

interface BoxProps {
  readonly node: GraphNode;
  readonly row: CommandRow | undefined;
  readonly isLinked: boolean;
  readonly point: () => void;
}

function Box({ node: { column, row: y, command }, row, isLinked, point }: BoxProps): JSX.Element | null {
  if (row === undefined) return null;
  const label = fittedLabel(row.label, row.iteration.join(","), boxRoom);
  return (
    <g class={isLinked ? "box linked" : "box"} onMouseEnter={point}>
      <title>{`${command}: ${row.kind} ${row.text}`}</title>
      <rect class={row.kind} x={xOf(column) - boxWidth / 2} y={yOf(y)} width={boxWidth} height={boxHeight} rx={5} />
      <text x={xOf(column)} y={yOf(y) + boxHeight / 2 + 4} text-anchor="middle">
        {label}
      </text>
    </g>
  );
}

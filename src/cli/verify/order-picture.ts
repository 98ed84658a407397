/**
 * Draws the order of commands around a finding as SVG. Each stream that takes part has a lane with the commands near
 * those of the finding. Edges are events, signals and transfers. The nearest common ancestor is green, and the missing
 * order is red.
 */
import type { Command } from "../../commands/command.ts";
import { commandDetails } from "../../commands/command-text.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { CommandPlace, Finding } from "../../verify/finding.ts";

interface Box {
  readonly rank: number;
  /** -1 and the length of the list stand for the caller before and after the run. */
  readonly command: number;
  readonly lane: number;
  readonly row: number;
  readonly label: string;
  readonly kind: "node" | "hot" | "common";
}

/** The number of commands shown before and after each command of the finding. */
const around = 3;
const [laneWidth, rowHeight, boxHeight, top, left] = [250, 34, 22, 36, 10];

/** Empty if the finding has no commands. */
export function orderPicture(program: Program, { commands, ancestor, missingEdge }: Finding): string {
  const places = [...commands, ...(ancestor === null ? [] : [ancestor])];
  const lanes = lanesOf(places);
  const boxes = boxesOf(program, lanes, commands, ancestor, places);
  if (boxes.length === 0) return "";
  const height = top + rowHeight * Math.max(...boxes.map(({ row }) => row + 1));
  const width = left + laneWidth * lanes.length;
  const missing =
    missingEdge === null
      ? null
      : { from: boxOf(program, boxes, missingEdge.from), to: boxOf(program, boxes, missingEdge.to) };
  return `<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="order of commands">
<defs>${arrowHead("arrow", "#57606a")}${arrowHead("red", "#c22")}</defs>
${lanes.map(({ title }, lane) => laneSvg(title, lane, height)).join("\n")}
${edgesOf(program, boxes)
  .map(([from, to]) => `<path class="edge" d="${curve(from, to)}"/>`)
  .join("\n")}
${missing?.from === undefined || missing.to === undefined ? "" : `<path class="missing" d="${curve(missing.from, missing.to)}"/>`}
${boxes.map(boxSvg).join("\n")}
</svg>`;
}

interface Lane {
  readonly rank: number;
  readonly stream: number;
  readonly title: string;
}

function lanesOf(places: readonly CommandPlace[]): readonly Lane[] {
  const lanes = new Map<string, Lane>();
  for (const { rank, stream, streamName } of places) {
    lanes.set(`${rank} ${stream}`, { rank, stream, title: `rank ${rank}, ${streamName}` });
  }
  return [...lanes.values()].sort((a, b) => a.rank - b.rank || a.stream - b.stream);
}

/** Rows follow positions in the lists: of one rank's commands, earlier ones are higher. */
function boxesOf(
  program: Program,
  lanes: readonly Lane[],
  hot: readonly CommandPlace[],
  ancestor: CommandPlace | null,
  places: readonly CommandPlace[],
): readonly Box[] {
  const indexOf = (place: CommandPlace): number => indexIn(program, place);
  const chosen = lanes.flatMap(({ rank, stream }, lane) => {
    const list = at(program.ranks, rank).commands;
    const own = [
      ...(stream === 0 ? [-1] : []),
      ...list.flatMap((command, index) => (command.stream === stream ? [index] : [])),
      ...(stream === 0 ? [list.length] : []),
    ];
    const wanted = places.filter((place) => place.rank === rank && place.stream === stream).map(indexOf);
    return own
      .filter((_, i) => wanted.some((index) => Math.abs(own.indexOf(index) - i) <= around))
      .map((command) => ({ rank, command, lane }));
  });
  const order = [...new Set(chosen.map(({ command }) => command))].sort((a, b) => a - b);
  const matches = (place: CommandPlace, rank: number, command: number): boolean =>
    place.rank === rank && indexOf(place) === command;
  return chosen.map(({ rank, command, lane }): Box => ({
    rank,
    command,
    lane,
    row: order.indexOf(command),
    label: labelOf(program, rank, command),
    kind: hot.some((place) => matches(place, rank, command))
      ? "hot"
      : ancestor !== null && matches(ancestor, rank, command)
        ? "common"
        : "node",
  }));
}

function indexIn(program: Program, { rank, command, kind }: CommandPlace): number {
  return command ?? (kind === "callerWrites" ? -1 : at(program.ranks, rank).commands.length);
}

function labelOf(program: Program, rank: number, index: number): string {
  const list = at(program.ranks, rank);
  const command = list.commands[index];
  if (command === undefined) return index < 0 ? "caller writes inputs" : "caller reads outputs";
  const text = `${index} ${command.kind} ${commandDetails(list, index)}`;
  return text.length > 38 ? `${text.slice(0, 37)}…` : text;
}

function boxOf(program: Program, boxes: readonly Box[], place: CommandPlace): Box | undefined {
  const command = indexIn(program, place);
  return boxes.find((box) => box.rank === place.rank && box.command === command);
}

/** Edges within lanes, from records to waits, from signals to waits, and between the commands of a transfer. */
function edgesOf(program: Program, boxes: readonly Box[]): readonly (readonly [Box, Box])[] {
  const commandOf = ({ rank, command }: Box): Command | undefined => at(program.ranks, rank).commands[command];
  const orders = (from: Box, to: Box): boolean => {
    const [a, b] = [commandOf(from), commandOf(to)];
    if (a === undefined || b === undefined) return false;
    if (a.kind === "recordEvent" && b.kind === "waitEvent") return from.rank === to.rank && a.event === b.event;
    if (a.kind === "signal" && b.kind === "waitSignal") return a.slot === b.slot;
    if (a.kind !== "transfer" || b.kind !== "transfer" || from.rank >= to.rank) return false;
    return at(program.ranks, from.rank).transferOf[from.command] === at(program.ranks, to.rank).transferOf[to.command];
  };
  const across = boxes.flatMap((from) => boxes.flatMap((to) => (orders(from, to) ? [[from, to] as const] : [])));
  const along = boxes.flatMap((box, i) => {
    const next = boxes[i + 1];
    return next !== undefined && next.lane === box.lane ? [[box, next] as const] : [];
  });
  return [...along, ...across];
}

function laneSvg(title: string, lane: number, height: number): string {
  const x = left + lane * laneWidth + laneWidth / 2;
  return `<line class="lane" x1="${x}" y1="24" x2="${x}" y2="${height}"/><text x="${x}" y="16" text-anchor="middle">${escapeText(title)}</text>`;
}

function boxSvg({ lane, row, label, kind }: Box): string {
  const [x, y] = [left + lane * laneWidth + 8, top + row * rowHeight];
  return `<g><rect class="${kind}" x="${x}" y="${y}" width="${laneWidth - 16}" height="${boxHeight}" rx="3"/><text x="${x + 6}" y="${y + 15}">${escapeText(label)}</text></g>`;
}

function curve(from: Box, to: Box): string {
  const center = ({ lane }: Box): number => left + lane * laneWidth + laneWidth / 2;
  const y = ({ row }: Box): number => top + row * rowHeight;
  if (from.lane === to.lane) return `M ${center(from)} ${y(from) + boxHeight} L ${center(to)} ${y(to)}`;
  const side = to.lane > from.lane ? 1 : -1;
  const [x1, x2] = [center(from) + side * (laneWidth / 2 - 8), center(to) - side * (laneWidth / 2 - 8)];
  const [y1, y2] = [y(from) + boxHeight / 2, y(to) + boxHeight / 2];
  return `M ${x1} ${y1} C ${x1 + side * 14} ${y1} ${x2 - side * 14} ${y2} ${x2} ${y2}`;
}

function arrowHead(id: string, color: string): string {
  return `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="${color}"/></marker>`;
}

/** Escapes text for HTML and SVG. */
export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

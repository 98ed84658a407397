/** Draws the visible part of a timeline on a canvas. */
import { bisectLeft } from "d3-array";
import { at } from "../../support/invariant.ts";
import type { IdleSpan, SliceRef } from "../data/timeline-data.ts";
import type { SliceArrow } from "../view/find.ts";
import type { TimelineRow } from "../view/rows.ts";
import { fittedLabel } from "../view/describe.ts";
import { chosenBars, visibleBars } from "../view/visible-bars.ts";
import { type ScreenBox, boxOf, characterWidth, font, type Scene, type TrackRow } from "./scene.ts";

export function drawScene(context: CanvasRenderingContext2D, scene: Scene): void {
  const { rows, pixels, scrolled, height, theme } = scene;
  context.clearRect(0, 0, pixels.width, height);
  context.font = font;
  context.textBaseline = "middle";
  const visible = rows.rows.filter((row) => row.y + row.height > scrolled && row.y < scrolled + height);
  context.save();
  context.translate(0, -scrolled);
  for (const row of visible) {
    switch (row.kind) {
      case "rank":
        drawHead(context, scene, row);
        break;
      case "track":
        drawTrack(context, scene, row);
        break;
      case "memory":
        drawMemory(context, scene, row);
        break;
    }
  }
  drawIdle(context, scene);
  drawEnds(context, scene);
  drawArrows(context, scene);
  for (const [ref, color] of [
    [scene.picked, theme.select],
    [scene.hovered, theme.text],
  ] as const) {
    if (ref !== null) outline(context, scene, ref, color);
  }
  context.restore();
}

function drawHead(context: CanvasRenderingContext2D, { theme, pixels }: Scene, { y, height }: TimelineRow): void {
  context.fillStyle = theme.line;
  context.globalAlpha = 0.35;
  context.fillRect(0, y + 1, pixels.width, height - 2);
  context.globalAlpha = 1;
}

// Draws exposed time with its causes.

/** Exposed time: named in the head of its rank, and shaded across the rank's tracks. */
function drawIdle(context: CanvasRenderingContext2D, scene: Scene): void {
  const { data, rows, scrolled, height } = scene;
  const visible = rows.rows.filter((row) => row.y + row.height > scrolled && row.y < scrolled + height);
  const ranks = new Set(visible.map(({ rank }) => rank));
  for (const [run, { idle }] of data.runs.entries()) {
    for (const rank of ranks) {
      const own = visible.filter((row) => row.rank === rank);
      drawIdleOf(context, scene, { run, own, spans: idle.filter((span) => span.rank === rank) });
    }
  }
}

function drawIdleOf(
  context: CanvasRenderingContext2D,
  scene: Scene,
  {
    run,
    own,
    spans,
  }: { readonly run: number; readonly own: readonly TimelineRow[]; readonly spans: readonly IdleSpan[] },
): void {
  const { data, theme, pixels, selection } = scene;
  const head = own.find(({ kind }) => kind === "rank");
  const tracks = own.filter((row) => row.kind === "track" && row.run === run);
  let drawn = -1;
  for (const { cause, label, start, end } of spans) {
    const x0 = Math.max(-1, (start - pixels.from) * pixels.scale);
    const x1 = Math.min(pixels.width + 1, (end - pixels.from) * pixels.scale);
    if (x1 < 0 || x1 <= drawn) continue;
    if (x0 > pixels.width) break;
    const width = Math.max(x1 - x0, 1);
    drawn = Math.floor(x0 + width);
    const faded = selection !== null && selection.cause !== cause;
    if (head !== undefined) {
      const tall = (head.height - 4) / data.runs.length;
      drawIdleName(context, scene, { x0, width, top: head.y + 2 + run * tall, tall }, { cause, label, faded });
    }
    context.fillStyle = theme.idle;
    context.globalAlpha = faded ? 0.03 : selection?.cause === cause ? 0.28 : 0.1;
    for (const row of tracks) context.fillRect(x0, row.y, width, row.height);
    context.globalAlpha = 1;
  }
}

function drawIdleName(
  context: CanvasRenderingContext2D,
  { theme, causes, patterns }: Scene,
  {
    x0,
    width,
    top,
    tall,
  }: { readonly x0: number; readonly width: number; readonly top: number; readonly tall: number },
  { cause, label, faded }: { readonly cause: string; readonly label: string; readonly faded: boolean },
): void {
  context.globalAlpha = faded ? 0.15 : 0.85;
  context.fillStyle = width < 3 ? theme.idle : (patterns[causes.indexOf(cause)] ?? theme.idle);
  context.fillRect(x0, top, width, tall);
  context.globalAlpha = 1;
  // Too narrow for any label, and too many to measure.
  if (faded || width < 30) return;
  const wide = context.measureText(label).width + 4;
  if (wide > width - 6) return;
  context.fillStyle = theme.surface;
  context.fillRect(x0 + 3, top + 1, wide, tall - 2);
  context.fillStyle = theme.text;
  context.fillText(label, x0 + 5, top + tall / 2 + 0.5);
}

// Draws what lies over the tracks: the ends of runs, outlines of slices, and arrows between them.

/** A line at the end of each run. */
function drawEnds(context: CanvasRenderingContext2D, { data, rows, theme, pixels }: Scene): void {
  context.strokeStyle = theme.faint;
  context.setLineDash([2, 3]);
  for (const { end } of data.runs) {
    const x = (end - pixels.from) * pixels.scale;
    if (x < 0 || x > pixels.width) continue;
    context.beginPath();
    context.moveTo(x - 0.5, 0);
    context.lineTo(x - 0.5, rows.height);
    context.stroke();
  }
  context.setLineDash([]);
}

function outline(context: CanvasRenderingContext2D, scene: Scene, ref: SliceRef, color: string): void {
  const box = boxOf(scene, ref);
  if (box === null) return;
  context.strokeStyle = color;
  context.lineWidth = 2;
  const [left, right] = [Math.max(box.x0, -4), Math.min(box.x1, scene.pixels.width + 4)];
  context.strokeRect(left, box.top, Math.max(2, right - left), box.tall);
}

function drawArrows(context: CanvasRenderingContext2D, scene: Scene): void {
  const { data, arrows, hovered, theme } = scene;
  context.setLineDash([5, 4]);
  for (const [run, { missing }] of data.runs.entries()) {
    for (const pair of missing) drawArrow(context, scene, run, pair, theme.missing);
  }
  context.setLineDash([]);
  if (hovered === null) return;
  for (const pair of arrows) drawArrow(context, scene, hovered.run, pair, theme.arrow);
}

function drawArrow(
  context: CanvasRenderingContext2D,
  scene: Scene,
  run: number,
  [from, to]: SliceArrow,
  color: string,
): void {
  const [a, b] = [boxOf(scene, { run, slice: from }), boxOf(scene, { run, slice: to })];
  if (a === null || b === null) return;
  // A transfer's participants end together, so an arrow between them leads from start to start.
  const begin = b.x0 >= a.x1 ? a.x1 : Math.max(a.x0, Math.min(a.x1, b.x0));
  const [y0, y1] = [a.top + a.tall / 2, b.top + b.tall / 2];
  const bend = Math.max(14, Math.abs(b.x0 - begin) / 3);
  context.strokeStyle = context.fillStyle = color;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(begin, y0);
  context.bezierCurveTo(begin + bend, y0, b.x0 - bend, y1, b.x0 - 1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(b.x0, y1);
  context.lineTo(b.x0 - 7, y1 - 4);
  context.lineTo(b.x0 - 7, y1 + 4);
  context.closePath();
  context.fill();
}

// Draws the memory in use on a device as a curve.

function drawMemory(context: CanvasRenderingContext2D, scene: Scene, row: TimelineRow): void {
  const { data, theme, pixels, peak } = scene;
  const top = Math.max(peak, 1);
  const base = row.y + row.height - 4;
  const scaleY = (row.height - 10) / top;
  context.fillStyle = theme.line;
  context.fillRect(0, base, pixels.width, 0.5);
  const curve = data.runs.at(-1)?.memory.find(({ rank }) => rank === row.rank);
  if (curve === undefined) return;
  const { time, bytes } = curve;
  const x = (each: number): number => (each - pixels.from) * pixels.scale;
  context.beginPath();
  context.moveTo(Math.max(0, x(0)), base);
  let i = Math.max(0, bisectLeft(time, pixels.from, 0, time.length) - 1);
  let last = 0;
  while (i < time.length && x(at(time, i)) <= pixels.width) {
    const left = Math.max(x(at(time, i)), Math.max(0, x(0)));
    context.lineTo(left, base - last * scaleY);
    // Of the changes within a pixel, the greatest use.
    const next = Math.max(i + 1, bisectLeft(time, pixels.from + (Math.floor(left) + 1) / pixels.scale, i, time.length));
    for (let k = i; k < next; k++) last = k === i ? at(bytes, k) : Math.max(last, at(bytes, k));
    context.lineTo(left, base - last * scaleY);
    last = at(bytes, next - 1);
    i = next;
  }
  const right = Math.min(pixels.width, x(at(data.runs, data.runs.length - 1).end));
  context.lineTo(right, base - last * scaleY);
  context.lineTo(right, base);
  context.closePath();
  context.fillStyle = theme.memory;
  context.globalAlpha = 0.35;
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = theme.memory;
  context.lineWidth = 1;
  context.stroke();
  const resident = base - curve.resident * scaleY;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(0, resident);
  context.lineTo(pixels.width, resident);
  context.stroke();
  context.setLineDash([]);
}

// Draws a track: its slices, those that are highlighted, and those of the critical path.

const dimmed = 0.22;

function drawTrack(context: CanvasRenderingContext2D, scene: Scene, row: TrackRow): void {
  const { data, theme, pixels, pixelRow, coverages, selection } = scene;
  const { y, height, run, track } = row;
  context.fillStyle = theme.line;
  context.fillRect(0, Math.round(y + height) - 1, pixels.width, 0.5);
  if (track === null) return;
  const { slices } = at(data.runs, run);
  const coverage = at(coverages, run);
  const [top, tall] = [y + 2, height - 4];
  const isDimmed = selection !== null;
  context.globalAlpha = isDimmed ? dimmed : 1;
  pixelRow.begin(pixels.width);
  visibleBars(slices, track, pixels, {
    slice: (slice, x0, x1) => {
      drawSlice(context, scene, run, slice, { x0, x1, top, tall, named: !isDimmed });
    },
    many: (first, last, x) => {
      const { kind, busy } = coverage.between(first, last);
      pixelRow.set(x, theme.kinds[kind], Math.min(1, Math.max(0.25, busy * pixels.scale)));
    },
  });
  pixelRow.draw(context, top, tall);
  context.globalAlpha = 1;
  if (selection !== null) drawSelected(context, scene, row, at(selection.slices, run));
  drawCritical(context, scene, row);
}

function drawSlice(
  context: CanvasRenderingContext2D,
  { data, theme, pixels }: Scene,
  run: number,
  slice: number,
  { x0, x1, top, tall, named }: ScreenBox,
): void {
  const { slices } = at(data.runs, run);
  const work = at(data.works, at(slices.work, slice));
  const left = Math.max(x0, -2);
  const right = Math.min(x1, pixels.width + 2);
  const width = Math.max(1, right - left - (x1 - x0 > 4 ? 1 : 0));
  context.fillStyle = theme.kinds[work.kind];
  if (work.kind === "wait") context.fillRect(left, top + tall / 2 - 1.5, width, 3);
  else context.fillRect(left, top, width, tall);
  if (!named || width < 26 || work.kind === "wait") return;
  const from = Math.max(left, 0);
  const iteration = at(data.iterations, at(slices.iteration, slice));
  const room = Math.floor((Math.min(right, pixels.width) - from - 8) / characterWidth);
  if (room < 3) return;
  context.fillStyle = theme.onSlice;
  context.fillText(fittedLabel(work.label, iteration, room), from + 4, top + tall / 2 + 0.5);
}

/** The highlighted slices of a track, over the dimmed ones. */
function drawSelected(
  context: CanvasRenderingContext2D,
  scene: Scene,
  { y, height, run, track }: TrackRow,
  selected: Int32Array,
): void {
  if (track === null) return;
  chosenBars(at(scene.data.runs, run).slices, track, scene.pixels, selected, (slice, x0, x1) => {
    drawSlice(context, scene, run, slice, { x0, x1, top: y + 2, tall: height - 4, named: true });
  });
}

/** A line under the slices of the critical path. */
function drawCritical(
  context: CanvasRenderingContext2D,
  { data, theme, pixels, critical }: Scene,
  { y, height, run, track }: TrackRow,
): void {
  if (track === null) return;
  context.fillStyle = theme.critical;
  chosenBars(at(data.runs, run).slices, track, pixels, at(critical, run), (_, x0, x1) => {
    context.fillRect(Math.max(x0, -1), y + height - 3, Math.min(x1, pixels.width + 1) - Math.max(x0, -1), 2.5);
  });
}

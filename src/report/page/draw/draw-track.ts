/** Draws a track: its slices, those that are highlighted, and those of the critical path. */
import { at } from "../../../support/invariant.ts";
import { fittedLabel } from "../../view/slice-label.ts";
import { chosenBars, visibleBars } from "../../view/visible-bars.ts";
import { type Box, type Scene, type TrackRow, characterWidth } from "./scene.ts";

const dimmed = 0.22;

export function drawTrack(context: CanvasRenderingContext2D, scene: Scene, row: TrackRow): void {
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
  { x0, x1, top, tall, named }: Box,
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

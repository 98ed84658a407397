/** Draws what lies over the tracks: the ends of runs, outlines of slices, and arrows between them. */
import type { SliceRef } from "../../data/timeline-data.ts";
import type { Arrow } from "../../view/arrows.ts";
import { type Scene, boxOf } from "./scene.ts";

/** A line at the end of each run. */
export function drawEnds(context: CanvasRenderingContext2D, { data, rows, theme, pixels }: Scene): void {
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

export function outline(context: CanvasRenderingContext2D, scene: Scene, ref: SliceRef, color: string): void {
  const box = boxOf(scene, ref);
  if (box === null) return;
  context.strokeStyle = color;
  context.lineWidth = 2;
  const [left, right] = [Math.max(box.x0, -4), Math.min(box.x1, scene.pixels.width + 4)];
  context.strokeRect(left, box.top, Math.max(2, right - left), box.tall);
}

export function drawArrows(context: CanvasRenderingContext2D, scene: Scene): void {
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
  [from, to]: Arrow,
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

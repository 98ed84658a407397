/** Draws the visible part of a timeline on a canvas. */
import type { TimelineRow } from "../../view/rows.ts";
import { drawIdle } from "./draw-idle.ts";
import { drawArrows, drawEnds, outline } from "./draw-marks.ts";
import { drawMemory } from "./draw-memory.ts";
import { drawTrack } from "./draw-track.ts";
import { type Scene, font } from "./scene.ts";

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

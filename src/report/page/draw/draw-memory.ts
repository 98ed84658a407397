/** Draws the memory in use on a device as a curve. */
import { at } from "../../../support/invariant.ts";
import { lowerBound } from "../../view/find.ts";
import type { TimelineRow } from "../../view/rows.ts";
import type { Scene } from "./scene.ts";

export function drawMemory(context: CanvasRenderingContext2D, scene: Scene, row: TimelineRow): void {
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
  let i = Math.max(0, lowerBound(time, pixels.from, 0, time.length) - 1);
  let last = 0;
  while (i < time.length && x(at(time, i)) <= pixels.width) {
    const left = Math.max(x(at(time, i)), Math.max(0, x(0)));
    context.lineTo(left, base - last * scaleY);
    // Of the changes within a pixel, the greatest use.
    const next = Math.max(i + 1, lowerBound(time, pixels.from + (Math.floor(left) + 1) / pixels.scale, i, time.length));
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

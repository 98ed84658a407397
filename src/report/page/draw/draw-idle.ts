/** Draws exposed time with its causes. */
import type { IdleSpan } from "../../data/timeline-data.ts";
import type { TimelineRow } from "../../view/rows.ts";
import type { Scene } from "./scene.ts";

/** Exposed time: named in the head of its rank, and shaded across the rank's tracks. */
export function drawIdle(context: CanvasRenderingContext2D, scene: Scene): void {
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

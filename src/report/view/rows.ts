/** The rows of a timeline from top to bottom: a head per rank, a row per stream and run, a row for memory. */
import type { TimelineData, Track } from "../data/timeline-data.ts";

export type TimelineRow =
  | { readonly kind: "rank"; readonly rank: number; readonly y: number; readonly height: number }
  | {
      readonly kind: "track";
      readonly rank: number;
      /** Empty for the further runs of a stream. */
      readonly label: string;
      readonly run: number;
      /** Null if nothing of the stream was traced in this run. */
      readonly track: Track | null;
      readonly y: number;
      readonly height: number;
    }
  | { readonly kind: "memory"; readonly rank: number; readonly y: number; readonly height: number };

export interface TimelineRows {
  readonly rows: readonly TimelineRow[];
  readonly height: number;
}

const heights = { rank: 24, track: 20, shared: 15, memory: 36, gap: 6 } as const;

/** `collapsed`: ranks of which only the head is shown. */
export function timelineRows({ ranks, runs }: TimelineData, collapsed: ReadonlySet<number>): TimelineRows {
  const rows: TimelineRow[] = [];
  let y = 0;
  const add = (row: TimelineRow): void => {
    rows.push(row);
    y += row.height;
  };
  const hasMemory = runs.some(({ memory }) => memory.some(({ time }) => time.length > 0));
  for (const { rank, streams } of ranks) {
    add({ kind: "rank", rank, y, height: heights.rank });
    if (collapsed.has(rank)) continue;
    for (const { id, name } of streams) {
      for (const [run, { tracks }] of runs.entries()) {
        const track = tracks.find((each) => each.rank === rank && each.stream === id) ?? null;
        const height = runs.length > 1 ? heights.shared : heights.track;
        add({ kind: "track", rank, label: run === 0 ? name : "", run, track, y, height });
      }
      if (runs.length > 1) y += 2;
    }
    if (hasMemory) add({ kind: "memory", rank, y, height: heights.memory });
    y += heights.gap;
  }
  return { rows, height: y };
}

/** The row at a height; null between rows. */
export function rowAt({ rows }: TimelineRows, y: number): TimelineRow | null {
  return rows.find((row) => row.y <= y && y < row.y + row.height) ?? null;
}

// The texts of a time axis.

/** `end`: of the timeline; `between`: from one tick to the next. Empty for parts of a step. */
export function tickText(
  { data, end }: { readonly data: Pick<TimelineData, "unit">; readonly end: number },
  time: number,
  between: number,
): string {
  if (data.unit === "steps") return Number.isInteger(time) ? String(time) : "";
  // As many digits as tell neighbouring ticks apart.
  const [factor, unit] = end < 1 ? [1000, "us"] : [1, "ms"];
  const digits = Math.max(0, Math.ceil(1 - Math.log10(factor * between)));
  return `${(factor * time).toFixed(Math.min(digits, 6))} ${unit}`;
}

/** What is drawn of a timeline, and where. */
import { at } from "../../support/invariant.ts";
import type { SliceRef, TimelineData } from "../data/timeline-data.ts";
import { type SliceArrow, createArrows } from "../view/find.ts";
import type { TimelineRow, TimelineRows } from "../view/rows.ts";
import type { Selection } from "../view/selection.ts";
import { type Coverage, createCoverage, type PixelScale } from "../view/visible-bars.ts";
import type { PixelRow } from "./pixel-row.ts";
import type { Theme } from "./theme.ts";

export interface Scene {
  readonly data: TimelineData;
  readonly coverages: readonly Coverage[];
  readonly rows: TimelineRows;
  readonly theme: Theme;
  /** The pixels of the view, and the height that is scrolled away. */
  readonly pixels: PixelScale;
  readonly scrolled: number;
  readonly height: number;
  /** Null if nothing is highlighted. */
  readonly selection: Selection | null;
  readonly hovered: SliceRef | null;
  readonly picked: SliceRef | null;
  /** Pairs of slices of the hovered one's run: what waited for what. */
  readonly arrows: readonly SliceArrow[];
  /** The causes of idle time, and a hatching for each. */
  readonly causes: readonly string[];
  readonly patterns: readonly (CanvasPattern | string)[];
  /** For the bars of a track that are a pixel wide. */
  readonly pixelRow: PixelRow;
  /** The most bytes in use on any device. */
  readonly peak: number;
  /** By run: the slices of the critical path, in ascending order. */
  readonly critical: readonly Int32Array[];
}

export const font = '11px ui-sans-serif, system-ui, "Segoe UI", sans-serif';
/** Pixels of a character. */
export const characterWidth = 6;

/** A row of the slices of one track. */
export type TrackRow = Extract<TimelineRow, { readonly kind: "track" }>;

export interface ScreenBox {
  readonly x0: number;
  readonly x1: number;
  readonly top: number;
  readonly tall: number;
  readonly named: boolean;
}

/** Where a slice is drawn; in the head of its rank if that is collapsed. */
export function boxOf({ data, rows, pixels }: Scene, { run, slice }: SliceRef): Omit<ScreenBox, "named"> | null {
  const { slices, tracks } = at(data.runs, run);
  const track = tracks.find(({ first, count }) => slice >= first && slice < first + count);
  if (track === undefined) return null;
  const row =
    rows.rows.find((each) => each.kind === "track" && each.run === run && each.track === track) ??
    rows.rows.find(({ rank }) => rank === track.rank);
  if (row === undefined) return null;
  const x0 = (at(slices.start, slice) - pixels.from) * pixels.scale;
  return { x0, x1: x0 + at(slices.duration, slice) * pixels.scale, top: row.y + 2, tall: row.height - 4 };
}

// What drawing needs of the data, made once.

export function prepare(data: TimelineData) {
  return {
    data,
    end: data.runs.reduce((latest, { end }) => Math.max(latest, end), 0) * 1.01 || 1,
    coverages: data.runs.map(({ slices }) => createCoverage(slices, data.works)),
    arrowsOf: data.runs.map(({ slices }) => createArrows(slices)),
    peak: data.runs.reduce((most, { memory }) => memory.reduce((top, { peak }) => Math.max(top, peak), most), 0),
    critical: data.runs.map(({ critical }) => critical.toSorted()),
    causes: [...new Set(data.runs.flatMap(({ idle }) => idle.map(({ cause }) => cause)))],
  };
}

/** Which slices a link stands for, and the stretch of time in which they are. */
import { at } from "../../support/invariant.ts";
import type { ReportLink } from "../data/report-data.ts";
import type { TimelineData } from "../data/timeline-data.ts";

/** What is highlighted: slices by run, in ascending order, and idle time of a cause, with what was waited for. */
export interface Selection {
  readonly slices: readonly Int32Array[];
  readonly cause: string | null;
  /** From the first to the last of it; null if there is nothing. */
  readonly extent: readonly [number, number] | null;
}

/** A line of a host program stands for all slices of the statement that begins on it. */
export type Selected = ReportLink | { readonly kind: "line"; readonly host: number; readonly line: number };

export function selectionOf({ runs, statements, works }: TimelineData, selected: Selected): Selection {
  const wanted = (test: (statement: number) => boolean): ((run: number, slice: number) => boolean) => {
    const byWork = works.map(({ statement }) => test(statement));
    return (run, slice) => byWork[at(at(runs, run).slices.work, slice)] ?? false;
  };
  switch (selected.kind) {
    case "region":
      return collect(
        runs,
        wanted((statement) => statements[statement]?.region === selected.region),
      );
    case "line":
      return collect(
        runs,
        wanted(
          (statement) => statements[statement]?.host === selected.host && statements[statement].line === selected.line,
        ),
      );
    case "stream": {
      const tracks = runs.map((run) =>
        run.tracks.find(({ rank, stream }) => rank === selected.rank && stream === selected.stream),
      );
      return collect(runs, (run, slice) => {
        const track = tracks[run];
        return track !== undefined && slice >= track.first && slice < track.first + track.count;
      });
    }
    case "cause": {
      const spans = runs.flatMap(({ idle }) => idle.filter(({ cause }) => cause === selected.cause));
      const slices = runs.map(({ idle }) => {
        const waitedFor = idle.flatMap(({ cause, slice }) => (cause === selected.cause && slice >= 0 ? [slice] : []));
        return Int32Array.from(new Set(waitedFor)).sort();
      });
      return { slices, cause: selected.cause, extent: extentOf(spans) };
    }
    case "commands": {
      const keys = new Set(selected.commands.map(({ rank, command }) => `${rank} ${command}`));
      const rankOf = runs.map(({ tracks, slices }) => {
        const ranks = new Int32Array(slices.start.length);
        for (const { rank, first, count } of tracks) ranks.fill(rank, first, first + count);
        return ranks;
      });
      return collect(runs, (run, slice) =>
        keys.has(`${at(at(rankOf, run), slice)} ${at(at(runs, run).slices.command, slice)}`),
      );
    }
    case "nothing":
      return { slices: runs.map(() => new Int32Array()), cause: null, extent: null };
  }
}

function collect(runs: TimelineData["runs"], test: (run: number, slice: number) => boolean): Selection {
  let [from, to] = [Infinity, -Infinity];
  const slices = runs.map(({ slices: { start, duration } }, run) => {
    const found: number[] = [];
    for (let slice = 0; slice < start.length; slice++) {
      if (!test(run, slice)) continue;
      found.push(slice);
      from = Math.min(from, at(start, slice));
      to = Math.max(to, at(start, slice) + at(duration, slice));
    }
    return Int32Array.from(found);
  });
  return { slices, cause: null, extent: from <= to ? [from, to] : null };
}

function extentOf(spans: readonly { readonly start: number; readonly end: number }[]): Selection["extent"] {
  if (spans.length === 0) return null;
  return [
    spans.reduce((least, { start }) => Math.min(least, start), Infinity),
    spans.reduce((most, { end }) => Math.max(most, end), -Infinity),
  ];
}

/**
 * A run in the Chrome Trace Event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a process per
 * rank, a track per stream, slices for commands and waits, arrows from events, signals and transfers to the commands
 * that waited, and a counter of moved bytes.
 *
 * The format: "Trace Event Format", Google, as Perfetto reads it. Slices of a track must not overlap. An arrow belongs
 * to the last slice that began on its track, so slices come before arrows of the same time. Process 0 and thread 0 are
 * idle.
 */
import type { CommandRef } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { microsecondsText, precisionOf } from "../align-traces.ts";
import { commandBytes, flopsOf } from "../command-work.ts";
import { eventTable, movingSince, type TraceEvent, type TraceOrigin } from "../event-table.ts";
import { inTrackOrder, trackLabel } from "../timeline.ts";
import {
  type TraceArrow,
  arrowsOf,
  type PlacedTimes,
  placeSlices,
  type TraceSlice,
  type SliceCategory,
  slicesOf,
} from "./slices.ts";

export interface ChromeTrace {
  readonly displayTimeUnit: "ns";
  /** How precisely the times of ranks with separate clocks match, and the run that was traced. */
  readonly otherData?: { readonly clocks?: string; readonly run?: TracedRunInfo };
  readonly traceEvents: readonly ChromeEvent[];
}

/** The run that a trace shows: with it, `readChromeTrace` gives the trace back. */
export interface TracedRunInfo {
  /** Equal for equal Programs. */
  readonly program: string;
  readonly devices: number;
  readonly on: "cpu" | "cuda";
  /** As the back end measured the run. */
  readonly milliseconds: number;
  /** The command line, option by option. */
  readonly options: Readonly<Record<string, string>>;
}

/**
 * The trace of one run of `program` in the Chrome Trace Event format. `events` have times in milliseconds, the trace in
 * microseconds. Commands of ranks that were not traced are omitted, with their arrows. `origins` give the precision of
 * ranks with separate clocks, which becomes a label of each rank and `otherData`.
 */
export function chromeTrace(
  program: Program,
  events: readonly TraceEvent[],
  origins: readonly TraceOrigin[] = [],
  run: TracedRunInfo | null = null,
): ChromeTrace {
  return {
    ...headOf(origins, run),
    traceEvents: [...chromeEvents(program, events, origins, run)],
  };
}

/** The approximate length of a text chunk in characters. */
const chunkLength = 1 << 16;

/** The JSON text of `chromeTrace` in chunks, one event per line, so that a long trace is never one string. */
export function* chromeTraceText(
  program: Program,
  events: readonly TraceEvent[],
  origins: readonly TraceOrigin[] = [],
  run: TracedRunInfo | null = null,
): Generator<string> {
  const head = JSON.stringify(headOf(origins, run));
  let piece = `${head.slice(0, -1)},"traceEvents":[`;
  let separator = "\n";
  for (const event of chromeEvents(program, events, origins, run)) {
    piece += separator + JSON.stringify(event);
    separator = ",\n";
    if (piece.length < chunkLength) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}\n]}\n`;
}

function headOf(origins: readonly TraceOrigin[], run: TracedRunInfo | null): Omit<ChromeTrace, "traceEvents"> {
  const otherData = { ...precisionOf(origins), ...(run === null ? {} : { run }) };
  return { displayTimeUnit: "ns", ...(Object.keys(otherData).length === 0 ? {} : { otherData }) };
}

function* chromeEvents(
  program: Program,
  events: readonly TraceEvent[],
  origins: readonly TraceOrigin[],
  run: TracedRunInfo | null,
): Generator<ChromeEvent> {
  const arrows = arrowsOf(program);
  const slices = drawnSlices(program, events, arrows);
  const tracks = trackNumbers(program);
  const trackOf = ({ rank, stream }: TraceSlice): number => at(at(tracks, rank), stream);
  const drawn = arrowsBetween(program, slices, arrows);
  const times = placeSlices(
    slices.map((slice) => ({ track: trackOf(slice), start: slice.start, end: slice.end })),
    drawn,
  );
  yield* metadata(program, slices, tracks, { origins, on: run?.on ?? "cuda" });
  for (const [i, slice] of slices.entries()) {
    const [start, end] = [at(times.starts, i), at(times.ends, i)];
    yield {
      ph: "X",
      name: slice.name,
      cat: slice.category,
      pid: processOf(slice.rank),
      tid: trackOf(slice),
      ts: microseconds(start),
      dur: microseconds(end - start),
      args: argumentsOf(program, slice),
    };
  }
  for (const [id, { kind, from, to }] of drawn.entries()) {
    const common = { name: kind, cat: "order", id: id + 1 } as const;
    const place = (i: number): { readonly pid: number; readonly tid: number; readonly ts: number } => {
      const slice = at(slices, i);
      return { pid: processOf(slice.rank), tid: trackOf(slice), ts: microseconds(at(times.starts, i)) };
    };
    yield { ph: "s", ...common, ...place(from) };
    yield { ph: "f", bp: "e", ...common, ...place(to) };
  }
  yield* counters(program, slices, times);
}

function drawnSlices(
  program: Program,
  events: readonly TraceEvent[],
  arrows: readonly TraceArrow[],
): readonly TraceSlice[] {
  const eventOf = eventTable(program, events);
  const moving = movingSince(program, eventOf);
  const causes = program.ranks.map((): CommandRef[] => []);
  for (const { kind, from, to } of arrows) if (kind !== "transfer") at(causes, to.rank)[to.command] = from;
  const causeOf = ({ rank, command }: CommandRef): CommandRef | null => at(causes, rank)[command] ?? null;
  return program.ranks.flatMap((rank) => slicesOf(program, rank, eventOf, moving, causeOf));
}

/** Arrows as pairs of slices: from the first of a command (a transfer's arrival) to the last of another. */
function arrowsBetween(
  { ranks }: Program,
  slices: readonly TraceSlice[],
  arrows: readonly TraceArrow[],
): readonly { readonly kind: TraceArrow["kind"]; readonly from: number; readonly to: number }[] {
  const first = ranks.map((): number[] => []);
  const last = ranks.map((): number[] => []);
  for (const [i, { rank, command }] of slices.entries()) {
    at(first, rank)[command] ??= i;
    at(last, rank)[command] = i;
  }
  return arrows.flatMap(({ kind, from, to }) => {
    const [source, target] = [at(first, from.rank)[from.command], at(last, to.rank)[to.command]];
    return source === undefined || target === undefined ? [] : [{ kind, from: source, to: target }];
  });
}

function argumentsOf(program: Program, { rank, command: index, category }: TraceSlice): Arguments {
  const { commands, origins } = at(program.ranks, rank);
  const command = at(commands, index);
  const { statement, iteration } = at(origins, index);
  const origin = { command: index, statement, ...(iteration.length === 0 ? {} : { iteration: iteration.join(", ") }) };
  const bytes = category === "wait" ? null : commandBytes(program, rank, index);
  return {
    ...origin,
    ...(bytes === null ? {} : { bytes }),
    ...(command.kind === "launch" ? { flops: flopsOf(at(program.kernels, command.kernel)) } : {}),
  };
}

/** Per rank in order of time; the counter begins at 0. */
function* counters(program: Program, slices: readonly TraceSlice[], { ends }: PlacedTimes): Generator<Counter> {
  const movements = program.ranks.map((): number[] => []);
  for (const [i, { rank, category }] of slices.entries()) {
    if (category === "copy" || category === "transfer") at(movements, rank).push(i);
  }
  for (const [rank, indices] of movements.entries()) {
    if (indices.length === 0) continue;
    const pid = processOf(rank);
    let bytes = 0;
    yield { ph: "C", name: "moved", pid, ts: 0, args: { bytes } };
    for (const i of indices.toSorted((a, b) => at(ends, a) - at(ends, b))) {
      bytes += commandBytes(program, rank, at(slices, i).command) ?? 0;
      yield { ph: "C", name: "moved", pid, ts: microseconds(at(ends, i)), args: { bytes } };
    }
  }
}

function microseconds(nanoseconds: number): number {
  return nanoseconds / 1000;
}

/** Viewers treat process 0 as idle. */
function processOf(rank: number): number {
  return rank + 1;
}

/**
 * By rank and stream: the number of the track. It differs from all others and from all processes, because viewers mark
 * a thread with its process's number.
 */
function trackNumbers({ ranks }: Program): readonly (readonly number[])[] {
  let next = processOf(ranks.length);
  return ranks.map(({ streams }) => {
    const numbers: number[] = [];
    for (const { id } of inTrackOrder(streams)) numbers[id] = next++;
    return numbers;
  });
}

/** Names and order of the processes and tracks that have slices, and the precision of each rank's clock. */
function* metadata(
  { ranks }: Program,
  slices: readonly TraceSlice[],
  tracks: readonly (readonly number[])[],
  { origins, on }: { readonly origins: readonly TraceOrigin[]; readonly on: "cpu" | "cuda" },
): Generator<Metadata> {
  const used = ranks.map(() => new Set<number>());
  for (const { rank, stream } of slices) at(used, rank).add(stream);
  for (const { rank, streams } of ranks) {
    const shown = inTrackOrder(streams).filter(({ id }) => at(used, rank).has(id));
    if (shown.length === 0) continue;
    const pid = processOf(rank);
    yield { ph: "M", name: "process_name", pid, args: { name: `rank ${rank}` } };
    yield { ph: "M", name: "process_sort_index", pid, args: { sort_index: rank } };
    for (const { error } of origins.filter((origin) => origin.rank === rank)) {
      yield { ph: "M", name: "process_labels", pid, args: { labels: `clock within ${microsecondsText(error)}` } };
    }
    for (const [position, stream] of shown.entries()) {
      const tid = at(at(tracks, rank), stream.id);
      yield { ph: "M", name: "thread_name", pid, tid, args: { name: trackLabel(stream, on) } };
      yield { ph: "M", name: "thread_sort_index", pid, tid, args: { sort_index: position } };
    }
  }
}

// The kinds of events of the Chrome Trace Event format that Braid writes, with its fields' names. Times are in
// microseconds.

type Arguments = Readonly<Record<string, string | number>>;

export interface Metadata {
  readonly ph: "M";
  readonly name: "process_name" | "process_labels" | "process_sort_index" | "thread_name" | "thread_sort_index";
  readonly pid: number;
  readonly tid?: number;
  readonly args: Arguments;
}
export interface Complete {
  readonly ph: "X";
  readonly name: string;
  readonly cat: SliceCategory;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: Arguments;
}
export interface FlowStart {
  readonly ph: "s";
  readonly name: TraceArrow["kind"];
  readonly cat: "order";
  readonly id: number;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
}
export interface FlowEnd extends Omit<FlowStart, "ph"> {
  readonly ph: "f";
  /** Ends at the slice that encloses it, not at the next one. */
  readonly bp: "e";
}
export interface Counter {
  readonly ph: "C";
  readonly name: "moved";
  readonly pid: number;
  readonly ts: number;
  /** Bytes of the copies and transfers that have ended. */
  readonly args: { readonly bytes: number };
}
export type ChromeEvent = Metadata | Complete | FlowStart | FlowEnd | Counter;

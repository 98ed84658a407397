/**
 * One rank's run as text: a row per stream over one time axis, which shows at a glance which streams ran when. A cell
 * shows what took most of its time; a command shorter than a cell still shows. A transfer that waits for its peers is
 * drawn differently from one that moves data, and does not count as busy.
 */
import { isWork, type StreamInfo, type WorkKind } from "../commands/command.ts";
import type { Program, RankProgram } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { isLocalCopy } from "./command-work.ts";
import { eventTable, movingSince, type MovingSince, type TraceEvent } from "./event-table.ts";

/** Commands that move or compute data, with the letter of their cells; the others only order streams. */
const letters: { readonly [K in WorkKind]: string } = {
  launch: "k",
  copy: "c",
  transfer: "t",
};
/** A rank that has arrived at a transfer and waits for its peers. */
const waiting = "w";
const idle = ".";
const legend = `k kernel, c copy, t transfer, ${waiting} waiting for peers, ${idle} idle`;

/** 1 ns in milliseconds, so that a command of no measurable length still shows. */
const shortest = 1e-6;

interface Span {
  readonly letter: string;
  readonly start: number;
  readonly end: number;
}

interface Drawing {
  readonly columns: number;
  readonly on: "cpu" | "cuda";
}

/**
 * Lines of at most `columns` characters (at least 20 cells are drawn): streams with work in order of their number, the
 * time axis, the legend. `events` are those of all ranks: others' arrivals say since when a transfer moves.
 */
export function renderTimeline(
  program: Program,
  number: number,
  events: readonly TraceEvent[],
  { columns, on }: Drawing,
): readonly string[] {
  const rank = at(program.ranks, number);
  const spans = spansByStream(program, rank, events, movingSince(program, eventTable(program, events)));
  const total = [...spans.values()].flat().reduce((latest, { end }) => Math.max(latest, end), shortest);
  const rows = rank.streams.flatMap((stream) => {
    const name = trackLabel(stream, on);
    const own = spans.get(stream.id) ?? [];
    const busy = own.reduce((sum, { letter, start, end }) => sum + (letter === waiting ? 0 : end - start), 0);
    return own.length === 0 ? [] : [{ name, busy: `${busy.toFixed(2)} ms`, own }];
  });
  if (rows.length === 0) return [`rank ${rank.rank}: nothing to run`];
  const nameWidth = Math.max(...rows.map(({ name }) => name.length));
  const busyWidth = Math.max(...rows.map(({ busy }) => busy.length));
  const cells = Math.max(20, columns - nameWidth - busyWidth - 4);
  return [
    ...rows.map(
      ({ name, busy, own }) =>
        `${name.padEnd(nameWidth)}  ${drawSpans(own, cells, total)}  ${busy.padStart(busyWidth)}`,
    ),
    `${" ".repeat(nameWidth + 2)}0${`${total.toFixed(2)} ms`.padStart(cells - 1)}`,
    `rank ${rank.rank}; ${legend}`,
  ];
}

function spansByStream(
  program: Program,
  rank: RankProgram,
  events: readonly TraceEvent[],
  moving: MovingSince,
): ReadonlyMap<number, readonly Span[]> {
  const spans = new Map<number, Span[]>();
  for (const event of events) {
    if (event.rank !== rank.rank) continue;
    const command = at(rank.commands, event.command);
    const { kind, stream } = command;
    if (!isWork(kind)) continue;
    const letter = letters[isLocalCopy(program, rank.rank, command) ? "copy" : kind];
    const start = moving(event);
    const row = spans.get(stream) ?? [];
    if (start > event.start) row.push({ letter: waiting, start: event.start, end: start });
    row.push({ letter, start, end: Math.max(event.end, start + shortest) });
    spans.set(stream, row);
  }
  return spans;
}

/** One character per cell: the letter with the most time in it. */
function drawSpans(spans: readonly Span[], cells: number, total: number): string {
  const times = Array.from({ length: cells }, () => new Map<string, number>());
  for (const { letter, start, end } of spans) {
    const first = Math.min(cells - 1, Math.floor((start / total) * cells));
    const last = Math.min(cells - 1, Math.max(first, Math.ceil((end / total) * cells) - 1));
    for (let cell = first; cell <= last; cell++) {
      const from = Math.max(start, (cell * total) / cells);
      const to = Math.min(end, ((cell + 1) * total) / cells);
      const time = at(times, cell);
      time.set(letter, (time.get(letter) ?? 0) + Math.max(to - from, 0));
    }
  }
  return times.map((time) => [...time].reduce(longest, [idle, -1])[0]).join("");
}

function longest(best: readonly [string, number], entry: readonly [string, number]): readonly [string, number] {
  return entry[1] > best[1] ? entry : best;
}

// The order in which pictures of a run show a rank's streams, those of the user first, and their labels.

const roles: readonly StreamInfo["role"][] = ["caller", "worker", "communicator", "pair", "copy"];

export function inTrackOrder(streams: readonly StreamInfo[]): readonly StreamInfo[] {
  return streams.toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.id - b.id);
}

/** CPUs have no NCCL: there the executor itself moves what a library's stream has in its queue. */
export function trackLabel({ role, name }: StreamInfo, on: "cpu" | "cuda"): string {
  const isLibrary = role === "communicator" || role === "pair";
  return on === "cpu" && isLibrary ? name.replace(/^\S+/u, "transfers") : name;
}

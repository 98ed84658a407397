/** Compares the flight records of all ranks of a run: where each stream stands, and which rank is missing where. */
import type { Diagnostic, Place } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import {
  recordedCommandText,
  flightPositions,
  type FlightPositions,
  type FlightStream,
  type FlightTarget,
  lastSteps,
  standingText,
  streamText,
} from "./flight-positions.ts";
import type { FlightRecord } from "./flight-record.ts";

export interface FlightReport {
  /** Errors if the run had failed, and notes if it went on. */
  readonly findings: readonly Diagnostic[];
  readonly ranks: readonly FlightRank[];
}

/** A rank of the run. */
export interface FlightRank {
  readonly rank: number;
  /** In one line. */
  readonly text: string;
  /** Why the record was written; null without a record. */
  readonly reason: string | null;
  /** The streams that have commands. */
  readonly streams: readonly FlightLine[];
}

interface FlightLine {
  readonly stream: number;
  readonly text: string;
  /** The last steps, oldest first. */
  readonly last: readonly string[];
}

/**
 * `all` has at least one record, and at most one of each rank. If some are of a failed run, the others were written
 * before, by ranks that left none at the end.
 */
export function compareFlights(all: readonly FlightRecord[]): FlightReport {
  const failed = all.filter((record) => record.failed);
  const records = failed.length === 0 ? all : failed;
  const positions = flightPositions(records);
  const world = all.reduce((most, each) => Math.max(most, each.world), 0);
  const byRank = new Map(records.map((record) => [record.rank, record]));
  const ranks = Array.from({ length: world }, (_, rank) => rank);
  const absent = ranks.filter((rank) => !byRank.has(rank));
  const severity = failed.length === 0 ? "note" : "error";
  const findings = [
    ...flightCauses(positions, absent).map((cause) => causeFinding(cause, records.length, positions.waitText)),
    ...flightCycles(positions).map((cycle) => cycleFinding(cycle, positions.waitText)),
  ];
  return {
    findings: findings.map((finding) => ({ ...finding, severity })),
    ranks: ranks.map((rank) => rankLines(rank, byRank.get(rank), positions)),
  };
}

function rankLines(rank: number, record: FlightRecord | undefined, positions: FlightPositions): FlightRank {
  if (record === undefined) return { rank, text: `rank ${rank}: no record`, reason: null, streams: [] };
  const { run, finished, posted, commands, reason } = record;
  const own = positions.unfinished.filter((each) => each.record === record);
  const used = [...new Set(commands.map(({ stream }) => stream))].toSorted((a, b) => a - b);
  const progress =
    run === 0
      ? "has begun no run"
      : finished === run
        ? `has ended run ${run}`
        : `in run ${run}, ${posted} of ${commands.length} commands posted`;
  return {
    rank,
    text: `rank ${rank}: ${progress}`,
    reason,
    streams: used.map((stream) => {
      const open = own.find((each) => each.stream === stream);
      const state = open === undefined ? "has ended" : openText(open, positions);
      return { stream, text: `${at(record.streams, stream)}: ${state}`, last: lastSteps(record, stream) };
    }),
  };
}

function openText(stream: FlightStream, { targets, waitText }: FlightPositions): string {
  return targets(stream).length === 0 ? standingText(stream) : waitText(stream);
}

// Causes and cycles of waits as findings, in the form of the verifier's.

/** More notes would hide the pattern. */
const mostNotes = 8;

/** A stream's wait in words. */
type WaitText = (stream: FlightStream) => string;

/** `records`: of how many ranks there is one. */
function causeFinding({ targets, waiters }: FlightCause, records: number, waitText: WaitText): Diagnostic {
  const target = at(targets, 0);
  const many = targets.length > 1;
  const who = ranksText(targets.map(rankOf));
  const waiting =
    waiters.length === 0
      ? ""
      : `: ${counted(waiters.length, "stream")} of ${ranksText(waiters.map(({ record }) => record.rank))} ${waiters.length === 1 ? "waits" : "wait"} for ${many ? "them" : "it"}`;
  const expected = waiters[0] === undefined ? {} : { expected: sideOf(waiters[0]) };
  const notes = [
    ...targets.slice(1, mostNotes).flatMap((each) => (each.kind === "stream" ? [noteOf(each.stream)] : [])),
    ...waiters.slice(0, mostNotes).map((waiter) => `${streamText(waiter)} ${waitText(waiter)}`),
    ...(waiters.length > mostNotes ? [`and ${waiters.length - mostNotes} more wait`] : []),
  ];
  switch (target.kind) {
    case "absent":
      return {
        code: "rank-failed",
        message: `${who} ${many ? "have" : "has"} left no record${waiting}`,
        found: `records of ${counted(records, "rank")}`,
        expected: "one of each rank; a process that was killed or stopped writes none",
        help: `look for the end of ${who}: ${many ? "their" : "its"} own message, or the system's out-of-memory killer`,
        notes,
      };
    case "idle":
      return {
        code: "rank-behind",
        message: `${who} ${many ? "have" : "has"} not begun run ${target.record.run + 1}${waiting}`,
        found: `${who} ${many ? "have" : "has"} ended run ${target.record.run}`,
        ...expected,
        help: `look at what the host of ${who} does between two runs`,
        notes,
      };
    case "never":
      return {
        code: "rank-behind",
        message: `${who} ${many ? "have" : "has"} no command that ends a wait${waiting}`,
        found: waiters[0] === undefined ? "" : noteOf(waiters[0]),
        ...expected,
        help: "let braid verify FILE find the signal that the program lacks",
        notes,
      };
    case "stream":
      return {
        code: "rank-behind",
        message: `${many ? who : streamText(target.stream)} ${many ? "are" : "is"} behind${waiting}`,
        place: placeOf(target.stream),
        found: noteOf(target.stream),
        ...expected,
        help: `look at what ${who} ${many ? "do" : "does"} there`,
        notes,
      };
  }
}

function cycleFinding(cycle: readonly FlightStream[], waitText: WaitText): Diagnostic {
  return {
    code: "stuck",
    message: `${counted(cycle.length, "stream")} ${cycle.length === 1 ? "waits for itself" : "wait for each other"}`,
    ...(cycle[0] === undefined ? {} : { place: placeOf(cycle[0]) }),
    found: [...cycle, ...cycle.slice(0, 1)].map(streamText).join(" waits for "),
    expected: "waits that another stream or rank can still satisfy",
    help: "post and wait in the same order on all ranks, and post before waiting; braid verify FILE shows where",
    notes: cycle.slice(0, mostNotes).map((stream) => `${streamText(stream)} ${waitText(stream)}`),
  };
}

function placeOf({ record, stream, next }: FlightStream): Place {
  const { statement } = at(record.commands, next);
  return { kind: "command", rank: record.rank, stream, text: at(record.statements, statement) };
}

function noteOf(stream: FlightStream): string {
  return `${streamText(stream)} ${standingText(stream)}`;
}

function sideOf({ record, next }: FlightStream): string {
  return `the other side of ${recordedCommandText(record, next)} on rank ${record.rank}`;
}

function ranksText(ranks: readonly number[]): string {
  const each = [...new Set(ranks)].toSorted((a, b) => a - b);
  return `rank${each.length === 1 ? "" : "s"} ${each.join(", ")}`;
}

// Why streams wait: each stream that waits is followed to what it waits for, until a rank or stream that waits for
// nothing, or a cycle.

/** Ranks or streams that wait for nothing and that streams of other ranks wait for, at the same place of each. */
interface FlightCause {
  /** All of one kind. */
  readonly targets: readonly FlightTarget[];
  /** The streams that wait for it, those that do so directly first. */
  readonly waiters: readonly FlightStream[];
}

/** `absent`: the ranks without a record. */
function flightCauses(positions: FlightPositions, absent: readonly number[]): readonly FlightCause[] {
  const waitersOf = reversed(positions);
  const groups = new Map<string, { readonly targets: FlightTarget[]; readonly waiters: Set<FlightStream> }>();
  const add = (target: FlightTarget, waiters: readonly FlightStream[]): void => {
    const key = groupOf(target);
    const group = groups.get(key) ?? { targets: [], waiters: new Set() };
    if (!group.targets.some((known) => isSame(known, target))) group.targets.push(target);
    for (const waiter of waiters) group.waiters.add(waiter);
    groups.set(key, group);
  };
  for (const rank of absent) add({ kind: "absent", rank }, []);
  for (const waiter of positions.unfinished) {
    for (const target of positions.targets(waiter)) {
      if (target.kind !== "stream") add(target, [waiter]);
      else if (positions.targets(target.stream).length === 0 && isAwaitedElsewhere(target.stream, waitersOf))
        add(target, [waiter]);
    }
  }
  return [...groups.values()].map(({ targets, waiters }) => ({
    targets,
    waiters: [...closure([...waiters], waitersOf)],
  }));
}

type WaitersOf = ReadonlyMap<FlightStream, readonly FlightStream[]>;

function reversed({ unfinished, targets }: FlightPositions): WaitersOf {
  const waiters = new Map<FlightStream, FlightStream[]>(unfinished.map((stream) => [stream, []]));
  for (const waiter of unfinished)
    for (const target of targets(waiter)) if (target.kind === "stream") waiters.get(target.stream)?.push(waiter);
  return waiters;
}

/** `streams` and all that wait for them, however indirectly. */
function closure(streams: readonly FlightStream[], waitersOf: WaitersOf): ReadonlySet<FlightStream> {
  const reached = new Set(streams);
  for (const stream of reached) for (const waiter of waitersOf.get(stream) ?? []) reached.add(waiter);
  return reached;
}

/** A stream that only its own rank waits for is at work, but no rank is missing. */
function isAwaitedElsewhere(stream: FlightStream, waitersOf: WaitersOf): boolean {
  return [...closure([stream], waitersOf)].some(({ record }) => record !== stream.record);
}

function groupOf(target: FlightTarget): string {
  if (target.kind !== "stream") return `${target.kind} ${target.kind === "idle" ? target.record.run : ""}`;
  const { record, stream, next } = target.stream;
  const { kind, statement } = at(record.commands, next);
  return `${at(record.streams, stream)} ${kind} ${at(record.statements, statement)} ${record.run}`;
}

function isSame(a: FlightTarget, b: FlightTarget): boolean {
  if (a.kind === "stream" || b.kind === "stream")
    return a.kind === "stream" && b.kind === "stream" && a.stream === b.stream;
  return rankOf(a) === rankOf(b);
}

function rankOf(target: FlightTarget): number {
  switch (target.kind) {
    case "stream":
      return target.stream.record.rank;
    case "idle":
      return target.record.rank;
    case "absent":
    case "never":
      return target.rank;
  }
}

/** Cycles of streams that wait for one another. */
function flightCycles({ unfinished, targets }: FlightPositions): readonly (readonly FlightStream[])[] {
  const seen = new Set<FlightStream>();
  const cycles: (readonly FlightStream[])[] = [];
  for (const start of unfinished) {
    const path: FlightStream[] = [];
    for (let next: FlightStream | undefined = start; next !== undefined && !seen.has(next);) {
      seen.add(next);
      path.push(next);
      const all: readonly FlightTarget[] = targets(next);
      const [first] = all.flatMap((target) => (target.kind === "stream" ? [target.stream] : []));
      if (first !== undefined && path.includes(first)) cycles.push(path.slice(path.indexOf(first)));
      next = first;
    }
  }
  return cycles;
}

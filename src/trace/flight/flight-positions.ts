/** Where the streams of all ranks stand by their flight records, and what each of them waits for. */
import { at } from "../../support/invariant.ts";
import type { FlightPlace, FlightRecord } from "./flight-record.ts";

/**
 * What a stream waits for: a stream that is not there yet, a rank that has not begun the run, one without a record, or
 * a command that the rank does not have.
 */
export type FlightTarget =
  | { readonly kind: "stream"; readonly stream: FlightStream }
  | { readonly kind: "idle"; readonly record: FlightRecord }
  | { readonly kind: "absent"; readonly rank: number }
  | { readonly kind: "never"; readonly rank: number };

export interface FlightPositions {
  /** All that have not ended, by rank and stream. */
  readonly unfinished: readonly FlightStream[];
  /** What keeps the stream's next command from ending; none if nothing does. */
  readonly targets: (stream: FlightStream) => readonly FlightTarget[];
  /** `waits at command 2 (transfer) of: ... for rank 1 at: ...`. */
  readonly waitText: (stream: FlightStream) => string;
}

export function flightPositions(records: readonly FlightRecord[]): FlightPositions {
  const byRank = new Map(records.map((record) => [record.rank, record]));
  const unfinished = records.flatMap((record) => (isIdle(record) ? [] : openStreams(record)));
  const openOf = new Map<number, FlightStream[]>();
  for (const each of unfinished) openOf.set(each.record.rank, [...(openOf.get(each.record.rank) ?? []), each]);
  const isDone = ([rank, command]: FlightPlace, run: number, arrivalIsEnough: boolean): boolean => {
    const record = byRank.get(rank);
    if (command < 0 || record === undefined || record.run < run) return false;
    if (record.run > run || record.finished >= run) return true;
    const { begun, ended } = at(record.reached, record.commands[command]?.stream ?? 0);
    return command <= ended || command < begun || (arrivalIsEnough && command === begun);
  };
  const targetOf = ([rank, command]: FlightPlace): FlightTarget => {
    const record = byRank.get(rank);
    if (command < 0) return { kind: "never", rank };
    if (record === undefined) return { kind: "absent", rank };
    const own = openOf.get(rank) ?? [];
    const open = own.find(({ stream }) => stream === record.commands[command]?.stream) ?? own[0];
    return open === undefined ? { kind: "idle", record } : { kind: "stream", stream: open };
  };
  const missing = new Map(
    unfinished.map((stream) => {
      const { record, next } = stream;
      const { kind } = at(record.commands, next);
      const needs = needsOf(stream);
      // A transfer waits once its own rank has arrived.
      if (kind === "transfer" && at(record.reached, stream.stream).begun !== next) return [stream, []];
      return [stream, needs.filter((place) => !isDone(place, record.run, kind === "transfer"))];
    }),
  );
  const targetsOf = new Map([...missing].map(([stream, places]) => [stream, places.map(targetOf)]));
  return {
    unfinished,
    targets: (stream) => targetsOf.get(stream) ?? [],
    waitText: (stream) => {
      const whom = (missing.get(stream) ?? []).map((place) => placeText(stream, place, byRank.get(place[0])));
      return `waits at ${recordedCommandText(stream.record, stream.next)} for ${[...new Set(whom)].join("; ")}${sinceText(stream)}`;
    },
  };
}

/** On a GPU, a stream reports once before consecutive waits. */
function needsOf({ record, stream, next }: FlightStream): readonly FlightPlace[] {
  const { kind, needs = [] } = at(record.commands, next);
  if (kind !== "waitSignal" || !at(record.reached, stream).orLater) return needs;
  const own = record.commands.slice(next).filter((command) => command.stream === stream);
  const end = own.findIndex((command) => command.kind !== "waitSignal");
  return own.slice(0, end < 0 ? own.length : end).flatMap((command) => command.needs ?? []);
}

/** The stream of the same rank, or the other rank, with its statement unless both are at the same one. */
function placeText(
  { record, next }: FlightStream,
  [rank, command]: FlightPlace,
  other: FlightRecord | undefined,
): string {
  const needed = other?.commands[command];
  if (other === undefined || needed === undefined) return `rank ${rank}`;
  if (other === record) return at(record.streams, needed.stream);
  const own = at(record.statements, at(record.commands, next).statement);
  const theirs = at(other.statements, needed.statement);
  return own === theirs ? `rank ${rank}` : `rank ${rank} at: ${theirs}`;
}

/** Whether the rank is between two runs. */
function isIdle({ run, finished }: FlightRecord): boolean {
  return finished === run;
}

function openStreams(record: FlightRecord): readonly FlightStream[] {
  return record.reached.flatMap(({ begun, ended }, stream) => {
    const next =
      begun > ended ? begun : record.commands.findIndex((each, index) => each.stream === stream && index > ended);
    return next < 0 ? [] : [{ record, stream, next }];
  });
}

// A stream's standing in words.

/** A stream that has not ended its run. */
export interface FlightStream {
  readonly record: FlightRecord;
  readonly stream: number;
  /** The first command that it is not known to have ended. */
  readonly next: number;
}

/** `rank 0, worker 1`. */
export function streamText({ record, stream }: FlightStream): string {
  return `rank ${record.rank}, ${at(record.streams, stream)}`;
}

/** `command 12 (transfer) of: Communication 0 (...)`. */
export function recordedCommandText({ commands, statements }: FlightRecord, command: number): string {
  const { kind, statement } = at(commands, command);
  return `command ${command} (${kind}) of: ${at(statements, statement)}`;
}

/** `has begun command 12 (launch) of: T2 = ... 29.8 s ago`. */
export function standingText({ record, stream, next }: FlightStream): string {
  const { begun, ended, orLater, ago: seconds } = at(record.reached, stream);
  const ago = seconds === null ? "" : `, ${seconds} s ago`;
  const text = recordedCommandText(record, next);
  if (begun > ended) return orLater ? `has reported ${text} last` : `has begun ${text}${ago}`;
  if (next >= record.posted) return `has not been given ${text}`;
  if (ended < 0) return orLater ? `has reported no command yet` : `has not begun ${text}`;
  if (orLater) return `has reported ${recordedCommandText(record, ended)} last`;
  return `is before ${text}, and ended the command before${ago}`;
}

/** `, 0.4 s after its last step`. */
function sinceText({ record, stream }: FlightStream): string {
  const { ago } = at(record.reached, stream);
  return ago === null ? "" : `, ${ago} s after its last step`;
}

/** The last commands that a stream has begun or ended, oldest first. */
export function lastSteps(record: FlightRecord, stream: number): readonly string[] {
  return at(record.last, stream).map(({ step, command }) => `${step} ${recordedCommandText(record, command)}`);
}

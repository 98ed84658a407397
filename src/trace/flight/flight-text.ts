/** A stream's standing in words. */
import { at } from "../../support/invariant.ts";
import type { FlightRecord } from "./flight-record.ts";

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
export function commandText({ commands, statements }: FlightRecord, command: number): string {
  const { kind, statement } = at(commands, command);
  return `command ${command} (${kind}) of: ${at(statements, statement)}`;
}

/** `has begun command 12 (launch) of: T2 = ... 29.8 s ago`. */
export function standingText({ record, stream, next }: FlightStream): string {
  const { begun, ended, orLater, ago: seconds } = at(record.reached, stream);
  const ago = seconds === null ? "" : `, ${seconds} s ago`;
  const text = commandText(record, next);
  if (begun > ended) return orLater ? `has reported ${text} last` : `has begun ${text}${ago}`;
  if (next >= record.posted) return `has not been given ${text}`;
  if (ended < 0) return orLater ? `has reported no command yet` : `has not begun ${text}`;
  if (orLater) return `has reported ${commandText(record, ended)} last`;
  return `is before ${text}, and ended the command before${ago}`;
}

/** `, 0.4 s after its last step`. */
export function sinceText({ record, stream }: FlightStream): string {
  const { ago } = at(record.reached, stream);
  return ago === null ? "" : `, ${ago} s after its last step`;
}

/** The last commands that a stream has begun or ended, oldest first. */
export function lastSteps(record: FlightRecord, stream: number): readonly string[] {
  return at(record.last, stream).map(({ step, command }) => `${step} ${commandText(record, command)}`);
}

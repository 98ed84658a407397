/** Causes and cycles of waits as findings, in the form of the verifier's. */
import type { Diagnostic, Place } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { counted } from "../../support/wording.ts";
import { type FlightCause, rankOf } from "./flight-causes.ts";
import { commandText, type FlightStream, standingText, streamText } from "./flight-text.ts";

/** More notes would hide the pattern. */
const mostNotes = 8;

/** A stream's wait in words. */
type WaitText = (stream: FlightStream) => string;

/** `records`: of how many ranks there is one. */
export function causeFinding({ targets, waiters }: FlightCause, records: number, waitText: WaitText): Diagnostic {
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

export function cycleFinding(cycle: readonly FlightStream[], waitText: WaitText): Diagnostic {
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
  return `the other side of ${commandText(record, next)} on rank ${record.rank}`;
}

function ranksText(ranks: readonly number[]): string {
  const each = [...new Set(ranks)].toSorted((a, b) => a - b);
  return `rank${each.length === 1 ? "" : "s"} ${each.join(", ")}`;
}

/** Compares the flight records of all ranks of a run: where each stream stands, and which rank is missing where. */
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { flightCauses, flightCycles } from "./flight-causes.ts";
import { causeFinding, cycleFinding } from "./flight-findings.ts";
import { flightPositions, type FlightPositions } from "./flight-positions.ts";
import type { FlightRecord } from "./flight-record.ts";
import { type FlightStream, lastSteps, standingText } from "./flight-text.ts";

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

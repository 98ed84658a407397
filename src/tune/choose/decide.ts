/**
 * Decides between simulated schedules: takes the fastest one that is surely faster than the serial form, and gives the
 * reason.
 */
import { at } from "../../support/invariant.ts";
import type { ScheduleCandidate } from "./candidates.ts";

/** A schedule as it was simulated. */
export interface Considered {
  readonly candidate: ScheduleCandidate;
  /** Predicted time of a run, with the corrections for known errors of the model. */
  readonly milliseconds: number;
  /** What the simulation assumed because the profile lacks it. */
  readonly assumptions: readonly string[];
  /** The part of its time by which the candidate has to beat the serial form. */
  readonly margin: number;
}

/** Schedules that were not simulated, because a run of any of them takes longer than one that was. */
export interface LeftOut {
  /** What they start from, such as `get` or `peers' memory`. */
  readonly name: string;
  /** Milliseconds that the fastest of them takes at least. */
  readonly least: number;
}

export interface Decision<T extends Considered> {
  readonly picked: T;
  /** All schedules, the fastest first. */
  readonly considered: readonly Considered[];
  /** One line: what was picked, its predicted time, what it was compared with, and what the predictions assume. */
  readonly reason: string;
}

/** Picks among at least one schedule, of one program or of several that compute the same. */
export function decide<T extends Considered>(all: readonly T[], leftOut: readonly LeftOut[] = []): Decision<T> {
  const ordered = all.toSorted((a, b) => a.milliseconds - b.milliseconds);
  const picked = fastestWorthIt(ordered);
  // Drops the callers' other fields, because Programs are large.
  const considered = ordered.map(({ candidate, milliseconds, assumptions, margin }) => ({
    candidate,
    milliseconds,
    assumptions,
    margin,
  }));
  return { picked, considered, reason: reasonFor(picked.candidate, considered, leftOut) };
}

/** The serial form, unless another schedule beats it by that schedule's margin. */
function fastestWorthIt<T extends Considered>(ordered: readonly T[]): T {
  const serial = ordered.find(({ candidate }) => isSerial(candidate));
  if (serial === undefined) return at(ordered, 0);
  return ordered.find(({ milliseconds, margin }) => milliseconds * (1 + margin) < serial.milliseconds) ?? serial;
}

export function isSerial({ lowering }: ScheduleCandidate): boolean {
  return lowering.overlap === false && lowering.backend !== "cuda";
}

function reasonFor(picked: ScheduleCandidate, ordered: readonly Considered[], leftOut: readonly LeftOut[]): string {
  const timeOf = (candidate: ScheduleCandidate): string => {
    const found = ordered.find((each) => each.candidate === candidate);
    return timeText(found?.milliseconds ?? NaN);
  };
  const candidates = ordered.map(({ candidate }) => candidate);
  const serial = candidates.find(isSerial);
  const next = candidates.find((each) => each !== picked && each !== serial);
  const against = [
    ...(serial === undefined || serial === picked ? [] : [`serial ${timeOf(serial)}`]),
    ...(next === undefined ? [] : [`next ${next.name} ${timeOf(next)}`]),
  ];
  const rank = picked === candidates[0] ? "the fastest" : "nearly the fastest";
  const text = `${picked.name}: ${timeOf(picked)}, ${rank} of ${candidates.length} simulated schedules`;
  const assumed = [...new Set(ordered.flatMap(({ assumptions }) => assumptions))].toSorted();
  return [
    text,
    ...(against.length === 0 ? [] : [against.join(", ")]),
    ...leftOut.map(({ name, least }) => `${name} left out, at least ${timeText(least)}`),
    ...(assumed.length === 0 ? [] : [`assumed: ${assumed.join(", ")}`]),
  ].join("; ");
}

export function timeText(milliseconds: number): string {
  return `${milliseconds.toPrecision(3)} ms`;
}

/**
 * A descent over rows of choices, whose combinations are too many to simulate. From each root it starts with the usual
 * choice of every row, and goes on, row after row, with the alternative that is the fastest so far.
 */
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import type { Choice, ChoiceRow } from "./candidates.ts";

/** One choice of each row. */
export interface ChoiceCombination {
  /** Names of the choices that are not the usual ones. */
  readonly names: readonly string[];
  readonly schedule: ScheduleOptions;
}

/** A Program that the search starts with. */
export interface Root<T> {
  readonly of: T;
  /** The choices that apply to it. */
  readonly rows: readonly ChoiceRow[];
}

/** `tryOut` returns the time of a combination; null for one that makes the same Program as an earlier one. */
export function searchSchedules<T>(
  roots: readonly Root<T>[],
  tryOut: (of: T, combination: ChoiceCombination) => number | null,
): void {
  for (const { of, rows } of roots) {
    let fastest = rows.map(([usual]) => usual);
    let least = tryOut(of, combine(fastest));
    if (least === null) continue;
    for (const [row, [, ...others]] of rows.entries()) {
      for (const choices of others.map((other) => fastest.with(row, other))) {
        const time = tryOut(of, combine(choices));
        if (time !== null && time < least) [fastest, least] = [choices, time];
      }
    }
  }
}

function combine(choices: readonly Choice[]): ChoiceCombination {
  return {
    names: choices.flatMap(({ name }) => (name === "" ? [] : [name])),
    schedule: choices.reduce<ScheduleOptions>((joined, { schedule }) => ({ ...joined, ...schedule }), {}),
  };
}

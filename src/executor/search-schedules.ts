/**
 * A beam search over independent choices: all together are too many to simulate. From the usual one of each, row after row, every alternative is tried with each of
 * the best so far, and the best of all of these go on.
 */
import { requireSchedule, rewriteOrder, applySchedule, type ScheduleOptions } from "../schedule/schedule-options.ts";
import type { Program } from "../commands/program.ts";
import type { Choice, ChoiceRow } from "./schedule-candidates.ts";

/** One choice of each row. */
export interface Combination {
  /** Of those that are not the usual ones. */
  readonly names: readonly string[];
  readonly schedule: ScheduleOptions;
}

interface Tried {
  /** Per row. */
  readonly choices: readonly Choice[];
  readonly time: number;
}

/** So many go on from row to row. */
const beamWidth = 4;

/** `tryOut` says what a combination takes; null for one that is the same as another before. */
export function searchSchedules(rows: readonly ChoiceRow[], tryOut: (combination: Combination) => number | null): void {
  const timeOf = (choices: readonly Choice[]): Tried | null => {
    const time = tryOut(combine(choices));
    return time === null ? null : { choices, time };
  };
  const first = timeOf(rows.map(([usual]) => usual));
  let beam = first === null ? [] : [first];
  for (const [row, [, ...others]] of rows.entries()) {
    const found = beam.flatMap(({ choices }) => others.flatMap((other) => timeOf(choices.with(row, other)) ?? []));
    beam = [...beam, ...found].sort((a, b) => a.time - b.time).slice(0, beamWidth);
  }
}

function combine(choices: readonly Choice[]): Combination {
  return {
    names: choices.flatMap(({ name }) => (name === "" ? [] : [name])),
    schedule: choices.reduce<ScheduleOptions>((joined, { schedule }) => ({ ...joined, ...schedule }), {}),
  };
}

/** Applies schedules to one Program, each rewrite of those that begin alike once. */
export function scheduleTree(program: Program): (schedule: ScheduleOptions) => Program {
  const known = new Map<string, Program>();
  return (schedule) => {
    requireSchedule(schedule);
    let [key, left] = ["", program];
    for (const name of rewriteOrder) {
      const value = schedule[name];
      if (value === undefined) continue;
      key += `${name} ${JSON.stringify(value)} `;
      const next = known.get(key) ?? applySchedule(left, { [name]: value });
      known.set(key, next);
      left = next;
    }
    return left;
  };
}

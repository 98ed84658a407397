/**
 * A beam search over independent choices: all together are too many to simulate. From the usual one of each, row after row, every alternative is tried with each of
 * the best so far, and the best of all of these go on.
 */
import { applySchedule, rewriteOrder, type ScheduleOptions } from "../../schedule/schedule.ts";
import type { Program } from "../../commands/program.ts";
import type { Choice, ChoiceRow } from "./candidates.ts";

/** One choice of each row. */
export interface Combination {
  /** Of those that are not the usual ones. */
  readonly names: readonly string[];
  readonly schedule: ScheduleOptions;
}

/** A Program that schedules begin with. */
export interface Root<T> {
  readonly of: T;
  /** What applies to it; as many rows as the other roots have. */
  readonly rows: readonly ChoiceRow[];
}

interface Tried<T> {
  readonly root: Root<T>;
  /** Per row. */
  readonly choices: readonly Choice[];
  readonly time: number;
}

/** So many go on from row to row. */
const beamWidth = 5;

/** `tryOut` says what a combination takes; null for one that is the same as another before. */
export function searchSchedules<T>(
  roots: readonly Root<T>[],
  tryOut: (of: T, combination: Combination) => number | null,
): void {
  const tried = (root: Root<T>, choices: readonly Choice[]): readonly Tried<T>[] => {
    const time = tryOut(root.of, combine(choices));
    return time === null ? [] : [{ root, choices, time }];
  };
  let beam: readonly Tried<T>[] = roots.flatMap((root) =>
    tried(
      root,
      root.rows.map(([usual]) => usual),
    ),
  );
  const rowCount = Math.max(0, ...roots.map(({ rows }) => rows.length));
  for (let row = 0; row < rowCount; row++) {
    const found = beam.flatMap(({ root, choices }) => {
      const [, ...others] = root.rows[row] ?? [];
      return others.flatMap((other) => tried(root, choices.with(row, other)));
    });
    beam = best([...beam, ...found]);
  }
}

/** Of those that take the same from one root the first: they differ in nothing that matters so far. */
function best<T>(beam: readonly Tried<T>[]): readonly Tried<T>[] {
  const distinct = beam.filter(
    ({ root, time }, i) => beam.findIndex((other) => other.root === root && other.time === time) === i,
  );
  return distinct.sort((a, b) => a.time - b.time).slice(0, beamWidth);
}

function combine(choices: readonly Choice[]): Combination {
  return {
    names: choices.flatMap(({ name }) => (name === "" ? [] : [name])),
    schedule: choices.reduce<ScheduleOptions>((joined, { schedule }) => ({ ...joined, ...schedule }), {}),
  };
}

/** Applies schedules to one Program: no rewrite twice to the same one, whatever the schedules. */
export function scheduleTree(program: Program): (schedule: ScheduleOptions) => Program {
  const known = new Map<Program, Map<string, Program>>();
  return (schedule) => {
    return rewriteOrder.reduce((left, name) => {
      const value = schedule[name];
      if (value === undefined || value === false) return left;
      const option = { [name]: value };
      const rewritten = known.get(left) ?? new Map<string, Program>();
      known.set(left, rewritten);
      const key = JSON.stringify(option);
      const next = rewritten.get(key) ?? applySchedule(left, option);
      rewritten.set(key, next);
      return next;
    }, program);
  };
}

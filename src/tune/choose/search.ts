/**
 * A beam search over rows of choices, whose combinations are too many to simulate. It starts with the usual choice of
 * every row. Row after row, it tries every alternative with each of the best combinations so far, and keeps the best of
 * all these.
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
  /** The choices that apply to it; all roots have the same number of rows. */
  readonly rows: readonly ChoiceRow[];
}

interface Tried<T> {
  readonly root: Root<T>;
  /** One per row. */
  readonly choices: readonly Choice[];
  readonly time: number;
}

/** Combinations that are kept from row to row. */
const beamWidth = 5;

/** `tryOut` returns the time of a combination; null for one that makes the same Program as an earlier one. */
export function searchSchedules<T>(
  roots: readonly Root<T>[],
  tryOut: (of: T, combination: ChoiceCombination) => number | null,
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

/** Of combinations of one root with equal times only the first: so far they differ in nothing that matters. */
function best<T>(beam: readonly Tried<T>[]): readonly Tried<T>[] {
  const distinct = beam.filter(
    ({ root, time }, i) => beam.findIndex((other) => other.root === root && other.time === time) === i,
  );
  return distinct.sort((a, b) => a.time - b.time).slice(0, beamWidth);
}

function combine(choices: readonly Choice[]): ChoiceCombination {
  return {
    names: choices.flatMap(({ name }) => (name === "" ? [] : [name])),
    schedule: choices.reduce<ScheduleOptions>((joined, { schedule }) => ({ ...joined, ...schedule }), {}),
  };
}

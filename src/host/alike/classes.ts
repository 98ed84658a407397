/**
 * Classes of ranks: what is done for one rank of a class holds for all of them. Lowering and recording ask for
 * everything that depends on the rank, for all ranks of a class at once. A decision must be the same on all of them;
 * where it is not, the ranks are split by what each decided, and the work begins again with each part. A class thus
 * follows from coordinates in meshes, hosts and lengths of shares, as far as the program asks for them.
 */
import { at, pushTo } from "../../support/invariant.ts";

/** Ranks of a class decide differently. */
export class UnlikeError extends Error {
  /** By position among the ranks: equal numbers for those that decided alike. Null if ranks have to be asked alone. */
  readonly parts: readonly number[] | null;

  constructor(parts: readonly number[] | null) {
    super("the ranks are not alike");
    this.parts = parts;
  }
}

/** The value that all ranks of a class have. Throws UnlikeError if they differ. */
export function agreed<T>(values: readonly T[], isSame: (a: T, b: T) => boolean = Object.is): T {
  const first = at(values, 0);
  if (values.every((value) => value === first || isSame(value, first))) return first;
  const distinct: T[] = [];
  throw new UnlikeError(
    values.map((value) => {
      const known = distinct.findIndex((other) => other === value || isSame(other, value));
      return known >= 0 ? known : distinct.push(value) - 1;
    }),
  );
}

export interface RankClass<T> {
  /** Ascending. */
  readonly ranks: readonly number[];
  /** Null for a rank that has to do the work alone. */
  readonly made: T | null;
}

/** Ranks that had to be split more often have little in common. */
const mostSplits = 12;

/** Attempts the work for all ranks at once, and for each part where they differ. `attempt` throws UnlikeError. */
export function byClass<T>(
  ranks: readonly number[],
  attempt: (ranks: readonly number[]) => T | null,
  splits = 0,
): readonly RankClass<T>[] {
  const alone = (): readonly RankClass<T>[] => ranks.map((rank) => ({ ranks: [rank], made: null }));
  if (ranks.length < 2) return alone();
  try {
    const made = attempt(ranks);
    return made === null ? alone() : [{ ranks, made }];
  } catch (error) {
    if (!(error instanceof UnlikeError)) throw error;
    const { parts } = error;
    if (parts === null || splits === mostSplits) return alone();
    return partitionBy(ranks, parts).flatMap((part) => byClass(part, attempt, splits + 1));
  }
}

/** The ranks with equal numbers, in order of the first of each. */
export function partitionBy(ranks: readonly number[], numbers: readonly unknown[]): readonly (readonly number[])[] {
  const parts = new Map<unknown, number[]>();
  for (const [position, rank] of ranks.entries()) {
    const number = at(numbers, position);
    pushTo(parts, number, rank);
  }
  return [...parts.values()];
}

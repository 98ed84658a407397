/**
 * A recording for several ranks at once. The recorder does not know which of them it records: `options.rank` and the
 * names of the rank throw. What differs between the ranks is asked for here, for all of them: peers, and offsets of
 * slices. Every decision must be the same on all ranks, otherwise each is recorded alone. alike-lists.ts makes their
 * lists of the one.
 */
import type { View } from "../../commands/view.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { scalarOps } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";

export interface Alike {
  readonly ranks: readonly number[];
  /** The operands of commands with an operand that moves, by the command's position. */
  readonly moving: Map<number, MovingOperands>;
  /** By pair: the peer of each rank. */
  readonly peers: (readonly number[])[];
}

export interface MovingOperands {
  readonly inputs: readonly RankView[];
  readonly outputs: readonly RankView[];
}

/** A view of the first rank. Views of views keep `moves`: they are made of `{ ...view }`. */
export interface RankView extends View {
  /** How many bytes further on the view begins on each of the ranks; absent if it is where it is on the first. */
  readonly moves?: readonly number[];
}

/** The ranks differ in more than peers and offsets. */
export class UnlikeError extends Error {}

export function createAlike(ranks: readonly number[]): Alike {
  return { ranks, moving: new Map(), peers: [] };
}

/** The value that all ranks have. Throws UnlikeError if there is none. */
export function agreed<T>(values: readonly T[], isSame: (a: T, b: T) => boolean = Object.is): T {
  const first = at(values, 0);
  if (!values.every((value) => value === first || isSame(value, first))) throw new UnlikeError();
  return first;
}

/** Throws UnlikeError unless two views of one buffer are as far apart on all ranks. */
export function requireSameDistance(a: RankView, b: RankView): void {
  if (a.buffer !== b.buffer || a.moves === b.moves) return;
  if (a.moves?.every((bytes, i) => bytes === b.moves?.[i]) !== true) throw new UnlikeError();
}

/** Notes the operands of the command at `index`, if one of them moves. */
export function noteOperands({ moving }: Alike, index: number, operands: MovingOperands): void {
  const moves = [...operands.inputs, ...operands.outputs].some((view) => view.moves !== undefined);
  if (moves) moving.set(index, operands);
}

/** The view with other offsets, in bytes, on each rank. */
export function movedView(view: RankView, offsets: readonly number[]): RankView {
  const before = view.moves;
  return { ...view, moves: before === undefined ? offsets : offsets.map((bytes, i) => bytes + at(before, i)) };
}

/** The names of the rank in scalars. */
export const rankNames: ReadonlySet<string> = new Set(["rank", "deviceIdx.x"]);

/** A number, or a function of the rank for what depends on it. */
type RankValue = number | ((rank: number) => number);

/**
 * The value of the scalar on each rank. `lookup` has the values of names; undefined for those without one. Throws
 * UnlikeError for a value that is not a whole number.
 */
export function valuesOn(
  ranks: readonly number[],
  scalar: Scalar,
  lookup: (name: string) => RankValue | undefined,
): readonly number[] {
  const value = rankValue(scalar, lookup);
  const values = typeof value === "number" ? ranks.map(() => value) : ranks.map(value);
  if (!values.every((each) => Number.isSafeInteger(each))) throw new UnlikeError();
  return values;
}

function rankValue(scalar: Scalar, lookup: (name: string) => RankValue | undefined): RankValue {
  switch (scalar.kind) {
    case "constant":
      return scalar.value;
    case "symbol":
    case "named": {
      const known = lookup(scalar.name);
      if (known === undefined) throw new UnlikeError();
      return known;
    }
    case "binary": {
      const { evaluate } = scalarOps[scalar.op];
      const [lhs, rhs] = [rankValue(scalar.lhs, lookup), rankValue(scalar.rhs, lookup)];
      // 0 * -1 is -0, which is a different key.
      if (typeof lhs === "number") {
        return typeof rhs === "number" ? evaluate(lhs, rhs) + 0 : (rank) => evaluate(lhs, rhs(rank)) + 0;
      }
      return typeof rhs === "number"
        ? (rank) => evaluate(lhs(rank), rhs) + 0
        : (rank) => evaluate(lhs(rank), rhs(rank)) + 0;
    }
  }
}

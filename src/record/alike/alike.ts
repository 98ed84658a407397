/**
 * A recording for all ranks of a class at once. The recorder does not know which of them it records: `recordedRank` and the
 * names of the rank throw. What differs between the ranks is asked for here, for all of them: peers, teams, positions
 * in teams, and offsets of slices. Every decision must be the same on all ranks (host/alike/classes.ts). alike-lists.ts
 * makes their lists of the one.
 */
import type { PeerCollective, UnlinkedCommand } from "../../commands/command-list.ts";
import type { CommandStreamId, Origin, PointToPoint } from "../../commands/command.ts";
import { sameNumbers, type View } from "../../commands/view.ts";
import { agreed, UnlikeError } from "../../host/alike/classes.ts";
import type { RankRules } from "../../host/alike/rank-rules.ts";
import type { Statement } from "../../host/nodes.ts";
import { type Scalar, scalarOps } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";

export interface Alike {
  readonly ranks: readonly number[];
  /** How ranks have what differs between their host programs. */
  readonly rules: RankRules | null;
  /** The operands of launches and copies with an operand that moves, by the command's position. */
  readonly moving: Map<number, MovingOperands>;
  /** How other commands differ, by their position: the command of rank number k. */
  readonly varying: Map<number, (command: UnlinkedCommand, k: number) => UnlinkedCommand>;
  /** By pair: the peer of each rank. */
  readonly peers: (readonly number[])[];
  /** By collective in peers' memory: that of rank number k. */
  readonly collectives: ((k: number) => PeerCollective)[];
  /** The names of streams that differ. */
  readonly streamNames: Map<CommandStreamId, readonly string[]>;
  /** The statements that origins print. */
  readonly statements: Map<Origin, Statement>;
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

/** A send or receive on each rank that is recorded. */
export interface RankPointToPoint {
  readonly type: PointToPoint["type"];
  readonly peers: readonly number[];
  readonly view: View;
}

export function createAlike(ranks: readonly number[], rules: RankRules | null): Alike {
  return {
    ranks,
    rules,
    moving: new Map(),
    varying: new Map(),
    peers: [],
    collectives: [],
    streamNames: new Map(),
    statements: new Map(),
  };
}

/** Fails if two views of one buffer are not as far apart on all ranks. Throws UnlikeError. */
export function requireSameDistance(a: RankView, b: RankView): void {
  if (a.buffer !== b.buffer || a.moves === b.moves) return;
  const length = Math.max(a.moves?.length ?? 0, b.moves?.length ?? 0);
  agreed(Array.from({ length }, (_, k) => (a.moves?.[k] ?? 0) - (b.moves?.[k] ?? 0)));
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

export function viewOn(view: RankView, k: number): View {
  const { moves, ...fixed } = view;
  return moves === undefined ? view : { ...fixed, offset: view.offset + at(moves, k) };
}

/** The views of all ranks, which differ in where they begin, as one. */
export function viewOnEach(views: readonly View[]): View {
  const first = at(views, 0);
  agreed(views, (a, b) => a.buffer === b.buffer && a.dtype === b.dtype && sameElementOrder(a, b));
  const moves = views.map(({ offset }) => offset - first.offset);
  return moves.some((bytes) => bytes !== 0) ? movedView(first, moves) : first;
}

function sameElementOrder(a: View, b: View): boolean {
  return sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides);
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
  { ranks, rules }: Pick<Alike, "ranks" | "rules">,
  scalar: Scalar,
  lookup: (name: string) => RankValue | undefined,
): readonly number[] {
  const value = rankValue(scalar, rules, lookup);
  const values = typeof value === "number" ? ranks.map(() => value) : ranks.map(value);
  if (!values.every((each) => Number.isSafeInteger(each))) throw new UnlikeError(null);
  return values;
}

function rankValue(
  scalar: Scalar,
  rules: RankRules | null,
  lookup: (name: string) => RankValue | undefined,
): RankValue {
  const rule = rules?.scalars.get(scalar);
  if (rule !== undefined) {
    return (rank) => rule.valueOn(rank, (inner) => valueAt(rankValue(inner, rules, lookup), rank));
  }
  switch (scalar.kind) {
    case "constant":
      return scalar.value;
    case "symbol":
    case "named": {
      const known = lookup(scalar.name);
      if (known === undefined) throw new UnlikeError(null);
      return known;
    }
    case "binary": {
      const { evaluate } = scalarOps[scalar.op];
      const [lhs, rhs] = [rankValue(scalar.lhs, rules, lookup), rankValue(scalar.rhs, rules, lookup)];
      // 0 * -1 is -0, which is a different key.
      if (typeof lhs === "number" && typeof rhs === "number") return evaluate(lhs, rhs) + 0;
      return (rank) => evaluate(valueAt(lhs, rank), valueAt(rhs, rank)) + 0;
    }
  }
}

function valueAt(value: RankValue, rank: number): number {
  return typeof value === "number" ? value : value(rank);
}

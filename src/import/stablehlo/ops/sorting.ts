/** Sorting: the order of some operands, and all operands in it. `top_k` takes the first elements of an order. */
import { argsort, cast, gather, topk } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { number, requireAxes } from "../read-attributes.ts";
import { dtypeIn, scalarOf, splatOf, type MlirValue, ownWhole } from "../value.ts";
import { firstRegion, madeValues, operandAt, type ReadRow, type Reading, refuse, resultType } from "./reading.ts";

function sortValues(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const { shape } = operandAt(reading).type;
  const dimension = number(reader, op, ["dimension"], -1);
  const axis = dimension < 0 ? dimension + shape.length : dimension;
  requireAxes(reader, op, [axis], shape.length);
  const keys = keysOf(reading);
  return madeValues(reading, () => {
    const tensors = operands.map((value) => ownWhole(reading, value));
    // Stable sorts, from the last key to the first.
    return keys.reduceRight<readonly TensorView[]>((sorted, { operand, descending }) => {
      const order = argsort(at(sorted, operand), axis, { descending });
      return sorted.map((tensor) => gather(tensor, axis, order));
    }, tensors);
  });
}

interface SortKey {
  readonly operand: number;
  readonly descending: boolean;
}

/**
 * The operands that the region compares, the first one first: each is tried alone, then pairs of them that disagree, and
 * in the end all of them together.
 */
function keysOf(reading: Reading): readonly SortKey[] {
  const { reader, operands } = reading;
  const region = firstRegion(reading);
  const isFirst = (left: ReadonlySet<number>, right: ReadonlySet<number>): boolean => {
    const scalars = operands.flatMap(({ type }, i) =>
      [left, right].map((side) => scalarOf(reader, type.element, side.has(i) ? 1 : 0)),
    );
    const [result] = reading.region(region, scalars);
    return result !== undefined && Number(splatOf(result) ?? 0) === 1;
  };
  const none = new Set<number>();
  const keys = operands.flatMap((_, operand): readonly SortKey[] => {
    const [less, more] = [isFirst(none, new Set([operand])), isFirst(new Set([operand]), none)];
    return less === more ? [] : [{ operand, descending: more }];
  });
  /** Elements that differ in these keys alone, the first of which decides for the left. */
  const wins = (won: readonly SortKey[], lost: readonly SortKey[]): boolean => {
    const larger = (left: boolean): ReadonlySet<number> =>
      new Set(
        [
          ...won.filter(({ descending }) => descending === left),
          ...lost.filter(({ descending }) => descending !== left),
        ].map(({ operand }) => operand),
      );
    return isFirst(larger(true), larger(false));
  };
  const ordered = keys.toSorted((a, b) => (wins([a], [b]) ? -1 : 1));
  const isLexicographic = ordered.every((key, i) => {
    const rest = ordered.slice(i + 1);
    return wins([key], rest) && wins([key, ...rest], []) && !wins(rest, [key]);
  });
  if (keys.length > 0 && isLexicographic && !isFirst(none, none)) return ordered;
  return refuse(reading, "an order of another form", "comparisons of operands by LT or GT, one after the other");
}

/** `%values, %indices = chlo.top_k(%x, k = 2)`, along the last axis. */
function topK(reading: Reading): readonly MlirValue[] {
  const { reader, op } = reading;
  const value = operandAt(reading);
  const k = number(reader, op, ["k"]);
  const axis = value.type.shape.length - 1;
  return madeValues(reading, () => {
    const { values, indices } = topk(ownWhole(reading, value), k, axis);
    return [values, cast(indices, dtypeIn(resultType(reading, 1)))];
  });
}

export const sortingRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.sort": { read: sortValues, note: "by operands in turn" },
  "chlo.top_k": { read: topK },
};

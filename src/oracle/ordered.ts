/** Ops that run along an axis in order: every partial result of a reduction, and the order of the elements. */
import { elementCount } from "../numerics/tensor/host-tensor.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import { combinationOf, reductionDefinitions } from "./definitions.ts";
import { accumulations, storeAll } from "./reduction.ts";
import { type Bounded, type Element, flatElement, makeValue, oracleNumbers, type OracleValue } from "./value.ts";

/** The results at the positions of a row, from the elements there. */
type Row = (positions: readonly number[]) => readonly Bounded[];

/** Evaluates each row along `axis`. */
function byRows(input: OracleValue, axis: number, dtype: OracleValue["dtype"], row: Row): OracleValue {
  const { shape } = input;
  const extent = at(shape, axis);
  const stride = elementCount(shape.slice(axis + 1));
  const results = new Map<number, readonly Bounded[]>();
  return makeValue(dtype, shape, (index, flat) => {
    const own = at(index, axis);
    const first = flat - own * stride;
    const made = results.get(first) ?? row(Array.from({ length: extent }, (_, i) => first + i * stride));
    if (own === 0) results.set(first, made);
    if (own === extent - 1) results.delete(first);
    return at(made, own);
  });
}

/** Element i is the combination of those up to i, or, in reverse, from i on. A back end adds them in any order. */
export function scan(op: ReductionOpType, input: OracleValue, axis: number, reverse: boolean): OracleValue {
  const { dtype, bounds } = input;
  const { accumulates } = reductionDefinitions[op];
  const turned = <T>(list: readonly T[]): readonly T[] => (reverse ? list.toReversed() : list);
  if (accumulates !== null && dtypes[dtype].family === "float") {
    const numbers = oracleNumbers(input);
    return byRows(input, axis, dtype, (positions) => {
      const accumulation = accumulations[accumulates]();
      const made = turned(positions).map((position, i) => {
        accumulation.addRun(numbers, bounds, position, 1, 1);
        return storeAll(accumulates, dtype, accumulation.value(), { terms: i + 1, roundings: i, hops: 0 });
      });
      return turned(made);
    });
  }
  return byRows(input, axis, dtype, (positions) => {
    let result: Element | undefined;
    let furthest = 0;
    const made = turned(positions).map((position): Bounded => {
      const { element, bound } = flatElement(input, position);
      result = result === undefined ? element : combinationOf(op, dtype, result, element);
      furthest = Math.max(furthest, bound);
      return { element: result, bound: accumulates === null || furthest === 0 ? furthest : Infinity };
    });
    return turned(made);
  });
}

/** NaN is the largest, and equal elements keep their order. An index has a bound only if no other can be there. */
export function argsort(input: OracleValue, axis: number, descending: boolean): OracleValue {
  return byRows(input, axis, "int64", (positions) => {
    const elements = positions.map((position) => flatElement(input, position));
    const order = [...elements.keys()].sort((i, j) => {
      const compared = compareElements(at(elements, i).element, at(elements, j).element);
      return (descending ? -compared : compared) || i - j;
    });
    const sorted = order.map((i) => at(elements, i));
    const isSure = sorted.map(() => true);
    separate(descending ? sorted.toReversed() : sorted).forEach((sure, i) => {
      isSure[descending ? sorted.length - 1 - i : i] = sure;
    });
    return order.map((i, place) => ({ element: BigInt(i), bound: at(isSure, place) ? 0 : Infinity }));
  });
}

function compareElements(a: Element, b: Element): number {
  const [isNaN, isOtherNaN] = [Number.isNaN(a), Number.isNaN(b)];
  if (isNaN || isOtherNaN) return Number(isNaN) - Number(isOtherNaN);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** For ascending elements, whether each is certainly between its neighbours. Exact ones are among themselves. */
function separate(ascending: readonly Bounded[]): readonly boolean[] {
  const sides = (list: readonly Bounded[], sign: 1 | -1): readonly boolean[] => {
    let [ofAll, ofInexact] = [-Infinity, -Infinity];
    return list.map(({ element, bound }) => {
      const value = sign * (Number.isNaN(element) ? Infinity : Number(element));
      const isSure = ofInexact < value - bound && (bound === 0 || ofAll < value - bound);
      ofAll = Math.max(ofAll, value + bound);
      if (bound > 0) ofInexact = Math.max(ofInexact, value + bound);
      return isSure || (bound === 0 && ofInexact === -Infinity);
    });
  };
  const below = sides(ascending, 1);
  const above = sides(ascending.toReversed(), -1).toReversed();
  return below.map((sure, i) => sure && at(above, i));
}

/** Ops that read or add at indices, one index after the other. */
import type { ScatterAddOp } from "../ir/ops/op.ts";
import { accumulatorOf, dtypes } from "../numerics/dtype.ts";
import { requireBelow } from "../numerics/past-end.ts";
import { at } from "../support/invariant.ts";
import { combinationOf } from "./definitions.ts";
import { accumulationError, exactSum, storeAccumulated } from "./tolerance.ts";
import {
  type Bounded,
  elementAt,
  type Element,
  flatElement,
  makeValue,
  overflowThreshold,
  smallestNormal,
  type OracleValue,
} from "./value.ts";

/** The index as a number; null if it is outside of an axis of `extent` elements. */
function placeOf({ element }: Bounded, extent: number): number | null {
  return element >= 0 && element < extent ? Number(element) : null;
}

/** How many of the indices are outside of an axis of `extent` elements. */
export function outsideCount({ elements }: OracleValue, extent: number): number {
  let count = 0;
  for (let i = 0; i < elements.length; i++)
    if (placeOf({ element: at(elements, i), bound: 0 }, extent) === null) count++;
  return count;
}

/** The element at an index along `axis`. Without a bound if the index is not exact. */
function readAt(
  input: OracleValue,
  axis: number,
  index: Bounded,
  position: (place: number) => readonly number[],
): Bounded {
  const place = placeOf(index, at(input.shape, axis));
  const read =
    place === null ? { element: input.dtype === "int64" ? 0n : 0, bound: 0 } : elementAt(input, position(place));
  return index.bound === 0 ? read : { ...read, bound: Infinity };
}

export function indexSelect(input: OracleValue, axis: number, index: OracleValue): OracleValue {
  const rank = index.shape.length;
  const shape = input.shape.toSpliced(axis, 1, ...index.shape);
  return makeValue(input.dtype, shape, (own) =>
    readAt(input, axis, elementAt(index, own.slice(axis, axis + rank)), (place) => own.toSpliced(axis, rank, place)),
  );
}

export function gather(input: OracleValue, axis: number, index: OracleValue): OracleValue {
  return makeValue(input.dtype, index.shape, (own, flat) =>
    readAt(input, axis, flatElement(index, flat), (place) => own.with(axis, place)),
  );
}

/**
 * The elements that are added to each element of the tensor, in order. The last one replaces it if `sets`. Throws
 * `position-past-end`.
 */
export function scatterAdd(
  input: OracleValue,
  { axis, sets }: Pick<ScatterAddOp, "axis" | "sets">,
  index: OracleValue,
  source: OracleValue,
): OracleValue {
  const terms = new Map<number, Bounded[]>();
  const flatOf = (position: readonly number[]): number =>
    position.reduce((flat, i, each) => flat * at(input.shape, each) + i, 0);
  let exact = true;
  makeValue(input.dtype, source.shape, (own, flat) => {
    const place = flatElement(index, flat);
    const target = placeOf(place, at(input.shape, axis));
    if (sets === "below") requireBelow(place.element, at(input.shape, axis));
    exact &&= place.bound === 0;
    const term = flatElement(source, flat);
    if (target !== null) {
      const to = flatOf(own.with(axis, target));
      terms.set(to, [...(terms.get(to) ?? []), term]);
    }
    return term;
  });
  return makeValue(input.dtype, input.shape, (_, flat) => {
    const own = [flatElement(input, flat), ...(terms.get(flat) ?? [])];
    const added = sets !== undefined ? at(own, own.length - 1) : addAll(input.dtype, own);
    return exact ? added : { ...added, bound: Infinity };
  });
}

function addAll(dtype: OracleValue["dtype"], terms: readonly Bounded[]): Bounded {
  if (terms.length === 1) return at(terms, 0);
  if (dtypes[dtype].family !== "float") {
    const element = terms.map((term) => term.element).reduce((a, b): Element => combinationOf("sum", dtype, a, b));
    return { element, bound: terms.every(({ bound }) => bound === 0) ? 0 : Infinity };
  }
  const sum = exactSum();
  let [magnitude, spread, finite] = [0, 0, true];
  for (const { element, bound } of terms) {
    const x = Number(element);
    sum.add(x);
    spread += bound;
    if (Number.isFinite(x)) magnitude += Math.abs(x);
    else finite = false;
  }
  const accumulator = accumulatorOf(dtype);
  return storeAccumulated(
    dtype,
    { exact: sum.value(), magnitude, spread, peak: magnitude + spread, least: Infinity, finite },
    {
      relative: accumulationError(terms.length - 1, 2, dtype),
      underflow: 0,
      overflow: overflowThreshold[accumulator],
      vanishing: smallestNormal[accumulator],
    },
  );
}

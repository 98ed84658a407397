/** Elementwise ops: unary, binary with broadcasting, cast. */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import type { BinaryOpType, TernaryOpType, UnaryOpType } from "../ir/ops/op.ts";
import { binaryDefinitions, binaryOf, castOf, unaryDefinitions, unaryOf } from "./definitions.ts";
import type { Moved } from "./definitions/binary.ts";
import { type Arithmetic, gamma } from "./tolerance.ts";
import { type Bounded, elementAt, flatElement, makeValue, smallestNormal, store, type OracleValue } from "./value.ts";

export function unary(op: UnaryOpType, input: OracleValue): OracleValue {
  const { dtype } = input;
  const { float, error } = unaryDefinitions[op];
  const own = gamma(error.roundings, accumulatorOf(dtype));
  return makeValue(dtype, input.shape, (_, flat) => {
    const { element, bound } = flatElement(input, flat);
    if (dtypes[dtype].family !== "float") {
      const result = unaryOf(op, dtype, element);
      return { element: result, bound: bound === 0 ? 0 : finite(error.spread(bound, Number(element), size(result))) };
    }
    const x = Number(element);
    const exact = float(x);
    // All back ends agree on the results of infinity and NaN, and on infinite and NaN results.
    if (bound === 0 && !(Number.isFinite(x) && Number.isFinite(exact))) return store(dtype, exact, 0);
    const shift = bound === 0 ? 0 : error.spread(bound, x, Math.abs(exact));
    return store(dtype, exact, shift + (own === 0 ? 0 : own * error.magnitude(x, Math.abs(exact))));
  });
}

export function binary(
  op: BinaryOpType,
  a: OracleValue,
  b: OracleValue,
  shape: readonly number[],
  { skipsZeros = false }: Pick<Arithmetic, "skipsZeros"> = {},
): OracleValue {
  const { dtype } = a;
  const { float, spread, compares, roundings = 0 } = binaryDefinitions[op];
  const isFloat = dtypes[dtype].family === "float";
  const accumulator = accumulatorOf(dtype);
  const own = gamma(roundings, accumulator);
  const [readA, readB] = [broadcastReader(a, shape), broadcastReader(b, shape)];
  return makeValue(compares === true ? "bool" : dtype, shape, (index, flat) => {
    const x = readA(index, flat);
    const y = readB(index, flat);
    const isExact = x.bound === 0 && y.bound === 0;
    const moves = isExact ? 0 : spread(moved(x), moved(y), !isFloat);
    if (!isFloat || float === null || compares === true) {
      return { element: binaryOf(op, dtype, x.element, y.element), bound: finite(moves) };
    }
    const exact = float(Number(x.element), Number(y.element));
    if (skipsZeros && op === "mul" && Number.isNaN(exact) && (x.element === 0 || y.element === 0)) {
      return store(dtype, exact, Infinity);
    }
    // A library rounds subnormal results as coarsely as the smallest normal ones.
    const isRounded = own > 0 && Number.isFinite(exact) && [x, y].every(({ element }) => Number.isFinite(element));
    const error = moves + (isRounded ? own * Math.max(Math.abs(exact), smallestNormal[accumulator]) : 0);
    return store(dtype, exact, isDecided(exact, x, y) ? 0 : error);
  });
}

/** The taken value. A condition that may be the other one may take either. */
export function ternary(
  _: TernaryOpType,
  condition: OracleValue,
  a: OracleValue,
  b: OracleValue,
  shape: readonly number[],
): OracleValue {
  const [readC, readA, readB] = [condition, a, b].map((operand) => broadcastReader(operand, shape));
  return makeValue(a.dtype, shape, (index, flat) => {
    const [c, x, y] = [readC, readA, readB].map((read) => read?.(index, flat) ?? { element: NaN, bound: Infinity });
    const [taken, other] = Number(c?.element) === 0 ? [y, x] : [x, y];
    if (taken === undefined || other === undefined) return { element: NaN, bound: Infinity };
    if (c?.bound === 0) return taken;
    const apart = Math.abs(Number(taken.element) - Number(other.element)) + other.bound;
    return { element: taken.element, bound: finite(Math.max(taken.bound, apart)) };
  });
}

/** Reads the element that an operand has at each place of the result. */
export function broadcastReader(
  value: OracleValue,
  shape: readonly number[],
): (index: readonly number[], flat: number) => Bounded {
  const isWhole = value.shape.every((extent, axis) => extent === shape[axis]);
  return isWhole ? (_, flat) => flatElement(value, flat) : (index) => elementAt(value, index);
}

/** Whether an infinite or NaN operand determines the result, whatever the error of the other one. */
function isDecided(exact: number, x: Bounded, y: Bounded): boolean {
  if (Number.isNaN(x.element) || Number.isNaN(y.element)) return x.bound !== Infinity && y.bound !== Infinity;
  if (Number.isFinite(exact)) return false;
  const special = [x, y].some(({ element, bound }) => !Number.isFinite(Number(element)) && bound === 0);
  return special && [x, y].every(({ element, bound }) => bound === 0 || size(element) > bound);
}

function moved({ element, bound }: Bounded): Moved {
  return { at: Number(element), size: size(element), by: bound };
}

function size(element: Bounded["element"]): number {
  return Math.abs(Number(element));
}

/** Infinity for an error that cannot be computed. */
function finite(error: number): number {
  return Number.isNaN(error) ? Infinity : error;
}

export function cast(input: OracleValue, to: DType): OracleValue {
  const from = input.dtype;
  return makeValue(to, input.shape, (_, flat) => {
    const { element, bound } = flatElement(input, flat);
    const result = castOf(from, to, element);
    if (bound === 0) return { element: result, bound: 0 };
    if (dtypes[to].family === "float") return store(to, Number(element), bound);
    if (!Number.isFinite(bound)) return { element: result, bound: Infinity };
    // The function is monotonic, or for bool a step at 0, so the values at the ends of the interval bound its change.
    const moves = [Number(element) - bound, Number(element) + bound].map((end) =>
      Math.abs(Number(castOf("double", to, end)) - Number(result)),
    );
    const crossesZero = to === "bool" && Math.abs(Number(element)) <= bound;
    return { element: result, bound: crossesZero ? 1 : Math.max(...moves) };
  });
}

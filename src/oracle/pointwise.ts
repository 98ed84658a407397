/** Elementwise ops: unary, binary with broadcasting, cast. */
import { accumulatorOf } from "../numerics/accumulator.ts";
import type { BinaryOpType, UnaryOpType } from "../ir/ops/op.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { binaryFunction, castFunction, unaryFunction } from "../numerics/scalar/scalar-functions.ts";
import { unreachable } from "../support/unreachable.ts";
import { binaryRoundings, gamma, unaryTolerances } from "./tolerance.ts";
import { type Bounded, elementAt, makeValue, store, type Value } from "./value.ts";

export function unary(op: UnaryOpType, input: Value): Value {
  const { dtype } = input;
  const tolerance = unaryTolerances[op];
  const apply = unaryFunction(op, dtype);
  const own = gamma(tolerance.roundings, accumulatorOf[dtype]);
  return makeValue(dtype, input.shape, (index) => {
    const { element, bound } = elementAt(input, index);
    const result = apply(element);
    const output = Math.abs(Number(result));
    const spread = bound === 0 ? 0 : tolerance.spread(bound, output);
    const error = spread + (own === 0 ? 0 : own * tolerance.magnitude(Number(element), output));
    return settle(dtype, result, error);
  });
}

export function binary(op: BinaryOpType, a: Value, b: Value, shape: readonly number[]): Value {
  const { dtype } = a;
  const apply = binaryFunction(op, dtype);
  const own = gamma(binaryRoundings[op], accumulatorOf[dtype]);
  return makeValue(dtype, shape, (index) => {
    const x = elementAt(a, index);
    const y = elementAt(b, index);
    const result = apply(x.element, y.element);
    const error = binarySpread(op, x, y, dtype) + (own === 0 ? 0 : own * Math.abs(Number(result)));
    return settle(dtype, result, error);
  });
}

/** How far the result moves when the operands move within their bounds. */
function binarySpread(op: BinaryOpType, { element: x, bound: dx }: Bounded, y: Bounded, dtype: DType): number {
  const dy = y.bound;
  if (dx === 0 && dy === 0) return 0;
  const [left, right] = [Math.abs(Number(x)), Math.abs(Number(y.element))];
  switch (op) {
    case "add":
    case "sub":
      return dx + dy;
    case "mul":
      return left * dy + right * dx + dx * dy;
    case "div": {
      // |x/y - x'/y'| where y' stays away from 0; integers truncate.
      if (right <= dy) return Infinity;
      const truncation = dtypes[dtype].family === "float" ? 0 : 1;
      return ((left / right) * dy + dx) / (right - dy) + truncation;
    }
    default:
      return unreachable(op);
  }
}

export function cast(input: Value, to: DType): Value {
  const apply = castFunction(input.dtype, to);
  const applyToNumber = castFunction("double", to);
  return makeValue(to, input.shape, (index) => {
    const { element, bound } = elementAt(input, index);
    const result = apply(element);
    if (bound === 0) return { element: result, bound: 0 };
    if (dtypes[to].family === "float") return store(to, Number(element), bound);
    if (!Number.isFinite(bound)) return { element: result, bound: Infinity };
    // The function is monotonic, or for bool a step at 0: its ends say how far it moves.
    const moved = [Number(element) - bound, Number(element) + bound].map((end) =>
      Math.abs(Number(applyToNumber(end)) - Number(result)),
    );
    const crossesZero = to === "bool" && Math.abs(Number(element)) <= bound;
    return { element: result, bound: crossesZero ? 1 : Math.max(...moved) };
  });
}

/** A float result has been rounded already; its error is added to. Integers keep their error as it is. */
function settle(dtype: DType, result: Bounded["element"], error: number): Bounded {
  if (typeof result === "bigint" || dtypes[dtype].family !== "float") {
    return { element: result, bound: Number.isNaN(error) ? Infinity : error };
  }
  return store(dtype, result, error);
}

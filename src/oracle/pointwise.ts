/** Elementwise ops: unary, binary with broadcasting, cast. */
import { accumulatorOf, type DType, dtypes } from "../numerics/dtype.ts";
import { binaryFunctions, type BinaryOpType, type Moved } from "../ir/ops/functions/binary.ts";
import { unaryFunctions, type UnaryOpType } from "../ir/ops/functions/unary.ts";
import { compileBinary, compileCast, compileUnary } from "../ir/ops/functions/compile.ts";
import { gamma } from "./tolerance.ts";
import { type Bounded, elementAt, makeValue, store, type Value } from "./value.ts";

export function unary(op: UnaryOpType, input: Value): Value {
  const { dtype } = input;
  const { roundings, magnitude, spread } = unaryFunctions[op].error;
  const apply = compileUnary(op, dtype);
  const own = gamma(roundings, accumulatorOf[dtype]);
  return makeValue(dtype, input.shape, (index) => {
    const { element, bound } = elementAt(input, index);
    const result = apply(element);
    const output = Math.abs(Number(result));
    const shift = bound === 0 ? 0 : spread(bound, Number(element), output);
    const error = shift + (own === 0 ? 0 : own * magnitude(Number(element), output));
    return settle(dtype, result, error);
  });
}

export function binary(op: BinaryOpType, a: Value, b: Value, shape: readonly number[]): Value {
  const { dtype } = a;
  const apply = compileBinary(op, dtype);
  const { spread } = binaryFunctions[op];
  const truncated = dtypes[dtype].family !== "float";
  return makeValue(dtype, shape, (index) => {
    const x = elementAt(a, index);
    const y = elementAt(b, index);
    const result = apply(x.element, y.element);
    const isExact = x.bound === 0 && y.bound === 0;
    return settle(dtype, result, isExact ? 0 : spread(moved(x), moved(y), truncated));
  });
}

function moved({ element, bound }: Bounded): Moved {
  return { size: Math.abs(Number(element)), by: bound };
}

export function cast(input: Value, to: DType): Value {
  const apply = compileCast(input.dtype, to);
  const applyToNumber = compileCast("double", to);
  return makeValue(to, input.shape, (index) => {
    const { element, bound } = elementAt(input, index);
    const result = apply(element);
    if (bound === 0) return { element: result, bound: 0 };
    if (dtypes[to].family === "float") return store(to, Number(element), bound);
    if (!Number.isFinite(bound)) return { element: result, bound: Infinity };
    // The function is monotonic, or for bool a step at 0, so the values at the ends of the interval bound its change.
    const moved = [Number(element) - bound, Number(element) + bound].map((end) =>
      Math.abs(Number(applyToNumber(end)) - Number(result)),
    );
    const crossesZero = to === "bool" && Math.abs(Number(element)) <= bound;
    return { element: result, bound: crossesZero ? 1 : Math.max(...moved) };
  });
}

/** A float result is already rounded, so the rounding adds to its error. Integers keep their error. */
function settle(dtype: DType, result: Bounded["element"], error: number): Bounded {
  if (typeof result === "bigint" || dtypes[dtype].family !== "float") {
    return { element: result, bound: Number.isNaN(error) ? Infinity : error };
  }
  return store(dtype, result, error);
}

/**
 * An op near the values that it was evaluated with, continued where its definition has a corner or a step: an extremum
 * keeps taking the element that it took, and a step stays. The result is smooth, so it has a slope, and at a corner
 * the slope is the derivative that PyTorch defines.
 */
import type { TensorId } from "../../ir/domain.ts";
import type { BinaryOp, Op } from "../../ir/ops/op.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, invariant } from "../../support/invariant.ts";
import { evaluateOp, type Setting, twoValues } from "../evaluate-op.ts";
import { broadcastReader } from "../pointwise.ts";
import { reduction } from "../reduction.ts";
import { elementAt, makeValue, type OracleValue } from "../value.ts";

/** What an op was evaluated with. */
export interface Evaluated {
  readonly operands: readonly OracleValue[];
  readonly results: readonly OracleValue[];
}

export interface Continuing extends Setting {
  /** The maxima and minima that take the first of two equal operands, as those of `clamp` do, rather than their mean. */
  readonly takesFirst: ReadonlySet<TensorId>;
}

/** Functions that are steps: near a value they are what they are there. */
const steps: ReadonlySet<string> = new Set(["sign", "floor", "ceil", "trunc", "round"]);

/** The results for `operands`, which are near those of `evaluated`. */
export function continuedOp(
  op: Op,
  operands: readonly OracleValue[],
  evaluated: Evaluated,
  setting: Continuing,
): readonly OracleValue[] {
  const [result, x, then] = [at(evaluated.results, 0), at(operands, 0), at(evaluated.operands, 0)];
  // Integers and bools are steps of floats.
  if (dtypes[result.dtype].family !== "float") return evaluated.results;
  if (op.kind === "Unary") {
    if (steps.has(op.op)) return evaluated.results;
    if (op.op === "abs") return [zipped(x, then, (now, before) => Math.sign(before) * now)];
    if (op.op === "relu") return [zipped(x, then, (now, before) => (before > 0 ? now : 0))];
  }
  if (op.kind === "Binary" && (op.op === "maximum" || op.op === "minimum")) {
    return [extremeOperand(op, operands, evaluated, setting.takesFirst.has(op.output))];
  }
  if (op.kind === "Reduction" && (op.op === "amax" || op.op === "amin")) {
    return [meanOfExtremes(x, then, result, op.axes, setting)];
  }
  return evaluateOp(op, operands, result.shape, setting);
}

function zipped(a: OracleValue, b: OracleValue, combine: (a: number, b: number) => number): OracleValue {
  const element = (flat: number): number => combine(Number(a.elements[flat]), Number(b.elements[flat]));
  return makeValue(a.dtype, a.shape, (_, flat) => ({ element: element(flat), bound: 0 }));
}

/** The operand that was the extreme one. */
function extremeOperand(
  { op, scalar }: BinaryOp,
  operands: readonly OracleValue[],
  { operands: before, results }: Evaluated,
  takesFirst: boolean,
): OracleValue {
  const { dtype, shape } = at(results, 0);
  const readersOf = (values: readonly OracleValue[]): readonly ((index: readonly number[], flat: number) => number)[] =>
    twoValues(scalar, 0, values, shape).map((value) => {
      const read = broadcastReader(value, shape);
      return (index, flat) => Number(read(index, flat).element);
    });
  const [[a, b], [oldA, oldB]] = [readersOf(operands), readersOf(before)];
  invariant(a && b && oldA && oldB, "a binary op has two operands", op);
  const element = (index: readonly number[], flat: number): number => {
    const apart = (oldA(index, flat) - oldB(index, flat)) * (op === "maximum" ? 1 : -1);
    if (apart > 0 || (apart === 0 && takesFirst)) return a(index, flat);
    if (apart < 0) return b(index, flat);
    return (a(index, flat) + b(index, flat)) / 2;
  };
  return makeValue(dtype, shape, (index, flat) => ({ element: element(index, flat), bound: 0 }));
}

/** Of the elements that were extreme: all of them move the result. */
function meanOfExtremes(
  now: OracleValue,
  then: OracleValue,
  result: OracleValue,
  axes: readonly number[],
  { arithmetic }: Setting,
): OracleValue {
  const extremes = { ...result, shape: then.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent)) };
  const sumOf = (term: (flat: number) => number): OracleValue => {
    const terms = makeValue(then.dtype, then.shape, (index, flat) => {
      const isExtreme = then.elements[flat] === elementAt(extremes, index).element;
      return { element: isExtreme ? term(flat) : 0, bound: 0 };
    });
    return reduction("sum", terms, axes, 0, arithmetic);
  };
  const total = sumOf((flat) => Number(now.elements[flat]));
  return zipped(
    total,
    sumOf(() => 1),
    (sum, count) => sum / count,
  );
}

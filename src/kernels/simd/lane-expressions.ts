/**
 * Scalar expressions (numerics/scalar/expression.ts) over groups of elements. Every lane has the same bits as with
 * emit-js.ts, except NaNs.
 */
import { definitionOf, type Expression, type ScalarType } from "../../numerics/scalar/expression.ts";
import { subexpressions } from "../../numerics/scalar/subexpressions.ts";
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import {
  extractLane,
  get,
  replaceLane,
  scalar,
  shuffleWords,
  vector,
  type VectorInstruction,
} from "../../support/wasm/instructions.ts";
import { isShift, laneComparison, lanePrimitives, shiftAll } from "./lane-primitives.ts";
import { wordCodings } from "./lane-words.ts";
import { groupElements, type Lanes, partsOfType, shapeOfType, splatConstant } from "./lanes.ts";
import type { Code } from "../../support/wasm/encoding.ts";

/** Whether every node of the expression has a vector form: all but library functions without a definition. */
export function hasLaneForm(expression: Expression): boolean {
  if (expression.kind === "call" && definitionOf(expression) === undefined) return false;
  return subexpressions(expression).every(hasLaneForm);
}

/** Computes `expression` into locals. `operands[i]` holds operand i. */
export function evaluateLanes(writer: FunctionWriter, expression: Expression, operands: readonly Lanes[]): Lanes {
  const evaluate = (inner: Expression): Lanes => evaluateLanes(writer, inner, operands);
  const keepAll = (codes: readonly Code[]): Lanes => codes.map(writer.keep);
  switch (expression.kind) {
    case "operand":
      return at(operands, expression.index);
    case "constant": {
      const constant = writer.keep(splatConstant(expression.type, expression.value));
      return Array.from({ length: partsOfType[expression.type] }, () => constant);
    }
    case "apply": {
      const { primitive, type } = expression;
      const form = lanePrimitives[primitive][type];
      invariant(form !== undefined, "a primitive is used with a type that it has", { primitive, type });
      const [first, second] = expression.operands;
      if (first !== undefined && second?.kind === "constant" && isShift(primitive)) {
        return evaluate(first).map((part) => writer.keep(shiftAll(primitive, type, part, Number(second.value))));
      }
      const values = expression.operands.map(evaluate);
      return Array.from({ length: partsOfType[expression.type] }, (_, part) =>
        writer.keep(form(writer, ...values.map((value) => at(value, part)))),
      );
    }
    case "call":
      invariant(false, "library functions are split before (nests/split-functions.ts)", expression.function);
    case "choose": {
      // Both branches are computed, because nothing traps.
      const { type } = expression.left;
      const [left, right] = [evaluate(expression.left), evaluate(expression.right)];
      const mask = keepAll(
        left.map((part, i) => laneComparison(type, expression.comparison, get(part), get(at(right, i)))),
      );
      const fitting = keepAll(maskFor(partsOfType[expression.type], mask));
      // A choice of zero is one instruction instead of three.
      if (isZero(expression.then)) {
        const otherwise = evaluate(expression.otherwise);
        return keepAll(otherwise.map((part, i) => vector("v128.andnot", get(part), get(at(fitting, i)))));
      }
      const [then, otherwise] = [evaluate(expression.then), evaluate(expression.otherwise)];
      return keepAll(
        then.map((part, i) => vector("v128.bitselect", get(part), get(at(otherwise, i)), get(at(fitting, i)))),
      );
    }
    case "convert":
      return keepAll(laneConversions[expression.operand.type][expression.type](evaluate(expression.operand)));
    case "round":
      return evaluate(expression.operand).map((part) => writer.keep(wordCodings[expression.to].round(writer, part)));
    case "bits":
      return evaluate(expression.operand);
    default:
      return unreachable(expression);
  }
}

/** +0, all of whose bits are 0. */
function isZero(expression: Expression): boolean {
  return expression.kind === "constant" && Object.is(Number(expression.value), 0);
}

/** Converts a comparison's mask to the lanes of a value with `parts` vectors. */
function maskFor(parts: number, mask: Lanes): readonly Code[] {
  if (mask.length === parts) return mask.map(get);
  return parts === 1 ? [lowWords(mask)] : widenMask(at(mask, 0));
}

/** Returns the code of each vector of the result. */
type Conversion = (value: Lanes) => readonly Code[];

const same: Conversion = (value) => value.map(get);

/** Widens both halves of a vector of 32-bit lanes, with an instruction that widens the low half. */
function widened(instruction: VectorInstruction): Conversion {
  return (value) => {
    const whole = get(at(value, 0));
    return [vector(instruction, whole), vector(instruction, shuffleWords([2, 3, 2, 3], whole, whole))];
  };
}

/** Narrows two vectors of 64-bit lanes, with an instruction that narrows one vector to its low half. */
function narrowed(instruction: VectorInstruction): Conversion {
  return ([low, high]) => [
    shuffleWords([0, 1, 4, 5], vector(instruction, get(low ?? 0)), vector(instruction, get(high ?? 0))),
  ];
}

/** The low words of two vectors of 64-bit lanes. It wraps i64 to i32, and narrows masks. */
function lowWords([low, high]: Lanes): Code {
  return shuffleWords([0, 2, 4, 6], get(low ?? 0), get(high ?? 0));
}

function laneByLane(from: ScalarType, to: ScalarType, instruction: Parameters<typeof scalar>[0]): Conversion {
  const lanesOf = (type: ScalarType): number => groupElements / partsOfType[type];
  const element = (value: Lanes, i: number): Code => {
    const part = get(at(value, Math.floor(i / lanesOf(from))));
    return scalar(instruction, extractLane(shapeOfType[from], i % lanesOf(from), part));
  };
  return (value) =>
    Array.from({ length: partsOfType[to] }, (_, part) => {
      const elements = Array.from({ length: lanesOf(to) }, (__, lane) => element(value, part * lanesOf(to) + lane));
      const shape = shapeOfType[to];
      return elements
        .slice(1)
        .reduce((code, each, i) => replaceLane(shape, i + 1, code, each), vector(`${shape}.splat`, at(elements, 0)));
    });
}

const laneConversions: { readonly [From in ScalarType]: { readonly [To in ScalarType]: Conversion } } = {
  f64: {
    f64: same,
    f32: narrowed("f32x4.demote_f64x2_zero"),
    i32: narrowed("i32x4.trunc_sat_f64x2_s_zero"),
    i64: laneByLane("f64", "i64", "i64.trunc_sat_f64_s"),
  },
  f32: {
    f64: widened("f64x2.promote_low_f32x4"),
    f32: same,
    i32: ([value]) => [vector("i32x4.trunc_sat_f32x4_s", get(value ?? 0))],
    i64: laneByLane("f32", "i64", "i64.trunc_sat_f32_s"),
  },
  i32: {
    f64: widened("f64x2.convert_low_i32x4_s"),
    f32: ([value]) => [vector("f32x4.convert_i32x4_s", get(value ?? 0))],
    i32: same,
    i64: ([value]) => widenMask(value ?? 0),
  },
  i64: {
    f64: laneByLane("i64", "f64", "f64.convert_i64_s"),
    f32: laneByLane("i64", "f32", "f32.convert_i64_s"),
    i32: (value) => [lowWords(value)],
    i64: same,
  },
};

/** Sign-extends 32-bit lanes to 64 bits: i32 to i64, and masks. */
function widenMask(value: number): readonly Code[] {
  return [vector("i64x2.extend_low_i32x4_s", get(value)), vector("i64x2.extend_high_i32x4_s", get(value))];
}

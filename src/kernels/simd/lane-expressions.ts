/**
 * Scalar expressions (numerics/scalar/expression.ts) over groups of elements. Every lane has the same bits as with
 * emit-js.ts, except NaNs.
 */
import type { Expression, Primitive, ScalarType } from "../../numerics/scalar/expression.ts";
import { at, invariant } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import type { FunctionWriter } from "./function-writer.ts";
import { extractLane, get, replaceLane, scalar, shuffleWords, vector, type VectorInstruction } from "./instructions.ts";
import { wordCodings } from "./lane-words.ts";
import { groupElements, type Lanes, partsOfType, shapeOfType, splatConstant } from "./lanes.ts";
import type { Code } from "./wasm-encoding.ts";

/** Takes locals, returns the code of one vector of the result. */
type LanePrimitive = (writer: FunctionWriter, ...operands: readonly number[]) => Code;

const plain =
  (instruction: VectorInstruction): LanePrimitive =>
  (_, ...operands) =>
    vector(instruction, ...operands.map(get));

const primitives: { readonly [P in Primitive]: { readonly [T in ScalarType]?: LanePrimitive } } = {
  neg: everywhere("neg"),
  abs: everywhere("abs"),
  add: everywhere("add"),
  sub: everywhere("sub"),
  mul: everywhere("mul"),
  div: { f64: plain("f64x2.div"), f32: plain("f32x4.div"), i32: quotient("i32"), i64: quotient("i64") },
  max: {
    f64: plain("f64x2.max"),
    f32: plain("f32x4.max"),
    i32: plain("i32x4.max_s"),
    i64: (_, x = 0, y = 0) => vector("v128.bitselect", get(x), get(y), vector("i64x2.gt_s", get(x), get(y))),
  },
  min: {
    f64: plain("f64x2.min"),
    f32: plain("f32x4.min"),
    i32: plain("i32x4.min_s"),
    i64: (_, x = 0, y = 0) => vector("v128.bitselect", get(x), get(y), vector("i64x2.gt_s", get(y), get(x))),
  },
  sqrt: { f64: plain("f64x2.sqrt"), f32: plain("f32x4.sqrt") },
};

function everywhere(name: "neg" | "abs" | "add" | "sub" | "mul"): { readonly [T in ScalarType]: LanePrimitive } {
  return {
    f64: plain(`f64x2.${name}`),
    f32: plain(`f32x4.${name}`),
    i32: plain(`i32x4.${name}`),
    i64: plain(`i64x2.${name}`),
  };
}

/**
 * Divides lane by lane. The instruction traps at the divisors 0 and -1, so they are replaced by 1; x / -1 is then -x,
 * and x / 0 is unused.
 */
function quotient(type: "i32" | "i64"): LanePrimitive {
  const shape = shapeOfType[type];
  const lanes = type === "i32" ? [0, 1, 2, 3] : [0, 1];
  return (writer, x = 0, y = 0) => {
    const isMinusOne = writer.keep(vector(`${shape}.eq`, get(y), splatConstant(type, -1)));
    const traps = vector("v128.or", get(isMinusOne), vector(`${shape}.eq`, get(y), splatConstant(type, 0)));
    const divisor = writer.keep(vector("v128.bitselect", splatConstant(type, 1), get(y), traps));
    const element = (lane: number): Code =>
      scalar(`${type}.div_s`, extractLane(shape, lane, get(x)), extractLane(shape, lane, get(divisor)));
    const divided = lanes.reduce((code, lane) => replaceLane(shape, lane, code, element(lane)), get(x));
    return vector("v128.bitselect", vector(`${shape}.neg`, get(x)), divided, get(isMinusOne));
  };
}

/** Whether every node of the expression has a vector form. Library functions exist only in JavaScript. */
export function hasLaneForm(expression: Expression): boolean {
  switch (expression.kind) {
    case "operand":
    case "constant":
      return true;
    case "apply":
      return expression.operands.every(hasLaneForm);
    case "call":
      return false;
    case "choose":
      return [expression.left, expression.right, expression.then, expression.otherwise].every(hasLaneForm);
    case "convert":
    case "round":
      return hasLaneForm(expression.operand);
    default:
      return unreachable(expression);
  }
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
      const form = primitives[primitive][type];
      invariant(form !== undefined, "a primitive is used with a type that it has", { primitive, type });
      const values = expression.operands.map(evaluate);
      return Array.from({ length: partsOfType[expression.type] }, (_, part) =>
        writer.keep(form(writer, ...values.map((value) => at(value, part)))),
      );
    }
    case "call":
      invariant(false, "an expression has a lane form", expression.function);
    case "choose": {
      // Both branches are computed, because nothing traps.
      const { type } = expression.left;
      const [left, right] = [evaluate(expression.left), evaluate(expression.right)];
      const mask = keepAll(
        left.map((part, i) => vector(`${shapeOfType[type]}.${expression.comparison}`, get(part), get(at(right, i)))),
      );
      const fitting = keepAll(maskFor(partsOfType[expression.type], mask));
      const [then, otherwise] = [evaluate(expression.then), evaluate(expression.otherwise)];
      return keepAll(
        then.map((part, i) => vector("v128.bitselect", get(part), get(at(otherwise, i)), get(at(fitting, i)))),
      );
    }
    case "convert":
      return keepAll(laneConversions[expression.operand.type][expression.type](evaluate(expression.operand)));
    case "round":
      return evaluate(expression.operand).map((part) => writer.keep(wordCodings[expression.to].round(writer, part)));
    default:
      return unreachable(expression);
  }
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

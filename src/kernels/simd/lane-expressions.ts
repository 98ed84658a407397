/**
 * Scalar expressions (numerics/scalar/expression.ts) over groups of elements. Every lane has the same bits as with
 * emit-js.ts, except NaNs.
 */
import {
  type Comparison,
  definitionOf,
  type Expression,
  type Primitive,
  type ScalarType,
} from "../../numerics/scalar/expression.ts";
import { subexpressions } from "../../numerics/scalar/split-shared.ts";
import type { Value } from "../../numerics/tensor/host-tensor.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import type { Code } from "../../support/wasm/encoding.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import {
  extractLane,
  get,
  number,
  replaceLane,
  scalar,
  shuffleWords,
  vector,
  vectorConstant,
  type VectorInstruction,
  type VectorShape,
} from "../../support/wasm/instructions.ts";
import { wordCodings } from "./lane-words.ts";

// Groups of four elements. The values of a group are one vector of 32-bit lanes, or two vectors of 64-bit lanes. Groups
// of all types thus have the same elements, and a conversion between widths stays within its group.

/** The number of elements in a group. */
export const groupElements = 4;

/** v128 locals: one for 32-bit types, two for 64-bit types. */
export type Lanes = readonly number[];

const shapeOfType: { readonly [T in ScalarType]: VectorShape } = {
  f64: "f64x2",
  f32: "f32x4",
  i32: "i32x4",
  i64: "i64x2",
};

export const partsOfType: { readonly [T in ScalarType]: 1 | 2 } = { f64: 2, f32: 1, i32: 1, i64: 2 };

const splats: { readonly [T in ScalarType]: (value: Value) => Code } = {
  f64: (value) => vectorConstant(new Float64Array(2).fill(Number(value))),
  f32: (value) => vectorConstant(new Float32Array(4).fill(Number(value))),
  i32: (value) => vectorConstant(new Int32Array(4).fill(Number(value))),
  i64: (value) => vectorConstant(new BigInt64Array(2).fill(BigInt(value))),
};

/** A vector with `value` in every lane. */
export function splatConstant(type: ScalarType, value: Value): Code {
  return splats[type](value);
}

// The primitives and comparisons of scalar expressions, over one vector of lanes.

/** Takes locals, returns the code of one vector of the result. */
type LanePrimitive = (writer: FunctionWriter, ...operands: readonly number[]) => Code;

const plain =
  (instruction: VectorInstruction): LanePrimitive =>
  (_, ...operands) =>
    vector(instruction, ...operands.map(get));

const lanePrimitives: { readonly [P in Primitive]: { readonly [T in ScalarType]?: LanePrimitive } } = {
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
  sqrt: ofFloats("sqrt"),
  floor: ofFloats("floor"),
  ceil: ofFloats("ceil"),
  trunc: ofFloats("trunc"),
  nearest: ofFloats("nearest"),
  rem: { i32: remainder("i32"), i64: remainder("i64") },
  mulHigh: {
    i32: (_, x = 0, y = 0) => {
      const products = (half: "low" | "high"): Code => vector(`i64x2.extmul_${half}_i32x4_u`, get(x), get(y));
      return shuffleWords([1, 3, 5, 7], products("low"), products("high"));
    },
  },
  and: { i32: plain("v128.and"), i64: plain("v128.and") },
  or: { i32: plain("v128.or"), i64: plain("v128.or") },
  xor: { i32: plain("v128.xor"), i64: plain("v128.xor") },
  shl: { i32: eachLane("i32", "i32.shl"), i64: eachLane("i64", "i64.shl") },
  shr: { i32: eachLane("i32", "i32.shr_s"), i64: eachLane("i64", "i64.shr_s") },
};

function ofFloats(name: "sqrt" | "floor" | "ceil" | "trunc" | "nearest"): {
  readonly [T in ScalarType]?: LanePrimitive;
} {
  return { f64: plain(`f64x2.${name}`), f32: plain(`f32x4.${name}`) };
}

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
  const divide = eachLane(type, `${type}.div_s`);
  return (writer, x = 0, y = 0) => {
    const isMinusOne = writer.keep(vector(`${shape}.eq`, get(y), splatConstant(type, -1)));
    const traps = vector("v128.or", get(isMinusOne), vector(`${shape}.eq`, get(y), splatConstant(type, 0)));
    const divisor = writer.keep(vector("v128.bitselect", splatConstant(type, 1), get(y), traps));
    return vector("v128.bitselect", vector(`${shape}.neg`, get(x)), divide(writer, x, divisor), get(isMinusOne));
  };
}

/** Lane by lane. The instruction traps at the divisor 0, which is replaced by 1; x rem 0 is unused. */
function remainder(type: "i32" | "i64"): LanePrimitive {
  const shape = shapeOfType[type];
  const divide = eachLane(type, `${type}.rem_s`);
  return (writer, x = 0, y = 0) => {
    const isZero = vector(`${shape}.eq`, get(y), splatConstant(type, 0));
    const divisor = writer.keep(vector("v128.bitselect", splatConstant(type, 1), get(y), isZero));
    return divide(writer, x, divisor);
  };
}

/** An instruction that exists for scalars alone. */
function eachLane(type: "i32" | "i64", instruction: Parameters<typeof scalar>[0]): LanePrimitive {
  const shape = shapeOfType[type];
  const lanes = type === "i32" ? [0, 1, 2, 3] : [0, 1];
  return (_, x = 0, y = 0) => {
    const element = (lane: number): Code =>
      scalar(instruction, extractLane(shape, lane, get(x)), extractLane(shape, lane, get(y)));
    return lanes.reduce((code, lane) => replaceLane(shape, lane, code, element(lane)), get(x));
  };
}

function isShift(primitive: Primitive): primitive is "shl" | "shr" {
  return primitive === "shl" || primitive === "shr";
}

/** Shifts all lanes by one number of bits, in one instruction. */
function shiftAll(primitive: "shl" | "shr", type: ScalarType, value: number, bits: number): Code {
  const name = primitive === "shl" ? "shl" : "shr_s";
  return vector(`${type === "i64" ? "i64x2" : "i32x4"}.${name}`, [...get(value), ...number(bits)]);
}

function laneComparison(type: ScalarType, name: Comparison, left: Code, right: Code): Code {
  if (name === "eq" || name === "ne") return vector(`${shapeOfType[type]}.${name}`, left, right);
  if (type === "f32" || type === "f64") return vector(`${type === "f32" ? "f32x4" : "f64x2"}.${name}`, left, right);
  return vector(`${type === "i32" ? "i32x4" : "i64x2"}.${name}_s`, left, right);
}

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
      invariant(false, "library functions are split before (kernel-library.ts)", expression.function);
    case "choose": {
      // Both branches are computed, because nothing traps.
      const { type } = expression.left;
      const [left, right] = [evaluate(expression.left), evaluate(expression.right)];
      const bound = boundInstruction(expression);
      if (bound !== null) return keepAll(left.map((part, i) => vector(bound, get(at(right, i)), get(part))));
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

/**
 * The smaller or larger of the two that are compared is one instruction of floats. Of NaN, or equal operands, it takes
 * its first, as the choice takes `right`.
 */
function boundInstruction({
  comparison,
  left,
  right,
  then,
  otherwise,
}: Extract<Expression, { kind: "choose" }>): VectorInstruction | null {
  if (left.type !== "f32" && left.type !== "f64") return null;
  if ((comparison !== "lt" && comparison !== "gt") || !isSame(left, then) || !isSame(right, otherwise)) return null;
  return `${left.type === "f32" ? "f32x4" : "f64x2"}.${comparison === "lt" ? "pmin" : "pmax"}`;
}

function isSame(a: Expression, b: Expression): boolean {
  if (a.kind === "operand") return b.kind === "operand" && a.index === b.index;
  return a.kind === "constant" && b.kind === "constant" && Object.is(a.value, b.value);
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

/** The primitives and comparisons of scalar expressions, over one vector of lanes. */
import type { Comparison, Primitive, ScalarType } from "../../numerics/scalar/expression.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import {
  extractLane,
  get,
  number,
  replaceLane,
  scalar,
  shuffleWords,
  vector,
  type VectorInstruction,
} from "../../support/wasm/instructions.ts";
import { shapeOfType, splatConstant } from "./lanes.ts";
import type { Code } from "../../support/wasm/encoding.ts";

/** Takes locals, returns the code of one vector of the result. */
type LanePrimitive = (writer: FunctionWriter, ...operands: readonly number[]) => Code;

const plain =
  (instruction: VectorInstruction): LanePrimitive =>
  (_, ...operands) =>
    vector(instruction, ...operands.map(get));

export const lanePrimitives: { readonly [P in Primitive]: { readonly [T in ScalarType]?: LanePrimitive } } = {
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

export function isShift(primitive: Primitive): primitive is "shl" | "shr" {
  return primitive === "shl" || primitive === "shr";
}

/** Shifts all lanes by one number of bits, in one instruction. */
export function shiftAll(primitive: "shl" | "shr", type: ScalarType, value: number, bits: number): Code {
  const name = primitive === "shl" ? "shl" : "shr_s";
  return vector(`${type === "i64" ? "i64x2" : "i32x4"}.${name}`, [...get(value), ...number(bits)]);
}

export function laneComparison(type: ScalarType, name: Comparison, left: Code, right: Code): Code {
  if (name === "eq" || name === "ne") return vector(`${shapeOfType[type]}.${name}`, left, right);
  if (type === "f32" || type === "f64") return vector(`${type === "f32" ? "f32x4" : "f64x2"}.${name}`, left, right);
  return vector(`${type === "i32" ? "i32x4" : "i64x2"}.${name}_s`, left, right);
}

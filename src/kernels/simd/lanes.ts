/**
 * Groups of four elements. The values of a group are one vector of 32-bit lanes, or two vectors of 64-bit lanes. Groups
 * of all types thus have the same elements, and a conversion between widths stays within its group.
 */
import type { ScalarType } from "../../numerics/scalar/expression.ts";
import type { Value } from "../../numerics/tensor/storage.ts";
import { type Code } from "../../support/wasm/encoding.ts";
import { vectorConstant, type VectorShape } from "../../support/wasm/instructions.ts";

/** The number of elements in a group. */
export const groupElements = 4;

/** v128 locals: one for 32-bit types, two for 64-bit types. */
export type Lanes = readonly number[];

export const shapeOfType: { readonly [T in ScalarType]: VectorShape } = {
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

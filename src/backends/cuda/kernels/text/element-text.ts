/** CUDA C++ for stored elements: their types, and their conversion to values of the dtype's compute type and back. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import type { Expression, ScalarType } from "../../../../numerics/scalar/expression.ts";
import { expressionText } from "./expression-text.ts";

/** The type of a stored element. */
export const storageTypes: { readonly [D in DType]: string } = {
  double: "double",
  float: "float",
  half: "unsigned short",
  bfloat16: "unsigned short",
  int: "int",
  int64: "long long",
  bool: "unsigned char",
};

/** The dtype that stores values of a compute type unchanged; accumulators use it. */
export const accumulatorDTypes: { readonly [T in ScalarType]: DType } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "int64",
};

/** The stored `element` as a value. */
export function decodeElementText(dtype: DType, element: string): string {
  switch (dtype) {
    case "half":
    case "bfloat16":
      return `braid_decode_${dtype}(${element})`;
    case "bool":
      return `(int)${element}`;
    case "double":
    case "float":
    case "int":
    case "int64":
      return element;
  }
}

/** The element to store for `value`. Its last rounding and the packing into 16 bits are one step. */
export function encodeElementText(dtype: DType, value: Expression, operands: readonly string[]): string {
  switch (dtype) {
    case "half":
    case "bfloat16": {
      const text = expressionText(value, operands);
      const rounding = `braid_round_${dtype}`;
      if (value.kind === "round" && value.to === dtype) return `braid_encode_${dtype}${text.slice(rounding.length)}`;
      return `braid_encode_${dtype}(${text})`;
    }
    case "bool":
      return `(unsigned char)${expressionText(value, operands)}`;
    case "double":
    case "float":
    case "int":
    case "int64":
      return expressionText(value, operands);
  }
}

/** The widest type that moves `bytes` (a power of two) in one access, and how many bytes it holds. */
export function accessType(bytes: number): { readonly text: string; readonly bytes: number } {
  if (bytes >= 16) return { text: "uint4", bytes: 16 };
  if (bytes === 8) return { text: "uint2", bytes };
  if (bytes === 4) return { text: "unsigned", bytes };
  return bytes === 2 ? { text: "unsigned short", bytes } : { text: "unsigned char", bytes };
}

export function elementBytes(dtype: DType): number {
  return dtypes[dtype].bytes;
}

/** CUDA C++ for stored elements: their types, and their conversion to values of the dtype's compute type and back. */
import { type DType, dtypes, isPacked } from "../../../../numerics/dtype.ts";
import type { Expression } from "../../../../numerics/scalar/expression.ts";
import { expressionText } from "./expression-text.ts";

/** The stored `element` as a value. */
export function decodeElementText(dtype: DType, element: string): string {
  if (isPacked(dtype)) return `braid_decode_${dtype}(${element})`;
  return dtypes[dtype].family === "bool" ? `(int)${element}` : element;
}

/** The element to store for `value`. Its last rounding and the packing into 16 bits are one step. */
export function encodeElementText(dtype: DType, value: Expression, operands: readonly string[]): string {
  const text = expressionText(value, operands);
  if (!isPacked(dtype)) return dtypes[dtype].family === "bool" ? `(unsigned char)${text}` : text;
  const rounding = `braid_round_${dtype}`;
  if (value.kind === "round" && value.to === dtype) return `braid_encode_${dtype}${text.slice(rounding.length)}`;
  return `braid_encode_${dtype}(${text})`;
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

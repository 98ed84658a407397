/**
 * The text of generated code that reads or writes one element of memory, by dtype. `$float` and similar names are views
 * of the whole memory.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { emitJs } from "../../numerics/scalar/emit-js.ts";
import type { Expression, ScalarType } from "../../numerics/scalar/expression.ts";
import { storageView } from "../../numerics/tensor/storage.ts";
import { keysOf } from "../../support/keys-of.ts";

/** The dtype that stores values of a compute type without conversion, which accumulators in memory use. */
export const accumulatorDType: { readonly [T in ScalarType]: DType } = {
  f64: "double",
  f32: "float",
  i32: "int",
  i64: "int64",
};

interface Coding {
  readonly decode: string;
  readonly encode: string;
}

const codings: { readonly [D in DType]: Coding | null } = {
  double: null,
  float: null,
  half: { decode: "halfToFloat", encode: "floatToHalf" },
  bfloat16: { decode: "bfloat16ToFloat", encode: "floatToBFloat16" },
  int: null,
  int64: null,
  bool: null,
};

/** The environment of a generated function: the views that the texts here refer to. */
export function memoryViews(buffer: ArrayBufferLike): Readonly<Record<string, unknown>> {
  return Object.fromEntries(keysOf(dtypes).map((dtype) => [viewName(dtype), storageView(dtype, buffer)]));
}

function viewName(dtype: DType): string {
  return `$${dtype}`;
}

/** The stored element itself: a word for half and bfloat16. */
export function elementText(dtype: DType, index: string): string {
  return `${viewName(dtype)}[${index}]`;
}

/** The element as a value of the dtype's compute type. */
export function loadText(dtype: DType, index: string): string {
  const coding = codings[dtype];
  const element = elementText(dtype, index);
  return coding === null ? element : `${coding.decode}(${element})`;
}

/**
 * Stores `value`, an expression over `operands`. The last rounding of the value and its packing into a word are one
 * step.
 */
export function storeText(dtype: DType, index: string, value: Expression, operands: readonly string[]): string {
  const coding = codings[dtype];
  const element = elementText(dtype, index);
  if (coding === null) return `${element} = ${emitJs(value, operands)};`;
  const unrounded = value.kind === "round" && value.to === dtype ? value.operand : value;
  return `${element} = ${coding.encode}(${emitJs(unrounded, operands)});`;
}

/**
 * Converts a byte address in a variable to an element index. Addresses are unsigned, because memory may be larger than
 * 2 GiB.
 */
export function addressAsIndex(dtype: DType, address: string): string {
  return `(${address} >>> ${Math.log2(dtypes[dtype].bytes)})`;
}

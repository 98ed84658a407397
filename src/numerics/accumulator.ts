/** What a back end adds and computes in, by the dtype of the elements: half and bfloat16 are rounded once, at the end. */
import type { DType } from "./dtype.ts";

export const accumulatorOf: { readonly [K in DType]: DType } = {
  double: "double",
  float: "float",
  half: "float",
  bfloat16: "float",
  int: "int",
  int64: "int64",
  bool: "bool",
};

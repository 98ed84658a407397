/**
 * The dtype in which operands of different dtypes meet, as PyTorch and nvFuser promote tensors: the wider of the two,
 * floats above integers above bool. half and bfloat16 hold neither each other's range nor precision and meet in float.
 */
import type { DType } from "../../numerics/dtype.ts";

const rank: { readonly [K in DType]: number } = {
  bool: 0,
  int: 1,
  int64: 2,
  half: 3,
  bfloat16: 3,
  float: 4,
  double: 5,
};

/** The dtype of an elementwise op on `a` and `b`, as PyTorch promotes tensors. */
export function promoteDTypes(a: DType, b: DType): DType {
  if (a === b) return a;
  if (rank[a] === rank[b]) return "float";
  return rank[a] > rank[b] ? a : b;
}

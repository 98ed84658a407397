/** What a reduction of no elements is: the element that changes no other one. */
import type { ReductionOpType } from "../ir/ops/op.ts";
import type { DType } from "../numerics/dtype.ts";
import type { Element } from "./value.ts";

/** The least and the greatest element of each dtype. */
const limits: { readonly [D in DType]: readonly [Element, Element] } = {
  double: [-Infinity, Infinity],
  float: [-Infinity, Infinity],
  half: [-Infinity, Infinity],
  bfloat16: [-Infinity, Infinity],
  int: [-2147483648, 2147483647],
  int64: [-9223372036854775808n, 9223372036854775807n],
  bool: [0, 1],
};

export function emptyReduction(op: ReductionOpType, dtype: DType): Element {
  const [least, greatest] = limits[dtype];
  if (op === "amax") return least;
  if (op === "amin") return greatest;
  const value = op === "sum" ? 0 : 1;
  return dtype === "int64" ? BigInt(value) : value;
}

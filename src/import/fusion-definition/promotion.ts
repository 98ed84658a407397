/** The dtypes of nvFuser's elementwise ops, which are not PyTorch's: floats of 16 bits become float. */
import * as ops from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { promoteDTypes } from "../../ir/ops/dtype-rules.ts";
import { type DType, dtypes, isPacked } from "../../numerics/dtype.ts";
import { raised } from "../views.ts";

/** A number of the text: a Double, an Int or a Bool. */
export interface FusionScalar {
  readonly value: number;
  readonly dtype: "double" | "int64" | "bool";
}

export type FusionOperand = TensorView | FusionScalar;

export function isScalar(operand: FusionOperand): operand is FusionScalar {
  return "value" in operand;
}

export interface PromotionRule {
  /** Integers become float. */
  readonly floats?: true;
  /** Floats of 16 bits stay. */
  readonly keeps16?: true;
}

/** Tensors with axes decide, then those without, then scalars: a float wins over integers, and an integer over bool. */
export function promotedDType(operands: readonly FusionOperand[], { floats, keeps16 }: PromotionRule = {}): DType {
  const joined = (of: (operand: FusionOperand) => boolean): DType | null =>
    operands
      .filter(of)
      .reduce<DType | null>((all, { dtype }) => (all === null ? dtype : promoteDTypes(all, dtype)), null);
  const scalars = joined(isScalar);
  const points = joined((each) => !isScalar(each) && each.rank === 0);
  const dtype =
    combined(
      joined((each) => !isScalar(each) && each.rank > 0),
      combined(points, scalars),
    ) ?? "float";
  if (isPacked(dtype) && keeps16 !== true) return "float";
  return floats === true && dtypes[dtype].family !== "float" ? "float" : dtype;
}

function combined(higher: DType | null, lower: DType | null): DType | null {
  if (higher === null || lower === null) return higher ?? lower;
  const [first, second] = [dtypes[higher].family, dtypes[lower].family];
  const decides = first === "float" || (first === "integer" && second !== "float");
  return decides ? higher : promoteDTypes(higher, lower);
}

export function asDType(tensor: TensorView, dtype: DType): TensorView {
  return tensor.dtype === dtype ? tensor : ops.cast(tensor, dtype);
}

/** Most axes of the operands, to which all are raised. */
export function commonRank(operands: readonly FusionOperand[]): number {
  return Math.max(...operands.map((each) => (isScalar(each) ? 0 : each.rank)));
}

/** Of the dtype, with leading axes of extent 1 up to `rank`; scalars as numbers. */
export function promotedOperand(operand: FusionOperand, dtype: DType, rank: number): TensorView | number {
  return isScalar(operand) ? operand.value : raised(asDType(operand, dtype), rank);
}

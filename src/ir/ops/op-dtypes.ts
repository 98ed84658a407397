/**
 * Which dtypes an op takes, and the dtype of its output. Ops do not promote: the API inserts casts before them
 * (api/ops.ts), so that every conversion is an op of the Fusion.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { unreachable } from "../../support/unreachable.ts";
import { type Call, reject } from "./call.ts";
import type { Tensor } from "../domain.ts";
import { reductionFunctions } from "./functions/reduction.ts";
import { unaryFunctions } from "./functions/unary.ts";
import type { OpSpec } from "./op-spec.ts";

/** The output's dtype. Throws `dtype-mismatch`. */
export function requireDTypes(spec: OpSpec, operands: readonly Tensor[], place: Call): DType {
  const dtype = at(operands, 0).dtype;
  switch (spec.kind) {
    case "Set":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Reshape":
    case "Slice":
    case "Select":
      return dtype;
    case "Cast":
      return spec.to;
    case "Unary":
      requireArithmetic(dtype, place);
      if (unaryFunctions[spec.op].operand === "float") requireFloat(dtype, spec.op, place);
      return dtype;
    case "Reduction":
      // amax and amin of bool are `or` and `and`.
      if (reductionFunctions[spec.op].operand === "number") requireArithmetic(dtype, place);
      return dtype;
    case "Binary":
    case "Matmul":
    case "Linear":
      requireArithmetic(requireSame(operands, place), place);
      return dtype;
    default:
      return unreachable(spec);
  }
}

function requireSame(operands: readonly Tensor[], place: Call): DType {
  const { dtype } = at(operands, 0);
  if (operands.every((operand) => operand.dtype === dtype)) return dtype;
  return reject(place, {
    code: "dtype-mismatch",
    message: "the operands have different dtypes",
    found: operands.map((operand) => `T${operand.id} ${operand.dtype}`).join(", "),
    expected: "operands of one dtype",
    help: "convert with cast(tensor, dtype)",
  });
}

function requireArithmetic(dtype: DType, place: Call): void {
  if (dtypes[dtype].family !== "bool") return;
  reject(place, {
    code: "dtype-mismatch",
    message: "arithmetic on bool",
    found: "bool",
    expected: "a float or integer dtype",
    help: 'convert first, for example cast(tensor, "int")',
  });
}

function requireFloat(dtype: DType, op: string, place: Call): void {
  if (dtypes[dtype].family === "float") return;
  reject(place, {
    code: "dtype-mismatch",
    message: `${op} of a tensor that is not floating-point`,
    found: dtype,
    expected: "double, float, half or bfloat16",
    help: 'convert first, for example cast(tensor, "float")',
  });
}

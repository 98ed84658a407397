/** A tensor of one value. */
import { type DType, dtypes } from "../../../../numerics/dtype.ts";
import type { Scalar } from "../../../scalar/scalar.ts";
import { type Call, reject } from "../../call.ts";
import { numberText, requireNumberFits } from "../../number-operand.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { created, createdLike } from "./created.ts";

export interface FullOp extends OpBase {
  readonly kind: "Full";
  /** As JavaScript writes the number: `0.5`, `-0`, `Infinity`. Of bool `0` or `1`. */
  readonly value: string;
}

/** Throws `bad-argument` for a value that the dtype does not have. */
export function fullSpec(
  extents: readonly Scalar[],
  value: number | bigint | boolean,
  dtype: DType,
  place: Call,
): SpecOf<FullOp> {
  const text = numberText(typeof value === "boolean" ? Number(value) : value);
  if (dtypes[dtype].family !== "bool") requireNumberFits({ position: 0, text }, dtype, place);
  else if (text !== "0" && text !== "1") rejectBool(text, place);
  return { kind: "Full", value: text, extents, dtype };
}

function rejectBool(found: string, place: Call): never {
  return reject(place, {
    code: "bad-argument",
    message: "a tensor of bool is filled with a number",
    found,
    expected: "true, false, 0 or 1",
    help: "pass true or false",
  });
}

export const fullRow: OpRow<FullOp> = {
  ...created,
  standalone: false,
  respec: ({ value }, _, output) => ({ kind: "Full", value, ...createdLike(output) }),
};

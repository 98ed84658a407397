/** `start + i * step` along one axis, where i is the index in the whole tensor. */
import type { DType } from "../../../../numerics/dtype.ts";
import type { Scalar } from "../../../scalar/scalar.ts";
import { type Call, reject } from "../../call.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { created, createdLike } from "./created.ts";

export interface IotaOp extends OpBase {
  readonly kind: "Iota";
  readonly start: Scalar;
  readonly step: Scalar;
}

/** Throws `dtype-mismatch`. */
export function iotaSpec(extent: Scalar, start: Scalar, step: Scalar, dtype: DType, place: Call): SpecOf<IotaOp> {
  if (dtype === "int" || dtype === "int64") return { kind: "Iota", start, step, extents: [extent], dtype };
  return reject(place, {
    code: "dtype-mismatch",
    message: "iota counts in integers",
    found: dtype,
    expected: "int or int64",
    help: `convert its result: cast(iota(...), "${dtype}")`,
  });
}

export const iotaRow: OpRow<IotaOp> = {
  ...created,
  standalone: true,
  respec: ({ start, step }, _, output) => ({ kind: "Iota", start, step, ...createdLike(output) }),
};

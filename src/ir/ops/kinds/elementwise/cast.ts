/** Converts elements to the output's dtype. */
import type { DType } from "../../../../numerics/dtype.ts";
import { withoutReductions } from "../../../domain.ts";
import { at } from "../../../../support/invariant.ts";
import type { OpBase, OpRow } from "../../row.ts";
import { elementwise } from "../families.ts";

export interface CastOp extends OpBase {
  readonly kind: "Cast";
  /** Equals the output's dtype. */
  readonly to: DType;
}

export const castRow: OpRow<CastOp> = {
  ...elementwise,
  operands: [1, 1],
  standalone: false,
  dtype: ({ to }) => to,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
  flops: () => 0,
};

/** An elementwise function of one operand (a row of functions/unary.ts). */
import { withoutReductions } from "../../../domain.ts";
import { at } from "../../../../support/invariant.ts";
import { functionDType } from "../../dtype-rules.ts";
import { unaryFunctions, type UnaryOpType } from "../../functions/unary.ts";
import type { OpBase, OpRow } from "../../row.ts";
import { countOf, elementwise } from "../families.ts";

export interface UnaryOp extends OpBase {
  readonly kind: "Unary";
  readonly op: UnaryOpType;
}

export const unaryRow: OpRow<UnaryOp> = {
  ...elementwise,
  operands: [1, 1],
  standalone: false,
  dtype: ({ op }, operands, place) => functionDType(op, unaryFunctions[op].operand, operands, place),
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
  work: ({ op }, { output }) => unaryFunctions[op].work * countOf(output),
};

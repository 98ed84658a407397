/**
 * An elementwise function of a bool tensor and two values (a row of functions/ternary.ts), which have equal rank. One
 * value may be a number. Axes join as those of a binary op.
 */
import type { Tensor } from "../../../domain.ts";
import { type Call, reject } from "../../call.ts";
import { functionDType } from "../../dtype-rules.ts";
import type { TernaryOpType } from "../../functions/ternary.ts";
import { type NumberOperand, requireNumberFits } from "../../number-operand.ts";
import type { OpBase, OpRow, SpecOf } from "../../row.ts";
import { elementwise } from "../families.ts";
import { joinedAxes } from "./binary.ts";

export interface TernaryOp extends OpBase {
  readonly kind: "Ternary";
  readonly op: TernaryOpType;
  /** The value that is a number. The op then has two inputs. */
  readonly scalar?: NumberOperand<1 | 2>;
}

export const ternaryRow: OpRow<TernaryOp> = {
  ...elementwise,
  operands: [2, 3],
  standalone: false,
  dtype: (spec, operands, place) => {
    requireThree(spec, operands, place);
    functionDType(spec.op, "bool", operands.slice(0, 1), place);
    const dtype = functionDType(spec.op, "any", operands.slice(1), place);
    if (spec.scalar !== undefined) requireNumberFits(spec.scalar, dtype, place);
    return dtype;
  },
  shape: (_, operands, place) => ({ axes: joinedAxes(operands, place) }),
  respec: (op) => op,
};

function requireThree({ op, scalar }: SpecOf<TernaryOp>, operands: readonly Tensor[], place: Call): void {
  if (operands.length === (scalar === undefined ? 3 : 2)) return;
  reject(place, {
    code: "bad-argument",
    message: `${op} takes a condition and two values, of which one may be a number`,
    found: operands.map(({ id }) => `T${id}`).join(", "),
    expected: "three operands",
    help: "give the op three operands",
  });
}

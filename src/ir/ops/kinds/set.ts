/** A copy. The input and output may have different shardings. */
import { withoutReductions } from "../../domain.ts";
import { at } from "../../../support/invariant.ts";
import { zip } from "../axis-pairs.ts";
import type { OpBase, OpRow } from "../row.ts";
import { view } from "./families.ts";

export interface SetOp extends OpBase {
  readonly kind: "Set";
}

export const setRow: OpRow<SetOp> = {
  ...view,
  standalone: true,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
  pairs: (_, operands, output) => zip(0, at(operands, 0), withoutReductions(output)),
};

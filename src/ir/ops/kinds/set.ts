/** A copy. The input and output may have different shardings. */
import { withoutReductions } from "../../domain.ts";
import { at } from "../../../support/invariant.ts";
import type { OpBase, OpRow } from "../row.ts";
import { axisView, sourcesWithout } from "./families.ts";

export interface SetOp extends OpBase {
  readonly kind: "Set";
}

export const setRow: OpRow<SetOp> = {
  ...axisView<SetOp>((_, rank) => sourcesWithout([], rank, 0)),
  standalone: true,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
};

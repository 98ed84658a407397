/** A copy. The input and output may be sharded differently. */
import { withoutReductions } from "../../../domain.ts";
import { at } from "../../../../support/invariant.ts";
import type { OpBase, OpRow } from "../../row.ts";
import { axisView, sourcesWithout } from "../families.ts";

export interface SetOp extends OpBase {
  readonly kind: "Set";
  /** Whether every device has all of what it gets, so that nothing is sent although the shardings differ. */
  readonly local?: true;
}

export const setRow: OpRow<SetOp> = {
  ...axisView<SetOp>((_, rank) => sourcesWithout([], rank, 0)),
  standalone: true,
  shape: (_, operands) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  respec: (op) => op,
};

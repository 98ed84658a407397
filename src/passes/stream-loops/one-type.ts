/** A loop over the shares of one DID type changes the sharding along no other type. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { DIDType, Tensor } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { opPlace } from "../op-text.ts";
import { reshardedOperands } from "../routes/sharding.ts";

/** Throws `resharding-unsupported`. */
export function requireOneType(op: Op, type: DIDType, tensors: readonly Tensor[]): void {
  const other = reshardedOperands(op, tensors)
    .flatMap(({ types }) => types)
    .find((candidate) => candidate !== type);
  if (other === undefined) return;
  fail({
    code: "resharding-unsupported",
    message: `a tensor changes its sharding along ${other} where its ${type} axis becomes a Stream axis`,
    place: opPlace(op),
    found: `changes along ${type} and ${other}`,
    expected: `a change along ${type} alone`,
    help: "put set() between the two tensors and give it the sharding after the first change",
  });
}

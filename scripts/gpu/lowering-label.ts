/** Names lowering options in rows. */
import type { LoweringOptions } from "../../src/passes/options.ts";

export function labelOf({
  backend,
  protocol,
  p2p,
  insertReshardingAfter,
  interStreamSync,
}: Partial<LoweringOptions>): string {
  return [
    backend,
    protocol,
    p2p,
    insertReshardingAfter === true ? "resharding after" : null,
    interStreamSync === true ? "streams synchronized" : null,
  ]
    .filter(Boolean)
    .join(", ");
}

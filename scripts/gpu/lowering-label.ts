/** How rows name lowering options, and which of them run as graphs. */
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

type Graph = "on" | "off";

/** Whether a program runs as asked for: a fake NCCL, for one, cannot be captured. */
export type GraphOf = (lowering: Partial<LoweringOptions>, asked: Graph) => Graph;

export const graphsWhereAsked: GraphOf = (_, asked) => asked;

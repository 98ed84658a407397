/** Names lowering options in rows, and tells which of them run as graphs. */
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

/** The use of graphs for a program: a fake NCCL, for example, cannot be captured. */
export type GraphOf = (lowering: Partial<LoweringOptions>, asked: Graph) => Graph;

export const graphsWhereAsked: GraphOf = (_, asked) => asked;

/** Collectives of groups of ranks, in a graph that computes one rank's parts. */
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { DevicePart, ManualSizes } from "../manual/parts.ts";
import type { GraphNode } from "./graph.ts";

/** A collective, and the tensor of the rank's program that it reads. */
export interface GroupCollective {
  readonly node: GraphNode;
  readonly operand: TensorView;
  /** As the file names it. */
  readonly group: string;
  /** The number of its ranks; null where the op does not say it. */
  readonly size: number | null;
  readonly run: RunOnParts;
}

/** `dims`: the dimensions of the mesh along which the group lies. */
export type RunOnParts = (sizes: ManualSizes, part: DevicePart, dims: readonly string[]) => DevicePart;

const isCollectiveName = /^torch\.ops\.(?:_c10d_functional(?:_autograd)?|_dtensor)\.(?!wait_tensor)/u;

export function isCollective({ target }: GraphNode): boolean {
  return isCollectiveName.test(target);
}

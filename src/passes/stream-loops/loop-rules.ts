/** The rules that keep communication out of a loop, each with the reason that users read. */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { axisText } from "../op-text.ts";
import { streamAxis } from "../../ir/stream.ts";
import type { FusionObstacle } from "./group/group-loops.ts";

/**
 * overlap: Stream axes are ignored. stream: neither op has one. neighbour: only the communication has one. annotated:
 * the user placed the moved tensor without one. whole: the loop beside it reads the tensor whole. inserted: the
 * compiler moves the tensor without one, as where a chunk is no run of what a device has. axis, extent, chunks, overwrites, otherChunk: both have one, and do not fit. peers: an exchange
 in the loop has devices at different chunks. alone: they share a loop in which nothing computes. path: an op outside of
 * the loop is between the two.
 */
export type LoopRule =
  "overlap" | "stream" | "neighbour" | "annotated" | "whole" | "inserted" | FusionObstacle | "peers" | "alone" | "path";

interface RuleContext {
  /** The op that moves a tensor. */
  readonly op: Op;
  /** The first output of the op beside it. */
  readonly made: TensorId;
  /** Whether the op beside it reads the moved tensor; otherwise it makes the tensor that moves. */
  readonly isReader: boolean;
  readonly tensors: readonly Tensor[];
}

export const loopRules: { readonly [R in LoopRule]: (context: RuleContext) => string } = {
  overlap: () => "the option overlap is off, so Stream axes are ignored",
  stream: ({ made }) => `T${made} has no Stream axis`,
  neighbour: ({ op, made }) => `T${op.output} has Stream, and T${made} has not`,
  annotated: ({ op, made }) => `T${op.output} is annotated without Stream, and T${made} with it`,
  whole: ({ op, made, tensors }) =>
    `the loop over ${streamText(at(tensors, made))} reads all of T${op.output} in each iteration`,
  inserted: ({ op, made, tensors }) =>
    `the compiler moves T${op.output} as a whole, not by chunks of ${streamText(at(tensors, made))}`,
  axis: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different indices`,
  extent: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different extents`,
  chunks: ({ op, made, tensors }) =>
    `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} are cut into different chunks`,
  overwrites: ({ op, made }) => `T${op.output} or T${made} overwrites a tensor that the loop uses`,
  otherChunk: ({ op, made, isReader, tensors }) =>
    isReader
      ? `an iteration over ${streamText(at(tensors, made))} needs more of T${op.output} than its own chunk`
      : `an iteration over ${streamText(at(tensors, op.output))} needs more of T${made} than its own chunk`,
  peers: ({ op, made }) =>
    `devices exchange chunks in turn, and T${op.output} and T${made} would need them at the same chunk`,
  alone: ({ op, made }) => `the loop of T${op.output} and T${made} has no op that computes`,
  path: ({ op, made }) => `an op outside of the loop is on a path between T${op.output} and T${made}`,
};

/** `axis 0 of T2 (Stream)`. */
function streamText(tensor: Tensor): string {
  const axis = streamAxis(tensor);
  return axis === null ? `T${tensor.id}` : axisText(tensor, axis);
}

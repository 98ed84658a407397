/** The rules that keep communication out of a loop, each with the reason and the fix that users read. */
import type { PostOnStream } from "../../host/nodes.ts";
import { isOp } from "../../host/traverse.ts";
import { isDID, type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { axisText } from "../op-text.ts";
import { streamAxis } from "../reshard/sharding.ts";
import type { FusionObstacle } from "./group/group-loops.ts";

/**
 * overlap: Stream axes are ignored. stream: neither op has one. neighbour: only the communication has one. annotated:
 * the user placed the moved tensor without one. whole: the loop beside it reads the tensor whole. cut: a chunk is no run
 * of what a device has. axis, extent, chunks, overwrites, otherChunk: both have one, and do not fit. peers: an exchange
 in the loop has devices at different chunks. alone: they share a loop in which nothing computes. path: an op outside of
 * the loop is between the two.
 */
export type LoopRule =
  "overlap" | "stream" | "neighbour" | "annotated" | "whole" | "cut" | FusionObstacle | "peers" | "alone" | "path";

interface RuleContext {
  /** The op that moves a tensor. */
  readonly op: Op;
  readonly beside: Op | PostOnStream;
  /** The first output of the op beside it. */
  readonly made: TensorId;
  /** Whether the op beside it reads the moved tensor; otherwise it makes the tensor that moves. */
  readonly isReader: boolean;
  readonly tensors: readonly Tensor[];
}

interface RuleText {
  readonly because: string;
  readonly fix: string;
}

export const loopRules: { readonly [R in LoopRule]: (context: RuleContext) => RuleText } = {
  overlap: () => ({
    because: "the option overlap is off, so Stream axes are ignored",
    fix: "leave --no-overlap out",
  }),
  stream: (context) => ({
    because: `T${context.made} has no Stream axis`,
    fix: streamEdit(context),
  }),
  neighbour: (context) => ({
    because: `T${context.op.output} has Stream, and T${context.made} has not`,
    fix: streamEdit(context),
  }),
  annotated: ({ op, made, tensors }) => ({
    because: `T${op.output} is annotated without Stream, and T${made} with it`,
    fix: `give T${op.output} the Stream axis of T${made}, or leave its annotation out (${streamText(at(tensors, made))})`,
  }),
  whole: (context) => ({
    because: `the loop over ${streamText(at(context.tensors, context.made))} reads all of T${context.op.output} in each iteration`,
    fix: streamEdit(context),
  }),
  cut: ({ op, made, tensors }) => ({
    because: `a chunk of ${streamText(at(tensors, made))} is not one run of what a device has of T${op.output}`,
    fix: "split the axis by the number of chunks first, and its inner part by the devices",
  }),
  axis: ({ op, made, tensors }) => ({
    because: `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different indices`,
    fix: `put Stream on the axis of T${made} that T${op.output} has too`,
  }),
  extent: ({ op, made, tensors }) => ({
    because: `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} have different extents`,
    fix: "put Stream on an axis of one extent in both, before one is broadcast to the other",
  }),
  chunks: ({ op, made, tensors }) => ({
    because: `${streamText(at(tensors, op.output))} and ${streamText(at(tensors, made))} are cut into different chunks`,
    fix: `split both into as many chunks: T.outerSplit(axis, chunks).parallelize("Stream")`,
  }),
  overwrites: ({ op, made }) => ({
    because: `T${op.output} or T${made} overwrites a tensor that the loop uses`,
    fix: "let it write another tensor",
  }),
  otherChunk: ({ op, made, isReader, tensors }) => ({
    because: isReader
      ? `an iteration over ${streamText(at(tensors, made))} needs more of T${op.output} than its own chunk`
      : `an iteration over ${streamText(at(tensors, op.output))} needs more of T${made} than its own chunk`,
    fix: `put Stream on an axis that both T${op.output} and T${made} keep`,
  }),
  peers: ({ op, made }) => ({
    because: `devices exchange chunks in turn, and T${op.output} and T${made} would need them at the same chunk`,
    fix: "--p2p broadcast: all devices are at one chunk",
  }),
  alone: ({ op, made }) => ({
    because: `the loop of T${op.output} and T${made} has no op that computes`,
    fix: `give an op that reads T${op.output} or T${made} the same Stream axis`,
  }),
  path: ({ op, made }) => ({
    because: `an op outside of the loop is on a path between T${op.output} and T${made}`,
    fix: "give the ops between the two the same Stream axis",
  }),
};

/** `axis 0 of T2 (Stream)`. */
function streamText(tensor: Tensor): string {
  const axis = streamAxis(tensor);
  return axis === null ? `T${tensor.id}` : axisText(tensor, axis);
}

/** The edit that gives the op beside it a loop which the communication fits. */
function streamEdit({ op, beside, made, isReader, tensors }: RuleContext): string {
  const tensor = at(tensors, made);
  const kept = new Set(
    isOp(beside) && isReader ? keptAxes(beside, op.output, tensors) : withoutReductions(tensor.domain.logical),
  );
  const axis = withoutReductions(tensor.domain.loop).findIndex(
    (each) => kept.has(each) && !isDID(each.parallelType) && each.parallelType !== "Stream",
  );
  if (axis < 0)
    return `no whole axis of T${made} comes from T${op.output}: keep the operand sharded, and move another one`;
  const remove = streamAxis(tensor) === null ? "" : `, instead of ${streamText(tensor)}`;
  return `T${made}.outerSplit(${axis}, chunks).parallelize("Stream")${remove}`;
}

/** The axes of the op's output that come from the operand, and that it does not reduce. */
function keptAxes(op: Op, operand: TensorId, tensors: readonly Tensor[]): readonly IterDomain[] {
  return axisMap(op, tensors)
    .filter(
      ({ operand: which, broadcast, consumer }) =>
        op.inputs[which] === operand && !broadcast && consumer.iterType !== "reduction",
    )
    .map(({ consumer }) => consumer);
}

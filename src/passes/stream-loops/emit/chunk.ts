/**
 * One chunk of an axis of a tensor (ShardByStream). It keeps the axis, and prints the number of chunks as a Stream axis
 * before it, as nvFuser does:
 *
 *   T5_l_float[istreamIdx22{3}, iS23{( ceilDiv(i0, 3) )}, iS21{i2}] = ShardByStream(T0, stream_index = streamIdx)
 */
import { type CutAxis, cutOf, loopAxesOf, type Part, rescaled, withTypes } from "../../../ir/parts.ts";
import { didTypesOf, outermostTypes } from "../../../ir/shards.ts";
import {
  isDID,
  isUnitAxis,
  type IterDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../../ir/domain.ts";
import { foldCeilDiv, foldProduct } from "../../../ir/scalar/fold.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { ShardByStream } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { type ModelledAxis, splitLike } from "../../edit/split-axes.ts";
import { addAxis, addTensor, copyAxes, type TensorEdit } from "../../edit/tensor-edit.ts";
import { chunkFit, type Chunks } from "../../../ir/stream.ts";

export interface ChunkStatement {
  readonly slice: TensorId;
  readonly binding: readonly [ShardByStream];
}

/** Chunk `index` of `tensor` along `axis`. */
export function chunkAt(
  edit: TensorEdit,
  id: TensorId,
  axis: IterDomain,
  chunks: Chunks,
  index: Scalar,
): ChunkStatement {
  const tensor = at(edit.tensors, id);
  return bindChunk(edit, tensor, axis, chunks.parts, index, chunkModel(tensor, axis, chunks));
}

/** Piece `index` of `pieces` of this device's share of `axis`, as a tensor of which every device has a whole one. */
export function shareAt(
  edit: TensorEdit,
  id: TensorId,
  axis: IterDomain,
  share: { readonly pieces: Scalar; readonly extent: Scalar },
  index: Scalar,
): ChunkStatement {
  const tensor = at(edit.tensors, id);
  const whole: IterDomain = { ...axis, extent: share.extent, parallelType: "Serial" };
  return bindChunk(edit, tensor, axis, share.pieces, index, { axis: whole, model: null });
}

function bindChunk(
  edit: TensorEdit,
  tensor: Tensor,
  axis: IterDomain,
  parts: Scalar,
  index: Scalar,
  chunk: ModelledAxis,
): ChunkStatement {
  const kept = tensor.domain.logical;
  let stream: IterDomain | null = null;
  const axes = kept.map((own): ModelledAxis => {
    const isChunked = own.id === axis.id;
    if (isChunked) stream = { ...addAxis(edit, { extent: parts, iterType: "iteration" }), parallelType: "Stream" };
    const [copy] = copyAxes(edit, [isChunked ? chunk.axis : own], ({ parallelType }) =>
      parallelType === "Stream" ? "Serial" : parallelType,
    );
    return {
      axis: copy ?? own,
      model: isChunked ? chunk.model : withTypes(cutOf(tensor.domain, own), (type) => type !== "Stream"),
    };
  });
  const position = kept.findIndex(({ id }) => id === axis.id);
  const plain = splitLike(edit, axes);
  const [first] = loopAxesOf(plain, at(plain.logical, position));
  const loop = plain.loop.flatMap((own) => (own.id === first?.id && stream !== null ? [stream, own] : [own]));
  const made = addTensor(edit, tensor, { ...plain, loop }, tensor.mesh, "local", "chunk");
  return {
    slice: made.id,
    binding: [
      {
        kind: "ShardByStream",
        input: tensor.id,
        output: made.id,
        axis: withoutReductions(kept.slice(0, position)).length,
        parts,
        index,
        swizzled: false,
      },
    ],
  };
}

/** One chunk of the axis, shared among the devices as the axis is. */
export function chunkModel({ domain }: Tensor, axis: IterDomain, chunks: Chunks): ModelledAxis {
  const own = withTypes(cutOf(domain, axis), isDID);
  const blocks = own.parts.slice(0, outermostTypes(own).length);
  const block = blocks.reduce((rest, { extent: devices }) => foldCeilDiv(rest, devices), axis.extent);
  // The longest chunk of each of the blocks that the outermost types cut. Of one element, one block has it.
  const longest = foldProduct([foldCeilDiv(block, chunks.parts), ...blocks.map((part) => part.extent)]);
  const extent = isUnitAxis(axis) ? axis.extent : longest;
  const chunk: IterDomain = { ...axis, extent, parallelType: "Serial" };
  if (didTypesOf(own).length === 0) return { axis: chunk, model: null };
  const fit = chunkFit(own, chunks);
  return { axis: chunk, model: fit.kind === "fits" ? withoutChunks(fit.cut, extent) : own };
}

/** The axis without its Stream part: the parts inside of it take the place of both. */
function withoutChunks({ parts }: CutAxis, extent: Scalar): CutAxis {
  const position = parts.findIndex(({ type }) => type === "Stream");
  const outer: Part[] = [];
  let length = extent;
  for (const part of parts.slice(0, position)) {
    length = foldCeilDiv(length, part.extent);
    outer.push({ ...part, stride: length });
  }
  const inner = rescaled({ extent: at(parts, position).stride, parts: parts.slice(position + 1) }, length);
  return { extent, parts: [...outer, ...inner.parts] };
}

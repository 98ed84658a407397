/**
 * One chunk of an axis of a tensor (ShardByStream). It keeps the axis, and prints the number of chunks as a Stream axis
 * before it, as nvFuser does:
 *
 *   T5_l_float[istreamIdx22{3}, iS23{( ceilDiv(i0, 3) )}, iS21{i2}] = ShardByStream(T0, stream_index = streamIdx)
 */
import { axisParts, outermostTypes } from "../../../ir/axis-shards.ts";
import {
  isDID,
  isUnitAxis,
  type IterDomain,
  type IterDomainId,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../../ir/domain.ts";
import { foldCeilDiv, foldProduct } from "../../../ir/scalar/fold.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { ShardByStream } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import {
  addAxis,
  addTensor,
  copyAxes,
  type ModelledAxis,
  modelOf,
  splitLike,
  type SplitModel,
  type TensorEdit,
} from "../../edit/tensor-edit.ts";
import { chunkFit, type Chunks } from "../stream-part.ts";

export interface Chunk {
  readonly slice: TensorId;
  readonly binding: readonly [ShardByStream];
}

/** Chunk `index` of `tensor` along `axis`. */
export function chunkAt(edit: TensorEdit, id: TensorId, axis: IterDomain, chunks: Chunks, index: Scalar): Chunk {
  const tensor = at(edit.tensors, id);
  const fit = chunkFit(tensor, axis, chunks);
  const model = chunkModel(tensor, axis, chunks.parts, fit.kind === "fits" ? fit.part : null);
  return bindChunk(edit, tensor, axis, chunks.parts, index, model);
}

/** Piece `index` of `pieces` of this device's share of `axis`, as a tensor of which every device has a whole one. */
export function shareAt(
  edit: TensorEdit,
  id: TensorId,
  axis: IterDomain,
  share: { readonly pieces: Scalar; readonly extent: Scalar },
  index: Scalar,
): Chunk {
  const tensor = at(edit.tensors, id);
  const whole: IterDomain = { ...axis, extent: share.extent, parallelType: "Serial" };
  return bindChunk(edit, tensor, axis, share.pieces, index, { axis: whole, model: null });
}

/** An axis to copy, with the splits that the copy gets. */
interface Modelled {
  readonly axis: IterDomain;
  readonly model: SplitModel | null;
}

function bindChunk(
  edit: TensorEdit,
  tensor: Tensor,
  axis: IterDomain,
  parts: Scalar,
  index: Scalar,
  chunk: Modelled,
): Chunk {
  const kept = tensor.domain.logical;
  let stream: IterDomain | null = null;
  const axes = kept.map((own): ModelledAxis => {
    const isChunked = own.id === axis.id;
    if (isChunked) stream = { ...addAxis(edit, { extent: parts, iterType: "iteration" }), parallelType: "Stream" };
    const [copy] = copyAxes(edit, [isChunked ? chunk.axis : own], ({ parallelType }) =>
      parallelType === "Stream" ? "Serial" : parallelType,
    );
    return { axis: copy ?? own, model: isChunked ? chunk.model : modelOf(tensor, own, withoutStream) };
  });
  const position = kept.findIndex(({ id }) => id === axis.id);
  const plain = splitLike(edit, axes);
  const [first] = axisParts(plain, at(plain.logical, position));
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

function withoutStream<T extends string>(type: T): T | "Serial" {
  return type === "Stream" ? "Serial" : type;
}

/** The axis without the split that made its part `dropped`: the part inside of it takes the place of both. */
export function chunkModel(tensor: Tensor, axis: IterDomain, parts: Scalar, dropped: IterDomainId | null): Modelled {
  const { domain } = tensor;
  const blocks = axisParts(domain, axis).slice(0, outermostTypes(domain, axis).length);
  const block = blocks.reduce((rest, { extent: devices }) => foldCeilDiv(rest, devices), axis.extent);
  // The longest chunk of each of the blocks that the outermost types cut. Of one element, one block has it.
  const longest = foldProduct([foldCeilDiv(block, parts), ...blocks.map((own) => own.extent)]);
  const extent = isUnitAxis(axis) ? axis.extent : longest;
  const chunk: IterDomain = { ...axis, extent, parallelType: "Serial" };
  const split = domain.transforms.find((each) => each.kind === "split" && each.outer === dropped);
  const isWhole = axisParts(domain, axis).every(({ id, parallelType }) => id === dropped || !isDID(parallelType));
  if (isWhole || (split !== undefined && split.kind !== "split")) return { axis: chunk, model: null };
  const renamed = (id: IterDomainId): IterDomainId => (split !== undefined && id === split.inner ? split.input : id);
  const transforms = domain.transforms.flatMap((each) =>
    each === split ? [] : [each.kind === "split" ? { ...each, input: renamed(each.input) } : each],
  );
  const loop = domain.loop.map((each) => ({ ...each, id: renamed(each.id) }));
  const model = modelOf({ ...tensor, domain: { ...domain, transforms, loop } }, chunk, withoutStream);
  return { axis: chunk, model };
}

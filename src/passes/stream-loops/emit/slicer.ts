/**
 * Makes the slices of one Stream loop: an index of a whole axis (HirAliasSelect), or a chunk that keeps the axis
 * (ShardByStream).
 */
import { fail } from "../../../diagnostics/diagnostic.ts";
import type { HirAliasSelect, ShardByStream } from "../../../host/nodes.ts";
import {
  type IterDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
  isDID,
  isUnitAxis,
} from "../../../ir/domain.ts";
import { operandAxes } from "../../../ir/ops/axis-map.ts";
import type { Op } from "../../../ir/ops/op.ts";
import { rowOf } from "../../../ir/ops/rows.ts";
import { cutOf, withTypes, type CutAxis, loopAxesOf, type Part, rescaled } from "../../../ir/parts.ts";
import { extentsDiffer, foldCeilDiv, foldProduct } from "../../../ir/scalar/fold.ts";
import { constant, type Scalar } from "../../../ir/scalar/scalar.ts";
import { type Chunks, chunkFit } from "../../../ir/stream.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { splitLike, addTensor, copyAxes, type TensorEdit, type ModelledAxis, addAxis } from "../../edit/tensor-edit.ts";
import { axisText, opPlace } from "../../op-text.ts";
import { didTypesOf, outermostTypes } from "../../../ir/shards.ts";

export interface LoopSlice {
  readonly slice: TensorId;
  /** The statement that binds the slice; empty if an earlier statement of the iteration has bound it. */
  readonly binding: readonly (HirAliasSelect | ShardByStream)[];
}

export interface Slicer {
  /**
   * The slice of `tensor` along `axis` at the loop's chunk. Ops of one iteration share it: a consumer reads the
   * producer's slice.
   */
  readonly slice: (tensor: TensorId, axis: IterDomain) => LoopSlice;
  /** The same slice with the axis, which has one index if the loop counts a whole axis. */
  readonly chunk: (tensor: TensorId, axis: IterDomain) => LoopSlice;
}

/** `index` is the chunk that an iteration works on, of an axis of `counted` indices. */
export function createSlicer(edit: TensorEdit, index: Scalar, chunks: Chunks | null, counted: Scalar): Slicer {
  const made = new Map<string, TensorId>();
  const once = (key: string, make: () => LoopSlice): LoopSlice => {
    const known = made.get(key);
    if (known !== undefined) return { slice: known, binding: [] };
    const created = make();
    made.set(key, created.slice);
    return created;
  };
  const chunk: Slicer["chunk"] = (tensor, axis) =>
    once(`${tensor}.${axis.id} chunk`, () =>
      chunkAt(edit, tensor, countedAs(axis, counted), chunks ?? { parts: axis.extent, within: [] }, index),
    );
  const select: Slicer["slice"] = (tensor, axis) =>
    once(`${tensor}.${axis.id}`, () => selectAt(edit, tensor, axis, index));
  return { slice: chunks === null ? select : chunk, chunk };
}

/**
 * The axis with the extent that the loop counts. One of two equal extents may be known and the other symbolic, and a
 * chunk of one index would then be read as a broadcast axis.
 */
export function countedAs(axis: IterDomain, extent: Scalar): IterDomain {
  return extentsDiffer(axis.extent, extent) ? axis : { ...axis, extent };
}

/** A new slice of `tensor` at any index. A remaining Stream axis becomes Serial. */
export function selectAt(edit: TensorEdit, id: TensorId, axis: IterDomain, index: Scalar): LoopSlice {
  const tensor = at(edit.tensors, id);
  const position = tensor.domain.logical.findIndex((candidate) => candidate.id === axis.id);
  const kept = tensor.domain.logical.filter((candidate) => candidate.id !== axis.id);
  const axes = copyAxes(edit, kept, ({ parallelType }) => (parallelType === "Stream" ? "Serial" : parallelType));
  const domain = splitLike(
    edit,
    axes.map((copy, i) => ({
      axis: copy,
      model: withTypes(cutOf(tensor.domain, at(kept, i)), (type) => type !== "Stream"),
    })),
  );
  const slice = addTensor(edit, tensor, domain, tensor.mesh, "local", "chunk");
  return {
    slice: slice.id,
    binding: [{ kind: "HirAliasSelect", input: id, output: slice.id, axis: position, index }],
  };
}

// An op on slices: its attributes without the looped axis.
//
//   T2[Stream i0, i2] = sum(T0[i0, i1, i2], axes {1})     ->     on slices along i0: axes {0}

/** `axes` are the sliced axes of the operands, from loopedOperandAxes. The caller replaces the operands' ids. */
export function withoutLoopedAxis(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): Op {
  const row = rowOf(op);
  invariant(row.standalone, "only standalone host ops are sliced", op);
  if (op.kind === "Matmul") requireSliceableMatmul(op, axes, looped, tensors);
  if (op.kind === "GroupedMatmul") requireSliceableGroups(op, axes, looped, tensors);
  const cut = op.inputs.map((id, operand) => {
    const position = withoutReductions(at(tensors, id).domain.logical).findIndex(({ id }) => id === axes[operand]?.id);
    return position < 0 ? null : position;
  });
  return row.sliced(op, cut);
}

/** A slice takes all of a chunk. `axis` is the chunked axis of the operand, which `chunk` has at the same position. */
export function onChunk<O extends Op>(op: O, axis: IterDomain | null, operand: Tensor, chunk: Tensor): O {
  const position = withoutReductions(operand.domain.logical).findIndex(({ id }) => id === axis?.id);
  if (op.kind !== "Slice" || position < 0) return op;
  const { extent } = at(withoutReductions(chunk.domain.logical), position);
  return { ...op, ranges: op.ranges.with(position, { start: constant(0), stop: extent }) };
}

/** Without its M or N axis, a batched operand would be read as a matrix whose rows are the batch. */
function requireSliceableMatmul(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): void {
  const [a, b] = [operandAxes(op, 0, tensors), operandAxes(op, 1, tensors)];
  const slicesRows = a.length >= 2 && at(a, a.length - 2).id === axes[0]?.id;
  const slicesColumns = b.length >= 2 && at(b, b.length - 1).id === axes[1]?.id;
  if (!(slicesRows && a.length > 2 && b.length > 2) && !(slicesColumns && b.length > 2)) return;
  failMatmulStream(op, `the ${slicesRows ? "M" : "N"} axis of a matmul with batched operands`, looped, tensors);
}

/** Only a leading axis that rows, matrices and ends have. */
function requireSliceableGroups(
  op: Op,
  axes: readonly (IterDomain | null)[],
  looped: IterDomain,
  tensors: readonly Tensor[],
): void {
  const sharesEnds = operandAxes(op, 2, tensors).length === 1;
  const isLeading = axes[0] !== null && axes[1] !== null && (axes[2] !== null || sharesEnds);
  if (!isLeading)
    failMatmulStream(op, "an axis of a grouped matmul that not all of its operands have", looped, tensors);
}

function failMatmulStream(op: Op, what: string, looped: IterDomain, tensors: readonly Tensor[]): never {
  fail("stream-on-matmul-axis", `Stream is on ${what}`, {
    place: opPlace(op),
    found: axisText(at(tensors, op.output), looped),
    expected: "Stream on a batch axis, or operands without batch axes",
    help: "parallelize a batch axis with Stream instead",
  });
}

/*
 * One chunk of an axis of a tensor (ShardByStream). It keeps the axis, and prints the number of chunks as a Stream axis
 * before it, as nvFuser does:
 *
 *   T5_l_float[istreamIdx22{3}, iS23{( ceilDiv(i0, 3) )}, iS21{i2}] = ShardByStream(T0, stream_index = streamIdx)
 */

interface ChunkStatement {
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

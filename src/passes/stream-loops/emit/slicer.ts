/**
 * Makes the slices of one Stream loop: an index of a whole axis (HirAliasSelect), or a chunk that keeps the axis
 * (ShardByStream).
 */
import type { IterDomain, TensorId } from "../../../ir/domain.ts";
import { extentsDiffer } from "../../../ir/scalar/fold.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { HirAliasSelect, ShardByStream } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { splitLike } from "../../edit/split-axes.ts";
import { addTensor, copyAxes, type TensorEdit } from "../../edit/tensor-edit.ts";
import type { Chunks } from "../../../ir/stream.ts";
import { chunkAt } from "./chunk.ts";
import { cutOf, withTypes } from "../../../ir/parts.ts";

export interface Slice {
  readonly slice: TensorId;
  /** The statement that binds the slice; empty if an earlier statement of the iteration has bound it. */
  readonly binding: readonly (HirAliasSelect | ShardByStream)[];
}

export interface Slicer {
  /**
   * The slice of `tensor` along `axis` at the loop's chunk. Ops of one iteration share it: a consumer reads the
   * producer's slice.
   */
  readonly slice: (tensor: TensorId, axis: IterDomain) => Slice;
  /** The same slice with the axis, which has one index if the loop counts a whole axis. */
  readonly chunk: (tensor: TensorId, axis: IterDomain) => Slice;
}

/** `index` is the chunk that an iteration works on, of an axis of `counted` indices. */
export function createSlicer(edit: TensorEdit, index: Scalar, chunks: Chunks | null, counted: Scalar): Slicer {
  const made = new Map<string, TensorId>();
  const once = (key: string, make: () => Slice): Slice => {
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
export function selectAt(edit: TensorEdit, id: TensorId, axis: IterDomain, index: Scalar): Slice {
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

/** Makes the slices (HirAliasSelects) of one Stream loop. */
import { type IterDomain, type ParallelType, type TensorId } from "../../../ir/domain.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { HirAliasSelect } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { addTensor, copyAxes, modelOf, splitLike, type TensorEdit } from "../../edit/tensor-edit.ts";

export interface Slice {
  readonly slice: TensorId;
  /** The statement that binds the slice; empty if an earlier statement of the iteration has bound it. */
  readonly binding: readonly HirAliasSelect[];
}

export interface Slicer {
  /**
   * The slice of `tensor` along `axis` at the loop's chunk. Ops of one iteration share it: a consumer reads the
   * producer's slice.
   */
  readonly slice: (tensor: TensorId, axis: IterDomain) => Slice;
}

/** `index` is the chunk that an iteration works on. */
export function createSlicer(edit: TensorEdit, index: Scalar): Slicer {
  const made = new Map<string, TensorId>();
  return {
    slice: (tensor, axis) => {
      const key = `${tensor}.${axis.id}`;
      const known = made.get(key);
      if (known !== undefined) return { slice: known, binding: [] };
      const created = selectAt(edit, tensor, axis, index);
      made.set(key, created.slice);
      return created;
    },
  };
}

/** A new slice of `tensor` at any index. A remaining Stream axis becomes Serial. */
export function selectAt(edit: TensorEdit, id: TensorId, axis: IterDomain, index: Scalar): Slice {
  const tensor = at(edit.tensors, id);
  const position = tensor.domain.logical.findIndex((candidate) => candidate.id === axis.id);
  const kept = tensor.domain.logical.filter((candidate) => candidate.id !== axis.id);
  const serial = (type: ParallelType): ParallelType => (type === "Stream" ? "Serial" : type);
  const axes = copyAxes(edit, kept, ({ parallelType }) => serial(parallelType));
  const domain = splitLike(
    edit,
    axes.map((copy, i) => ({ axis: copy, model: modelOf(tensor, at(kept, i), serial) })),
  );
  const slice = addTensor(edit, tensor, domain, tensor.mesh, "local", "chunk");
  return {
    slice: slice.id,
    binding: [{ kind: "HirAliasSelect", input: id, output: slice.id, axis: position, index }],
  };
}

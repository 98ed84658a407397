/** HirAliasSelects of one Stream loop. */
import type { IterDomain, ParallelType, TensorId } from "../../../ir/domain.ts";
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import type { HirAliasSelect } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { cloneAxes, domainLike, newTensor, partsOf } from "../../edit/fusion-edit.ts";
import type { LoopEdit } from "./loop-edit.ts";

export interface Slice {
  readonly slice: TensorId;
  /** The statement that binds the slice; none where an earlier statement of the iteration has. */
  readonly binding: readonly HirAliasSelect[];
}

export interface Slicer {
  /**
   * The slice of `tensor` at the loop's own index along `axis`. It is made once per iteration: a tensor that was sliced (or written)
   * before keeps its slice.
   */
  readonly slice: (tensor: TensorId, axis: IterDomain) => Slice;
}

/** `index` is which chunk an iteration works on. */
export function createSlicer(edit: LoopEdit, index: Scalar): Slicer {
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

/** A new slice of `tensor` at any index. What a Stream axis is left with in it is an ordinary axis. */
export function selectAt(edit: LoopEdit, id: TensorId, axis: IterDomain, index: Scalar): Slice {
  const tensor = at(edit.tensors, id);
  const position = tensor.domain.logical.findIndex((candidate) => candidate.id === axis.id);
  const kept = tensor.domain.logical.filter((candidate) => candidate.id !== axis.id);
  const serial = (type: ParallelType): ParallelType => (type === "Stream" ? "Serial" : type);
  const axes = cloneAxes(kept, edit.iterDomainCount, ({ parallelType }) => serial(parallelType));
  edit.iterDomainCount += axes.length;
  const { domain, count } = domainLike(
    axes.map((clone, i) => ({ axis: clone, model: partsOf(tensor, at(kept, i), serial) })),
    edit.iterDomainCount,
  );
  edit.iterDomainCount += count;
  const plain = newTensor(edit.tensors.length, tensor, axes, tensor.mesh);
  const created = { ...plain, domain, memory: "local" as const };
  edit.tensors.push(created);
  return {
    slice: created.id,
    binding: [{ kind: "HirAliasSelect", input: id, output: created.id, axis: position, index }],
  };
}

/** The tensor of shares that devices exchange in place of a reduction over them. */
import type { IterDomain, ParallelType, Tensor } from "../../ir/domain.ts";
import { at } from "../../support/invariant.ts";
import { splitLike } from "./split-axes.ts";
import { addTensor, copyAxes, type TensorEdit } from "./tensor-edit.ts";
import { cutOf } from "../../ir/parts.ts";

/**
 * Appends a tensor like `sum` before the reduction of its axis `devices`, which gets `type`. Each device's share is in one
 * piece of memory, wherever that axis is.
 */
export function addShares(edit: TensorEdit, sum: Tensor, devices: IterDomain, type: ParallelType): Tensor {
  const { logical } = sum.domain;
  const axes = copyAxes(edit, logical, ({ parallelType }) => parallelType);
  const domain = splitLike(
    edit,
    axes.map((axis, i) => {
      const own = at(logical, i);
      return own.id === devices.id
        ? { axis: { ...axis, iterType: "iteration", parallelType: type }, model: null }
        : { axis, model: cutOf(sum.domain, own) };
    }),
  );
  const position = logical.findIndex(({ id }) => id === devices.id);
  const first = at(domain.logical, position);
  const allocation = position === 0 ? null : [first, ...domain.logical.filter((axis) => axis !== first)];
  return addTensor(edit, sum, { ...domain, allocation }, sum.mesh, "global", "parts");
}

/** Domains whose axes are cut as given parts say: the splits that make the parts, with new axes. */
import type { IterDomain, IterDomainId, ParallelType, Tensor, TensorDomain, Transform } from "../../ir/domain.ts";
import { type CutAxis, cutOf, isCut, rescaled, splitsOf, type SplitTree } from "../../ir/parts.ts";
import { constantValue } from "../../ir/scalar/fold.ts";
import { at, invariant } from "../../support/invariant.ts";
import { addTensor, copyAxes, movedOrder, nextAxisId, type TensorEdit } from "./tensor-edit.ts";

/** A logical axis and how it is to be cut; null for an axis that keeps its type and is not split. */
export interface ModelledAxis {
  readonly axis: IterDomain;
  readonly model: CutAxis | null;
}

/** A domain of the given logical axes, split as their models are. A model without a parallel type splits nothing. */
export function splitLike(edit: TensorEdit, axes: readonly ModelledAxis[]): TensorDomain {
  const splits: Splits = { known: [], transforms: [], loop: [] };
  const logical = axes.map(({ axis, model }) => {
    if (model === null || model.parts.length === 1 || !isCut(model)) {
      const parallelType = model?.parts[0]?.type ?? axis.parallelType;
      const whole = parallelType === axis.parallelType || parallelType === "Serial" ? axis : { ...axis, parallelType };
      splits.loop.push(whole);
      return whole;
    }
    // Of the copy's own extent: the outermost axes of a reshape differ in extent.
    split(edit, axis, treeOf(rescaled(model, axis.extent)), splits);
    return axis;
  });
  return { logical, transforms: splits.transforms, loop: splits.loop, allocation: null };
}

function treeOf(cut: CutAxis): SplitTree {
  const tree = splitsOf(cut);
  invariant(tree !== null, "splits make the parts of an axis", { cut });
  return tree;
}

/** A domain under construction. `known` splits that make the same parts are used again. */
interface Splits {
  readonly known: readonly Transform[];
  readonly transforms: Transform[];
  readonly loop: IterDomain[];
}

type Split = Extract<Transform, { readonly kind: "split" }>;

function split(
  edit: TensorEdit,
  { id, iterType }: Pick<IterDomain, "id" | "iterType">,
  tree: SplitTree,
  splits: Splits,
): void {
  if (tree.kind === "axis") {
    splits.loop.push({ id, extent: tree.extent, iterType, parallelType: tree.type });
    return;
  }
  const { factor, innerSplit, outer, inner } = tree;
  const known = splits.known.find((each): each is Split => each.kind === "split" && each.input === id);
  const isSame = known !== undefined && constantValue((known.innerSplit ? inner : outer).extent) === known.factor;
  const made: Split = isSame
    ? known
    : { kind: "split", input: id, outer: nextAxisId(edit), inner: nextAxisId(edit), factor, innerSplit };
  splits.transforms.push(made);
  split(edit, { id: made.outer, iterType }, outer, splits);
  split(edit, { id: made.inner, iterType }, inner, splits);
}

/**
 * The domain with one of its logical axes cut otherwise. Splits that make the same parts stay. Null if no splits make
 * the parts, or if the order of memory lists parts that are no more.
 */
export function recut(edit: TensorEdit, domain: TensorDomain, axis: IterDomain, cut: CutAxis): TensorDomain | null {
  const tree = splitsOf(cut);
  if (tree === null) return null;
  const before = new Set<IterDomainId>([axis.id]);
  for (const each of domain.transforms) {
    if (each.kind === "split" && before.has(each.input)) before.add(each.outer).add(each.inner);
  }
  const splits: Splits = { known: domain.transforms, transforms: [], loop: [] };
  split(edit, axis, tree, splits);
  const { transforms, loop } = splits;
  const others = domain.transforms.filter((each) => each.kind !== "split" || !before.has(each.input));
  const kept = domain.transforms.filter((each) => others.includes(each) || transforms.includes(each));
  // The parts that an axis of the old domain has become.
  const partsOf = (id: IterDomainId): readonly IterDomain[] => {
    const own = transforms.find((each): each is Split => each.kind === "split" && each.input === id);
    return own === undefined ? loop.filter((each) => each.id === id) : [own.outer, own.inner].flatMap(partsOf);
  };
  const typed = (own: IterDomain): IterDomain =>
    own.id === axis.id ? (loop.find(({ id }) => id === own.id) ?? own) : own;
  const allocation = domain.allocation?.map((own) =>
    own.id === axis.id || !before.has(own.id) ? [typed(own)] : partsOf(own.id),
  );
  if (allocation?.some((own) => own.length === 0) === true) return null;
  const first = domain.loop.findIndex(({ id }) => before.has(id));
  return {
    logical: domain.logical.map(typed),
    transforms: [...kept, ...transforms.filter((each) => !kept.includes(each))],
    loop: domain.loop.flatMap((own, i) => (i === first ? loop : before.has(own.id) ? [] : [own])),
    allocation: allocation?.flat() ?? null,
  };
}

/** Replaces the domain of a tensor of the edit (see `splitLike`). The order of its axes in memory stays. */
export function redomain(edit: TensorEdit, tensor: Tensor, axes: readonly ModelledAxis[]): void {
  const domain = splitLike(edit, axes);
  const allocation = movedOrder(tensor.domain, domain.logical);
  edit.tensors[tensor.id] = { ...tensor, domain: { ...domain, allocation } };
}

// The tensor of shares that devices exchange in place of a reduction over them.

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

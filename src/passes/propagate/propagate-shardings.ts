/**
 * Gives tensors without an annotation the meshes and parallel types of their neighbours: one sweep over the ops from
 * inputs to outputs, then one back.
 *
 *   T2[i0, i3] = linear(T0[DIDx 2 of i0, i1], T1[DIDx 2 of i3, i1])     (a mesh on T0 and T1)
 * becomes
 *   T2[i0, DIDx 2 of i3]
 *
 * - A tensor with a mesh is the user's. It stays as it is; only a fusion input may still get Stream.
 * - The first neighbour that offers a type decides: weights before activations, else operands with more parallel axes
 *   before others. What others would like becomes a resharding.
 * - Going back, a fusion input gets a mesh, and Stream on parts of an axis, but no DID type: it is replicated.
 *
 * Source: nvFuser's PropagateShardings. Different here: an axis that has the same split already takes the type on it,
 * and Stream does not go where no loop could run.
 */
import { isDID, type IterDomain, type ParallelType, type Tensor, type TensorId } from "../../ir/domain.ts";
import { dividesEvenly, levelsOf, outermostLevels } from "../../ir/axis-levels.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type AxisPair, possiblePairs, siblingAxes } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { addLevels, selectTypes } from "./levels.ts";
import { removeUnfollowedStreams } from "./unfollowed-streams.ts";

export const propagateShardings: Pass<"fusion", "fusion"> = {
  name: "propagate-shardings",
  from: "fusion",
  to: "fusion",
  run: (fusion, { options }) => {
    if (!options.propagate || options.nvfuserLimits || !isAnnotated(fusion)) return fusion;
    const edit = editFusion(fusion);
    const inputs = new Set(fusion.inputs);
    const maps: (readonly AxisPair[])[] = [];
    const pairsOf = (i: number): readonly AxisPair[] => (maps[i] ??= possiblePairs(at(fusion.ops, i), fusion.tensors));
    const isUsers = (id: TensorId): boolean => at(fusion.tensors, id).mesh !== null;
    for (const [i, op] of fusion.ops.entries()) {
      for (const operand of isUsers(op.output) ? [] : referenceOrder(op, edit.tensors)) {
        follow(edit, at(op.inputs, operand), op.output, () => forward(pairsOf(i), operand), allTypes);
      }
      followFirstOutput(edit, op, isUsers);
    }
    for (const [i, op] of [...fusion.ops.entries()].toReversed()) {
      for (const [operand, id] of op.inputs.entries()) {
        // place-scalars puts numbers on the devices of all their readers.
        if ((isUsers(id) && !inputs.has(id)) || at(edit.tensors, id).domain.logical.length === 0) continue;
        follow(edit, op.output, id, () => backward(pairsOf(i), operand), inputs.has(id) ? chunksOnly : allTypes);
      }
    }
    removeUnfollowedStreams(edit, fusion, options);
    const changed = edit.tensors.some((tensor, i) => tensor !== fusion.tensors[i]);
    return changed ? { ...fusion, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount } : fusion;
  },
};

/** The further outputs of an op lie on the devices, and in chunks, as its first output does. */
function followFirstOutput(edit: FusionEdit, op: Op, isUsers: (id: TensorId) => boolean): void {
  op.further?.forEach((id, i) => {
    if (isUsers(id)) return;
    const images = (): readonly Image[] =>
      siblingAxes(op, edit.tensors, i + 1).map(({ first, further }) => ({
        from: first,
        to: further,
        outermost: false,
      }));
    follow(edit, op.output, id, images, allTypes);
  });
}

/** Without a parallel type or a mesh there is nothing to follow. */
function isAnnotated({ tensors }: FusionData): boolean {
  return tensors.some(
    ({ mesh, domain }) => mesh !== null || domain.loop.some((axis) => axis.parallelType !== "Serial"),
  );
}

/** Whether a tensor takes a type that an axis is offered, as a whole (`isWhole`) or on a part. */
type Offer = (type: ParallelType, isWhole: boolean) => boolean;

const allTypes: Offer = () => true;
const chunksOnly: Offer = (type, isWhole) => type === "Stream" && !isWhole;

/** The operands whose shardings the output takes, first reference first. */
function referenceOrder(op: Op, tensors: readonly Tensor[]): readonly number[] {
  if (op.kind === "Linear") return op.inputs.length > 2 ? [1, 2, 0] : [1, 0];
  if (op.kind === "Matmul") return [1, 0];
  const rank = (operand: number): readonly [number, number] => {
    const { domain, mesh } = at(tensors, at(op.inputs, operand));
    const parallel = domain.loop.filter(
      ({ iterType, parallelType }) => iterType !== "reduction" && parallelType !== "Serial",
    );
    return [parallel.length, mesh?.shape.length ?? -1];
  };
  const ranks = op.inputs.map((_, operand) => rank(operand));
  return [...op.inputs.keys()].sort((a, b) => {
    const [x, y] = [at(ranks, a), at(ranks, b)];
    return y[0] - x[0] || y[1] - x[1];
  });
}

/** An axis of the tensor that offers its sharding, and its image in the tensor that takes it. */
interface Image {
  readonly from: IterDomain;
  readonly to: IterDomain;
  readonly outermost: boolean;
}

function forward(pairs: readonly AxisPair[], operand: number): readonly Image[] {
  return imagesOf(pairs, operand, ({ producer, consumer }) => ({ from: producer, to: consumer }));
}

function backward(pairs: readonly AxisPair[], operand: number): readonly Image[] {
  return imagesOf(pairs, operand, ({ producer, consumer }) => ({ from: consumer, to: producer }));
}

/** A broadcast axis and the axis that it is broadcast to do not follow each other. */
function imagesOf(
  pairs: readonly AxisPair[],
  operand: number,
  ends: (pair: AxisPair) => Pick<Image, "from" | "to">,
): readonly Image[] {
  return pairs.flatMap((pair) =>
    pair.operand === operand && !pair.broadcast ? [{ ...ends(pair), outermost: pair.outermost }] : [],
  );
}

/** Gives the tensor `target` what the tensor `reference` has: its mesh, and the types that `offers` accepts. */
function follow(
  edit: FusionEdit,
  reference: TensorId,
  target: TensorId,
  imagesOn: () => readonly Image[],
  offers: Offer,
): void {
  const source = at(edit.tensors, reference);
  const tensor = at(edit.tensors, target);
  const { mesh } = source;
  const taken = new Set<ParallelType>(["Serial"]);
  for (const { iterType, parallelType } of tensor.domain.loop) {
    if (iterType !== "reduction" || !isDID(parallelType)) taken.add(parallelType);
  }
  const fits = (type: ParallelType): boolean =>
    !isDID(type) ||
    tensor.mesh === null ||
    (mesh?.hasAxis(type) === true && tensor.mesh.hasAxis(type) && tensor.mesh.size(type) === mesh.size(type));
  let { domain } = tensor;
  const isOffered = ({ parallelType: type }: IterDomain): boolean =>
    !taken.has(type) && (offers(type, true) || offers(type, false)) && fits(type);
  const images = source.domain.loop.some(isOffered) ? imagesOn() : [];
  for (const image of images) {
    const axis = image.from;
    const all = (image.outermost ? outermostLevels : levelsOf)(source.domain, axis);
    const chosen =
      all === null
        ? null
        : selectTypes(all, (type) => offers(type, all.levels.length === 0) && !taken.has(type) && fits(type));
    if (chosen === null) continue;
    // Parts of the outermost axes of a reshape are alike only if the parts divide both.
    if (image.outermost && !(dividesEvenly(chosen, axis) && dividesEvenly(chosen, image.to))) continue;
    const sharded = addLevels(edit, domain, image.to, chosen);
    domain = sharded.domain;
    for (const type of sharded.added) taken.add(type);
  }
  if (domain === tensor.domain && (tensor.mesh !== null || mesh === null)) return;
  edit.tensors[target] = { ...tensor, domain, mesh: tensor.mesh ?? mesh };
}

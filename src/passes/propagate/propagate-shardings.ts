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
 * - A cotangent takes from its primal what its operands do not offer, as the constant gradient of a sum.
 * - Going back, a fusion input gets a mesh, and Stream on parts of an axis, but no DID type: it is replicated.
 *
 * Source: nvFuser's PropagateShardings. Different here: an axis that has the same split already takes the type on it,
 * and Stream does not go where no loop could run.
 */
import {
  isDID,
  type IterDomain,
  type ParallelType,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import { type AxisPair, possiblePairs, siblingAxes } from "../../ir/ops/axis-map.ts";
import { isContraction, type Op, outputsOf } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf, dividesEvenly, inParts, isCut, rescaled, withTypes } from "../../ir/parts.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { shardsOf } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, type FusionEdit, type TensorEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass, PassContext } from "../pass.ts";
import { reshapedAxes } from "../routes/local-reshape.ts";
import { costOf, excerpt, type Moves, movesOf } from "../routes/weigh-ops.ts";
import { sharesContracted } from "../routes/layouts.ts";
import { addParts, placeCotangents } from "./place-cotangents.ts";
import { removeUnfollowedStreams } from "./unfollowed-inputs.ts";

export const propagateShardings: Pass<"fusion", "fusion"> = {
  name: "propagate-shardings",
  from: "fusion",
  to: "fusion",
  run: (given, context) => {
    const { options } = context;
    const fusion = placeCotangents(given);
    if (!options.propagate || options.nvfuserLimits || !isAnnotated(fusion)) return fusion;
    return propagate(fusion, options, cheapestOrders(fusion, context));
  },
};

/** The operands of op number `i` whose shardings its output takes, first reference first. `tensors` are placed so far. */
type OrderOf = (i: number, tensors: readonly Tensor[]) => readonly number[];

function propagate(fusion: FusionData, options: LoweringOptions, orderOf: OrderOf): FusionData {
  const edit = editFusion(fusion);
  const inputs = new Set(fusion.inputs);
  const maps: (readonly AxisPair[])[] = [];
  const pairsOf = (i: number): readonly AxisPair[] => (maps[i] ??= possiblePairs(at(fusion.ops, i), fusion.tensors));
  const isUsers = (id: TensorId): boolean => at(fusion.tensors, id).mesh !== null;
  const primals = primalsOf(fusion);
  const unused = placeUnused(edit, fusion, new Set(primals.values()));
  for (const [i, op] of fusion.ops.entries()) {
    sweepForward(edit, op, fusion.tensors, () => pairsOf(i), orderOf(i, edit.tensors));
    for (const id of outputsOf(op)) {
      const primal = primals.get(id);
      if (primal !== undefined && !isUsers(id)) followPrimal(edit, primal, id);
    }
  }
  for (const id of unused) edit.tensors[id] = at(fusion.tensors, id);
  const numbers = numbersOfUnplaced(edit, fusion);
  // place-scalars puts other numbers on the devices of all their readers.
  const isLeft = (id: TensorId): boolean => isNumber(edit, id) && !numbers.has(id);
  const sweepBack = (isWanted: (id: TensorId) => boolean): void => {
    for (const [i, op] of [...fusion.ops.entries()].toReversed()) {
      for (const [operand, id] of op.inputs.entries()) {
        if (isWanted(id) && !isLeft(id))
          follow(edit, op.output, id, () => backward(pairsOf(i), operand), inputs.has(id) ? chunksOnly : allTypes);
      }
    }
  };
  sweepBack((id) => inputs.has(id) || !isUsers(id));
  const isOpen = (id: TensorId): boolean => at(edit.tensors, id).mesh === null;
  // What is made of tensors that the sweep back has placed, such as the largest value of a cotangent. Its other operands
  // may come from inputs that nothing else reaches.
  const sweepRest = (): void => {
    for (const [i, op] of fusion.ops.entries()) {
      if (isOpen(op.output)) sweepForward(edit, op, fusion.tensors, () => pairsOf(i), orderOf(i, edit.tensors));
      else if (op.further?.some(isOpen) === true) followFirstOutput(edit, op, isUsers);
    }
  };
  const isHalfPlaced = (op: Op): boolean => !isOpen(op.output) && op.inputs.some((id) => isOpen(id) && !isLeft(id));
  sweepRest();
  while (fusion.ops.some(isHalfPlaced)) {
    sweepBack(isOpen);
    sweepRest();
  }
  removeUnfollowedStreams(edit, fusion, options);
  const changed = edit.tensors.some((tensor, i) => tensor !== fusion.tensors[i]);
  return changed ? { ...fusion, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount } : fusion;
}

function isNumber({ tensors }: TensorEdit, id: TensorId): boolean {
  return withoutReductions(at(tensors, id).domain.logical).length === 0;
}

/** The numbers that are made of a tensor without a mesh, such as its sum: it gets the mesh of who reads the number. */
function numbersOfUnplaced(edit: TensorEdit, { ops }: FusionData): ReadonlySet<TensorId> {
  const found = new Set<TensorId>();
  const isOpen = (id: TensorId): boolean =>
    at(edit.tensors, id).mesh === null && (!isNumber(edit, id) || found.has(id));
  for (const op of ops) {
    if (!op.inputs.some(isOpen)) continue;
    for (const id of outputsOf(op)) if (isNumber(edit, id)) found.add(id);
  }
  return found;
}

function sweepForward(
  edit: FusionEdit,
  op: Op,
  before: readonly Tensor[],
  pairsOf: () => readonly AxisPair[],
  order: readonly number[],
): void {
  const isUsers = (id: TensorId): boolean => at(before, id).mesh !== null;
  if (!isUsers(op.output)) {
    followOperands(edit, op, pairsOf, order);
    if (op.kind === "Reshape") followReshape(edit, at(op.inputs, 0), at(before, op.output));
  }
  followFirstOutput(edit, op, isUsers);
}

/** The primal of each cotangent; of several, the last in the forward pass. */
function primalsOf({ derivations = [] }: FusionData): ReadonlyMap<TensorId, TensorId> {
  const primals = new Map<TensorId, TensorId>();
  for (const { uses } of derivations) {
    for (const { primal, cotangent } of uses) if (!primals.has(cotangent)) primals.set(cotangent, primal);
  }
  return primals;
}

/** Places the primals that no op of the Fusion makes, since no output needs them. Returns which they are. */
function placeUnused(edit: FusionEdit, fusion: FusionData, primals: ReadonlySet<TensorId>): readonly TensorId[] {
  const { tensors, derivations = [] } = fusion;
  const made = new Set([...fusion.inputs, ...fusion.ops.flatMap(outputsOf)]);
  const unused = [...primals].filter((id) => !made.has(id));
  if (unused.length === 0) return [];
  const scratch = editFusion(fusion);
  const last = at(derivations, derivations.length - 1);
  for (const op of last.ops) {
    sweepForward(scratch, op, tensors, () => possiblePairs(op, tensors), referenceOrder(op, scratch.tensors));
  }
  for (const id of unused) edit.tensors[id] = at(scratch.tensors, id);
  return unused;
}

/** Stream is left out, because the backward pass chooses its own chunks. */
function followPrimal(edit: FusionEdit, primal: TensorId, cotangent: TensorId): void {
  const axesOf = (id: TensorId): readonly IterDomain[] => withoutReductions(at(edit.tensors, id).domain.logical);
  const [from, to] = [axesOf(primal), axesOf(cotangent)];
  if (from.length === 0) return;
  const images = (): readonly Image[] => from.map((axis, i) => ({ from: axis, to: at(to, i), outermost: false }));
  follow(edit, primal, cotangent, images, isDID);
}

function followOperands(edit: TensorEdit, op: Op, pairsOf: () => readonly AxisPair[], order: readonly number[]): void {
  for (const operand of order) {
    follow(edit, at(op.inputs, operand), op.output, () => forward(pairsOf(), operand), allTypes);
  }
}

/** Gives the result `made` of a reshape all parts of the operand, in their order, if its pairs of axes gave it fewer. */
function followReshape(edit: TensorEdit, operand: TensorId, made: Tensor): void {
  const source = at(edit.tensors, operand);
  const wanted = shardsOf(source).length;
  if (wanted === 0 || made.domain.transforms.length > 0 || shardsOf(at(edit.tensors, made.id)).length === wanted)
    return;
  const axes = made.domain.logical;
  const cuts = reshapedAxes(
    source,
    axes.map(({ extent }) => extent),
  );
  // Runs of a cut axis that lie apart after the reshape suit few readers.
  const isApart = ({ parts }: CutAxis): boolean => parts.slice(0, -1).some(({ type }) => type === "Serial");
  if (cuts === null || cuts.some(isApart)) return;
  const domain = axes.reduce((cut, axis, i) => addParts(edit, cut, axis, at(cuts, i)).domain, made.domain);
  edit.tensors[made.id] = { ...made, domain, mesh: source.mesh };
}

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
  if (op.kind === "Linear")
    return (
      [
        [1, 0],
        [1, 2, 0],
        [1, 3, 0, 2],
      ][op.inputs.length - 2] ?? []
    );
  if (op.kind === "Matmul") return [1, 0];
  if (op.kind === "GroupedMatmul") return [1, 0, 2];
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
  return imagesOn(pairs, operand, ({ producer, consumer }) => ({ from: producer, to: consumer }));
}

function backward(pairs: readonly AxisPair[], operand: number): readonly Image[] {
  return imagesOn(pairs, operand, ({ producer, consumer }) => ({ from: consumer, to: producer }));
}

/** A broadcast axis and the axis that it is broadcast to do not follow each other. */
function imagesOn(
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
  edit: TensorEdit,
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
    const own = cutOf(source.domain, image.from);
    const all = image.outermost ? inParts(own) : own;
    const chosen = withTypes(all, (type) => offers(type, all.parts.length === 1) && !taken.has(type) && fits(type));
    if (!isCut(chosen)) continue;
    const wanted = rescaled(chosen, image.to.extent);
    // Parts of the outermost axes of a reshape are alike only if the parts divide both.
    if (image.outermost && !(dividesEvenly(chosen) && dividesEvenly(wanted))) continue;
    const sharded = addParts(edit, domain, image.to, wanted);
    domain = sharded.domain;
    for (const type of sharded.added) taken.add(type);
  }
  if (domain === tensor.domain && (tensor.mesh !== null || mesh === null)) return;
  edit.tensors[target] = { ...tensor, domain, mesh: tensor.mesh ?? mesh };
}

/** At most so many ops after one whose operands disagree are looked at. */
const farthest = 6;

/**
 * The order by which a sum over devices whose operands disagree on other axes, or an op of operands on several meshes,
 * moves the fewest bytes, counting what the next readers then need as well. Each order is tried on these ops alone. Of
 * equal ones it is the op's own.
 */
function cheapestOrders(fusion: FusionData, context: PassContext): OrderOf {
  const isUsers = (id: TensorId): boolean => at(fusion.tensors, id).mesh !== null;
  let readers: ReturnType<typeof readersOf> | null = null;
  let producers: ReadonlyMap<TensorId, Op> | null = null;
  return (i, tensors) => {
    const op = at(fusion.ops, i);
    const own = referenceOrder(op, tensors);
    if (
      !(contractsShares(op, tensors, fusion) || isOnMeshes(op, tensors)) ||
      op.inputs.some((id) => streamAxis(at(tensors, id)) !== null)
    )
      return own;
    const orders = own.map((first) => [first, ...own.filter((operand) => operand !== first)]);
    if (new Set(orders.map((order) => placedBy(fusion, op, tensors, order))).size === 1) return own;
    readers ??= readersOf(fusion);
    const isPlaced = (id: TensorId): boolean => isUsers(id) || at(tensors, id).mesh !== null;
    producers ??= new Map(fusion.ops.map((each) => [each.output, each]));
    // A stretched operand moves as it is before.
    const stretches = new Set(
      op.inputs.flatMap((id) => producers?.get(id) ?? []).filter(({ kind }) => kind === "Expand"),
    );
    const window = [...stretches, ...followers(op, readers, isPlaced)];
    const made = new Set(window.slice(stretches.size).flatMap(outputsOf));
    const before = tensors.map((tensor) => (made.has(tensor.id) ? at(fusion.tensors, tensor.id) : tensor));
    const program = excerpt(fusion, window, before);
    const movesBy = (order: readonly number[]): Moves | null => {
      const placed = propagate(program, context.options, (j, known) =>
        j === stretches.size ? order : referenceOrder(at(program.ops, j), known),
      );
      return placed.tensors.every(({ mesh }) => mesh !== null) ? movesOf(placed, context.options) : null;
    };
    const given = movesBy(own);
    if (given === null || given.bytes === 0) return own;
    let best = { order: own, moves: given };
    for (const order of orders.slice(1)) {
      const moves = movesBy(order);
      if (moves !== null && moves.bytes <= given.bytes && costOf(moves) < costOf(best.moves)) best = { order, moves };
    }
    return best.order;
  };
}

/** Whether the operands are on different meshes, of which the result is to be on one. */
function isOnMeshes({ inputs }: Op, tensors: readonly Tensor[]): boolean {
  const meshes = inputs.flatMap((id) => at(tensors, id).mesh ?? []);
  return meshes.some((mesh) => !mesh.equals(at(meshes, 0)));
}

/** Whether an operand is cut along the contracted axis: what follows is then a sum over devices. */
function contractsShares(op: Op, tensors: readonly Tensor[], fusion: FusionData): boolean {
  if (!isContraction(op)) return false;
  if (op.inputs.slice(0, 2).some((id) => shardsOf(at(tensors, id)).length === 0)) return false;
  return sharesContracted(op, possiblePairs(op, fusion.tensors), tensors);
}

/** A text of the sharding that the output takes by the order. */
function placedBy(fusion: FusionData, op: Op, tensors: readonly Tensor[], order: readonly number[]): string {
  const edit = { tensors: [...tensors], iterDomainCount: fusion.iterDomainCount };
  followOperands(edit, op, () => possiblePairs(op, fusion.tensors), order);
  const output = at(edit.tensors, op.output);
  const shards = shardsOf(output).map(({ type, axis, cut }) =>
    [type, axis.id, ...cut.parts.map(({ stride }) => printScalar(stride))].join(" "),
  );
  return [output.mesh?.toString(), ...shards].join(",");
}

/** The op and those that read its result, and theirs, as far as their other operands are placed. */
function followers(
  first: Op,
  readers: ReadonlyMap<TensorId, readonly Op[]>,
  isPlaced: (id: TensorId) => boolean,
): readonly Op[] {
  const found = [first];
  const made = new Set(outputsOf(first));
  for (const op of found) {
    for (const id of outputsOf(op)) {
      for (const reader of readers.get(id) ?? []) {
        if (found.length > farthest) return found;
        const isKnown = reader.inputs.every((input) => made.has(input) || isPlaced(input));
        if (!isKnown || found.includes(reader)) continue;
        found.push(reader);
        for (const output of outputsOf(reader)) made.add(output);
      }
    }
  }
  return found;
}

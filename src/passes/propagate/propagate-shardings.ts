/**
 * Gives tensors without an annotation the meshes and parallel types of their neighbours: one sweep over the ops from
 * inputs to outputs, one back, and one on from what that cut.
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
import { isDID, type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import { type AxisPair, possiblePairs, siblingAxes } from "../../ir/ops/axis-map.ts";
import { isContraction, type Op, outputsOf } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf } from "../../ir/parts.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { reducedShards, shardsOf } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, type FusionEdit, type TensorEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass, PassContext } from "../pass.ts";
import { reshapedAxes } from "../routes/local-reshape.ts";
import { costOf, excerpt, type Moves, movesOf } from "../routes/weigh-ops.ts";
import { sharesContracted } from "../routes/layouts.ts";
import {
  allTypes,
  backward,
  chunksOnly,
  follow,
  followOperands,
  followLate,
  followReshape,
  type Image,
  type ContractedAlike,
} from "./follow.ts";
import { placeCotangents } from "./place-cotangents.ts";
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
  const isContracted = contracting(edit, fusion);
  const primals = primalsOf(fusion);
  const unused = placeUnused(edit, fusion, new Set(primals.values()), isContracted);
  for (const [i, op] of fusion.ops.entries()) {
    sweepForward(edit, op, fusion.tensors, () => pairsOf(i), orderOf(i, edit.tensors), isContracted);
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
  const before = [...edit.tensors];
  sweepBack((id) => inputs.has(id) || !isUsers(id));
  followLate(edit, fusion, before, pairsOf);
  const isOpen = (id: TensorId): boolean => at(edit.tensors, id).mesh === null;
  // What is made of tensors that the sweep back has placed, such as the largest value of a cotangent. Its other operands
  // may come from inputs that nothing else reaches.
  const sweepRest = (): void => {
    for (const [i, op] of fusion.ops.entries()) {
      if (isOpen(op.output))
        sweepForward(edit, op, fusion.tensors, () => pairsOf(i), orderOf(i, edit.tensors), isContracted);
      else if (op.further?.some(isOpen) === true) followFirstOutput(edit, op, isUsers);
    }
  };
  const isHalfPlaced = (op: Op): boolean => !isOpen(op.output) && op.inputs.some((id) => isOpen(id) && !isLeft(id));
  sweepRest();
  while (fusion.ops.some(isHalfPlaced)) {
    sweepBack(isOpen);
    sweepRest();
  }
  placeConstants(edit, fusion);
  removeUnfollowedStreams(edit, fusion, options);
  const changed = edit.tensors.some((tensor, i) => tensor !== fusion.tensors[i]);
  return changed ? { ...fusion, tensors: edit.tensors, iterDomainCount: edit.iterDomainCount } : fusion;
}

/** Results of constants alone, which no neighbour places, are on all devices if the Fusion has one mesh. */
function placeConstants(edit: FusionEdit, { inputs, ops }: FusionData): void {
  const meshes = edit.tensors.flatMap(({ mesh }) => mesh ?? []);
  const [mesh] = meshes;
  if (mesh === undefined || meshes.some((each) => !each.equals(mesh))) return;
  const varying = new Set(inputs);
  const read = new Set(ops.flatMap((op) => op.inputs));
  for (const op of ops) {
    const varies = op.inputs.some((id) => varying.has(id));
    for (const id of outputsOf(op)) {
      const tensor = at(edit.tensors, id);
      if (varies) varying.add(id);
      else if (tensor.mesh === null && !(isNumber(edit, id) && read.has(id))) edit.tensors[id] = { ...tensor, mesh };
    }
  }
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
  isContracted: ContractedAlike,
): void {
  const isUsers = (id: TensorId): boolean => at(before, id).mesh !== null;
  if (!isUsers(op.output)) {
    followOperands(edit, op, pairsOf, order);
    if (op.kind === "Reshape") followReshape(edit, at(op.inputs, 0), at(before, op.output), isContracted);
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
function placeUnused(
  edit: FusionEdit,
  fusion: FusionData,
  primals: ReadonlySet<TensorId>,
  isContracted: ContractedAlike,
): readonly TensorId[] {
  const { tensors, derivations = [] } = fusion;
  const made = new Set([...fusion.inputs, ...fusion.ops.flatMap(outputsOf)]);
  const unused = [...primals].filter((id) => !made.has(id));
  if (unused.length === 0) return [];
  const scratch = editFusion(fusion);
  const last = at(derivations, derivations.length - 1);
  for (const op of last.ops) {
    const pairs = (): readonly AxisPair[] => possiblePairs(op, tensors);
    sweepForward(scratch, op, tensors, pairs, referenceOrder(op, scratch.tensors), isContracted);
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

/** Whether all readers of a tensor contract an axis with one that is cut alike, or will be by a reshape. */
function contracting(edit: TensorEdit, fusion: FusionData): ContractedAlike {
  const readers = readersOf(fusion);
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const cutsOf = (id: TensorId): readonly CutAxis[] => {
    const axes = withoutReductions(at(edit.tensors, id).domain.logical);
    const op = producers.get(id);
    const extents = axes.map(({ extent }) => extent);
    const reshaped = op?.kind === "Reshape" ? reshapedAxes(at(edit.tensors, at(op.inputs, 0)), extents) : null;
    return reshaped ?? axes.map((axis) => cutOf(at(edit.tensors, id).domain, axis));
  };
  const textOf = ({ parts }: CutAxis): string =>
    parts.map(({ type, stride }) => `${type} ${printScalar(stride)}`).join();
  return (axis, id, cut) => {
    const all = readers.get(id) ?? [];
    const areAlike = all.every((op) => {
      if (!isContraction(op)) return false;
      const pairs = possiblePairs(op, fusion.tensors).filter(({ consumer }) => consumer.iterType === "reduction");
      const own = pairs.find(({ operand, producer }) => op.inputs[operand] === id && producer.id === axis.id);
      const other = pairs.find(({ operand }) => operand !== own?.operand);
      if (own === undefined || other === undefined) return false;
      const source = at(op.inputs, other.operand);
      const axes = withoutReductions(at(edit.tensors, source).domain.logical);
      const theirs = cutsOf(source)[axes.findIndex((each) => each.id === other.producer.id)];
      return theirs !== undefined && textOf(theirs) === textOf(cut);
    });
    return all.length > 0 && areAlike;
  };
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

/** At most so many ops after one whose operands disagree are looked at. */
const farthest = 6;

/**
 * The order by which a sum over devices whose operands disagree on other axes, a contraction of an operand that one
 * before gathers, or an op of operands on several meshes moves the fewest bytes, counting what the next readers then
 * need as well. Each order is tried on these ops alone. Of equal ones it is the op's own.
 */
function cheapestOrders(fusion: FusionData, context: PassContext): OrderOf {
  const isUsers = (id: TensorId): boolean => at(fusion.tensors, id).mesh !== null;
  let readers: ReturnType<typeof readersOf> | null = null;
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  // Weights that a forward pass gathers: its backward pass has them whole.
  const gathered = new Set<TensorId>();
  const isGathered = (op: Op): boolean =>
    isContraction(op) && op.inputs.some((id) => gathered.has(viewedBy(id, producers)));
  const cheapest = (i: number, tensors: readonly Tensor[]): readonly number[] => {
    const op = at(fusion.ops, i);
    const own = referenceOrder(op, tensors);
    const mayDiffer = contractsShares(op, tensors, fusion) || isOnMeshes(op, tensors) || isGathered(op);
    if (!mayDiffer || op.inputs.some((id) => streamAxis(at(tensors, id)) !== null)) return own;
    const orders = own.map((first) => [first, ...own.filter((operand) => operand !== first)]);
    if (new Set(orders.map((order) => shardingText(placedBy(fusion, op, tensors, order)))).size === 1) return own;
    readers ??= readersOf(fusion);
    const isPlaced = (id: TensorId): boolean => isUsers(id) || at(tensors, id).mesh !== null;
    // A stretched operand moves as it is before.
    const stretches = new Set(
      op.inputs.flatMap((id) => producers.get(id) ?? []).filter(({ kind }) => kind === "Expand"),
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
  return (i, tensors) => {
    const op = at(fusion.ops, i);
    const order = cheapest(i, tensors);
    if (contractsShares(op, tensors, fusion)) {
      for (const id of gatheredBy(op, tensors, placedBy(fusion, op, tensors, order), fusion)) {
        gathered.add(viewedBy(id, producers));
      }
    }
    return order;
  };
}

/** The operands of a contraction whose shares of the contracted axis the devices do not add up. */
function gatheredBy(
  op: Op,
  tensors: readonly Tensor[],
  output: Tensor,
  { tensors: given }: FusionData,
): readonly TensorId[] {
  const summed = new Set(reducedShards(output).map(({ type }) => type));
  return possiblePairs(op, given).flatMap(({ operand, producer, consumer }) => {
    const id = at(op.inputs, operand);
    const shares = shardsOf(at(tensors, id)).filter(({ axis }) => axis.id === producer.id);
    return consumer.iterType === "reduction" && shares.some(({ type }) => !summed.has(type)) ? [id] : [];
  });
}

/** The tensor of which another one is the same data. */
function viewedBy(id: TensorId, producers: ReadonlyMap<TensorId, Op>): TensorId {
  const op = producers.get(id);
  const isView = op?.kind === "Permute" || op?.kind === "Set" || op?.kind === "Cast";
  return isView ? viewedBy(at(op.inputs, 0), producers) : id;
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

/** The output with the sharding that it takes by the order. */
function placedBy(fusion: FusionData, op: Op, tensors: readonly Tensor[], order: readonly number[]): Tensor {
  const edit = { tensors: [...tensors], iterDomainCount: fusion.iterDomainCount };
  followOperands(edit, op, () => possiblePairs(op, fusion.tensors), order);
  return at(edit.tensors, op.output);
}

/** A text of a sharding, also of the sum over devices that makes the tensor. */
function shardingText(output: Tensor): string {
  const shards = [...shardsOf(output), ...reducedShards(output)].map(({ type, axis, cut }) =>
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

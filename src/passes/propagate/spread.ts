/**
 * Spreads meshes and parallel types to neighbours without an annotation (propagate-shardings.ts): one sweep over the ops
 * from inputs to outputs, one back, and one on from what that cut.
 *
 * - A tensor with a mesh is the user's. It stays as it is; only a fusion input may still get Stream.
 * - The first neighbour that offers a type decides: weights before activations, else operands with more parallel axes
 *   before others. What others would like becomes a resharding.
 * - A cotangent takes from its primal what its operands do not offer, as the constant gradient of a sum.
 * - Going back, a fusion input gets a mesh, and Stream on parts of an axis, but no DID type: it is replicated.
 */
import { isDID, type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import { type AxisPair, possiblePairs, siblingAxes } from "../../ir/ops/axis-map.ts";
import { isContraction, type Op, outputsOf } from "../../ir/ops/op.ts";
import { type CutAxis, cutOf } from "../../ir/parts.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { editFusion, type FusionEdit, type TensorEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";
import { reshapedAxes } from "../routes/local-reshape.ts";
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
import { keptBySlice } from "../routes/split-slices.ts";
import { removeUnfollowedStreams } from "./unfollowed-inputs.ts";

/** The operands of op number `i` whose shardings its output takes, first reference first. `tensors` are placed so far. */
export type OrderOf = (i: number, tensors: readonly Tensor[]) => readonly number[];

export function spreadShardings(
  fusion: FusionData,
  options: LoweringOptions,
  orderOf: OrderOf = ownOrders(fusion),
): FusionData {
  const edit = editFusion(fusion);
  const inputs = new Set(fusion.inputs);
  const maps: (readonly AxisPair[])[] = [];
  const pairsOf = (i: number): readonly AxisPair[] =>
    (maps[i] ??= [
      ...possiblePairs(at(fusion.ops, i), fusion.tensors),
      ...keptBySlice(at(fusion.ops, i), fusion.tensors),
    ]);
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

/** Devices add to what they have of an axis, or set it (split-indices.ts). */
function keptByIndices(op: Op, tensors: readonly Tensor[]): readonly AxisPair[] {
  if (op.kind !== "ScatterAdd" || streamAxis(at(tensors, op.output)) !== null) return [];
  const [producer, consumer] = [at(op.inputs, 0), op.output].map((id) =>
    at(withoutReductions(at(tensors, id).domain.logical), op.axis),
  );
  return producer === undefined || consumer === undefined
    ? []
    : [{ operand: 0, producer, consumer, broadcast: false, outermost: false }];
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
    followOperands(edit, op, () => [...pairsOf(), ...keptByIndices(op, before)], order);
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

/** The operands whose shardings the output takes, first reference first. */
export function referenceOrder(op: Op, tensors: readonly Tensor[]): readonly number[] {
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

function ownOrders({ ops }: FusionData): OrderOf {
  return (i, tensors) => referenceOrder(at(ops, i), tensors);
}

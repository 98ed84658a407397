/**
 * Gives tensors without an annotation the meshes and parallel types of their neighbours (spread.ts), so that few bytes
 * move.
 *
 *   T2[i0, i3] = linear(T0[DIDx 2 of i0, i1], T1[DIDx 2 of i3, i1])     (a mesh on T0 and T1)
 * becomes
 *   T2[i0, DIDx 2 of i3]
 *
 * Source: nvFuser's PropagateShardings. Different here: an axis that has the same split already takes the type on it,
 * Stream does not go where no loop could run, and bytes are counted.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import { type FusionData, readersOf } from "../../ir/fusion-data.ts";
import { possiblePairs } from "../../ir/ops/axis-map.ts";
import { isContraction, type Op, outputsOf } from "../../ir/ops/op.ts";
import { shardsOf } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { exactText } from "../../support/exact-text.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass, PassContext } from "../pass.ts";
import { sharesContracted } from "../routes/layouts.ts";
import { costOf, excerpt, type Moves, movesOf } from "../routes/weigh-ops.ts";
import { followOperands } from "./follow.ts";
import { placeCotangents } from "./place-cotangents.ts";
import { type OrderOf, referenceOrder, spreadShardings } from "./spread.ts";
import { layersOfPlaced, movesOfPlaced, tensorText } from "./weigh-placements.ts";

export const propagateShardings: Pass<"fusion", "fusion"> = {
  name: "propagate-shardings",
  from: "fusion",
  to: "fusion",
  run: (given, context) => {
    const { options } = context;
    const fusion = placeCotangents(given);
    if (!options.propagate || options.nvfuserLimits || !isAnnotated(fusion)) return fusion;
    return fewestMoves(fusion, context);
  },
};

/**
 * Contractions whose operands are cut along different axes follow their weights, as in tensor parallelism, or what moves
 * fewer bytes for each of them and its next readers, as where weights are only stored in parts (FSDP). The program is
 * placed both ways, and its bytes compared. A loop over chunks hides what moves.
 */
function fewestMoves(fusion: FusionData, context: PassContext): FusionData {
  const { options } = context;
  const place = (isFree: (op: Op, tensors: readonly Tensor[]) => boolean): FusionData =>
    spreadShardings(fusion, options, cheapestOrders(fusion, options, isFree));
  const byWeights = place((op, tensors) => contractsShares(op, tensors, fusion));
  if (fusion.tensors.some((tensor) => streamAxis(tensor) !== null)) return byWeights;
  const byBytes = place(isContraction);
  const texts = [byWeights, byBytes].map(({ tensors }) => tensors.map(tensorText));
  const [own = [], others = []] = texts;
  if (own.every((text, i) => text === others[i])) return byWeights;
  const layers = layersOfPlaced(fusion.ops, texts);
  const movesOfEach = (placed: FusionData): Moves | null => movesOfPlaced(placed, layers, context);
  const [given, other] = [movesOfEach(byWeights), movesOfEach(byBytes)];
  const isLess = given !== null && other !== null && other.bytes <= given.bytes && costOf(other) < costOf(given);
  return isLess ? byBytes : byWeights;
}

/** Without a parallel type or a mesh there is nothing to follow. */
function isAnnotated({ tensors }: FusionData): boolean {
  return tensors.some(
    ({ mesh, domain }) => mesh !== null || domain.loop.some((axis) => axis.parallelType !== "Serial"),
  );
}

/** At most so many ops after one whose operands disagree are looked at. */
const farthest = 6;

/**
 * The order by which a sum over devices whose operands disagree on other axes, a contraction of an operand that one
 * before gathers, or an op of operands on several meshes moves the fewest bytes, counting what the next readers then
 * need as well. Each order is tried on these ops alone. Of equal ones it is the op's own.
 */
function cheapestOrders(
  fusion: FusionData,
  options: LoweringOptions,
  isFree: (op: Op, tensors: readonly Tensor[]) => boolean,
): OrderOf {
  const isUsers = (id: TensorId): boolean => at(fusion.tensors, id).mesh !== null;
  let readers: ReturnType<typeof readersOf> | null = null;
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  /** By the text of what is tried: equal layers are tried once. */
  const known = new Map<string, readonly number[]>();
  return (i: number, tensors: readonly Tensor[]): readonly number[] => {
    const op = at(fusion.ops, i);
    const own = referenceOrder(op, tensors);
    const mayDiffer = isFree(op, tensors) || isOnMeshes(op, tensors);
    if (!mayDiffer || op.inputs.some((id) => streamAxis(at(tensors, id)) !== null)) return own;
    const orders = own.map((first) => [first, ...own.filter((operand) => operand !== first)]);
    if (new Set(orders.map((order) => tensorText(placedBy(fusion, op, tensors, order)))).size === 1) return own;
    readers ??= readersOf(fusion);
    const isPlaced = (id: TensorId): boolean => isUsers(id) || at(tensors, id).mesh !== null;
    // A stretched operand moves as it is before.
    const stretches = new Set(
      op.inputs.flatMap((id) => producers.get(id) ?? []).filter(({ kind }) => kind === "Expand"),
    );
    const window = [...stretches, ...followers(op, readers, isPlaced)];
    const before = [...tensors];
    for (const id of window.slice(stretches.size).flatMap(outputsOf)) before[id] = at(fusion.tensors, id);
    const program = excerpt(fusion, window, before);
    return getOrMake(known, `${own.join()} ${fusionText(program)}`, () =>
      cheapestOf(orders, (order) => {
        const placed = spreadShardings(program, options, (j, others) =>
          j === stretches.size ? order : referenceOrder(at(program.ops, j), others),
        );
        return placed.tensors.every(({ mesh }) => mesh !== null) ? movesOf(placed, options) : null;
      }),
    );
  };
}

/** The first order, or one that moves no more bytes and costs the least. */
function cheapestOf(
  [own = [], ...others]: readonly (readonly number[])[],
  movesBy: (order: readonly number[]) => Moves | null,
): readonly number[] {
  const given = movesBy(own);
  if (given === null || given.bytes === 0) return own;
  let best = { order: own, moves: given };
  for (const order of others) {
    const moves = movesBy(order);
    if (moves !== null && moves.bytes <= given.bytes && costOf(moves) < costOf(best.moves)) best = { order, moves };
  }
  return best.order;
}

/** Equal for Fusions that are equal but for names, and numbers of axes. */
function fusionText({ ops, tensors, outputs }: FusionData): string {
  return [...ops.map(exactText), ...tensors.map(tensorText), outputs.join()].join("\n");
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

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
import { shardsOf, reducedShards } from "../../ir/shards.ts";
import { streamAxis } from "../../ir/stream.ts";
import { exactText } from "../../support/exact-text.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass, PassContext } from "../pass.ts";
import { sharesContracted } from "../routes/layouts.ts";
import { costOf, excerpt, type Moves, movesOf, movesIn } from "../routes/weigh-ops.ts";
import { followOperands } from "./follow.ts";
import { placeCotangents } from "./place-cotangents.ts";
import { type OrderOf, referenceOrder, spreadShardings } from "./spread.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { type Repeat, repeatsOf } from "../../support/repeats.ts";
import { foldPermutes, foldSums } from "../prepare/fold-permutes.ts";
import { placeScalars } from "../prepare/place-scalars.ts";
import { insertRoutes } from "../routes/insert-routes.ts";
import { splitIndices } from "../routes/split-indices.ts";

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

// What moves in a placed Fusion, by all the passes up to its routes. Of a program of many layers it is what moves with few
// of them, and for each further layer what one more adds: routing takes most of the time of lowering.

/** Layers that are left: those beside others, two that are alike, and one that is left out for comparison. */
const fewestLayers = 4;
/** Of fewer ops, routing the shorter programs takes as long. */
const fewestOps = 200;

/** The layers that several placements of one Fusion have in common. `texts`: of the tensors of each placement. */
function layersOfPlaced(ops: readonly Op[], texts: readonly (readonly string[])[]): readonly Repeat[] {
  const keys = new Map<string, number>();
  const keyOf = (text: string): number => getOrMake(keys, text, () => keys.size);
  const textOf = (id: TensorId): number => keyOf(texts.map((each) => at(each, id)).join("; "));
  const items = ops.map((op) => keyOf(`${op.kind}: ${[...op.inputs, ...outputsOf(op)].map(textOf).join()}`));
  return repeatsOf(items, fewestOps, 2 * fewestLayers);
}

/** Null if a size is not a number. */
function movesOfPlaced(placed: FusionData, layers: readonly Repeat[], context: PassContext): Moves | null {
  const missing = Math.min(...layers.map(({ times }) => times)) - fewestLayers;
  if (layers.length === 0) return routedMoves(placed, context);
  const few = routedMoves(withoutLayers(placed, layers, missing), context);
  const more = routedMoves(withoutLayers(placed, layers, missing - 1), context);
  if (few === null || more === null) return null;
  const all = (of: (moves: Moves) => number): number => of(few) + missing * (of(more) - of(few));
  return { bytes: all(({ bytes }) => bytes), steps: all(({ steps }) => steps) };
}

function routedMoves(placed: FusionData, context: PassContext): Moves | null {
  const passes = [placeScalars, foldPermutes, foldSums, splitIndices, insertRoutes];
  return movesIn(
    passes.reduce((program, pass) => pass.run(program, context), placed),
    context.options,
  );
}

/** What layers that are left out make is given to those that read it. */
function withoutLayers(placed: FusionData, layers: readonly Repeat[], removed: number): FusionData {
  const isLeft = (position: number): boolean =>
    layers.every(({ start, period }) => {
      const from = start + 2 * period;
      return position < from || position >= from + removed * period;
    });
  return excerpt(
    placed,
    placed.ops.filter((_, position) => isLeft(position)),
    placed.tensors,
  );
}

/** Equal for tensors that lie alike, also as sums over devices, and differ in numbers and names alone. */
function tensorText(tensor: Tensor): string {
  const { dtype, mesh, domain } = tensor;
  const axes = domain.logical.map(({ id }) => id);
  const shards = [...shardsOf(tensor), ...reducedShards(tensor)].map(({ type, axis, cut }) =>
    [type, axes.indexOf(axis.id), ...cut.parts.map(({ stride }) => printScalar(stride))].join(" "),
  );
  return [dtype, mesh?.toString(), ...domain.logical.map(({ extent }) => printScalar(extent)), "|", ...shards].join();
}

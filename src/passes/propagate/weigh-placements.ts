/**
 * What moves in a placed Fusion, by all the passes up to its routes. Of a program of many layers it is what moves with few
 * of them, and for each further layer what one more adds: routing takes most of the time of lowering.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { reducedShards, shardsOf } from "../../ir/shards.ts";
import { at, getOrMake } from "../../support/invariant.ts";
import { type Repeat, repeatsOf } from "../../support/repeats.ts";
import type { PassContext } from "../pass.ts";
import { foldPermutes, foldSums } from "../prepare/fold-permutes.ts";
import { placeScalars } from "../prepare/place-scalars.ts";
import { insertRoutes } from "../routes/insert-routes.ts";
import { splitIndices } from "../routes/split-indices.ts";
import { excerpt, type Moves, movesIn } from "../routes/weigh-ops.ts";

/** Layers that are left: those beside others, two that are alike, and one that is left out for comparison. */
const fewestLayers = 4;
/** Of fewer ops, routing the shorter programs takes as long. */
const fewestOps = 200;

/** The layers that several placements of one Fusion have in common. `texts`: of the tensors of each placement. */
export function layersOfPlaced(ops: readonly Op[], texts: readonly (readonly string[])[]): readonly Repeat[] {
  const keys = new Map<string, number>();
  const keyOf = (text: string): number => getOrMake(keys, text, () => keys.size);
  const textOf = (id: TensorId): number => keyOf(texts.map((each) => at(each, id)).join("; "));
  const items = ops.map((op) => keyOf(`${op.kind}: ${[...op.inputs, ...outputsOf(op)].map(textOf).join()}`));
  return repeatsOf(items, fewestOps, 2 * fewestLayers);
}

/** Null if a size is not a number. */
export function movesOfPlaced(placed: FusionData, layers: readonly Repeat[], context: PassContext): Moves | null {
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
export function tensorText(tensor: Tensor): string {
  const { dtype, mesh, domain } = tensor;
  const axes = domain.logical.map(({ id }) => id);
  const shards = [...shardsOf(tensor), ...reducedShards(tensor)].map(({ type, axis, cut }) =>
    [type, axes.indexOf(axis.id), ...cut.parts.map(({ stride }) => printScalar(stride))].join(" "),
  );
  return [dtype, mesh?.toString(), ...domain.logical.map(({ extent }) => printScalar(extent)), "|", ...shards].join();
}

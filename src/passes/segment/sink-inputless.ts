/**
 * Constants and random numbers go to the units that use them: an op that needs no input of the Fusion but numbers could
 * be computed at any time, and in a unit of its own it would write what its readers then read.
 *
 *   T3 = randomBelow(T0, T1, T2); T5 = linear(T4, ..); T6 = where(T3, T5, 0)     ->     T3 in the unit of T6
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { at } from "../../support/invariant.ts";

/** An op that another one reads; `joins`: one unit may hold both. */
export interface Edge {
  readonly from: number;
  readonly joins: boolean;
}

/**
 * The depths of the ops, where such an op is as deep as the first of its readers, if one unit may hold it and each of
 * them. `edges[i]` are the producers of op i, and `early[i]` the least depth that it can have.
 */
export function sinkInputless(
  { ops, tensors, inputs }: FusionData,
  edges: readonly (readonly Edge[])[],
  early: readonly number[],
): readonly number[] {
  const numbers = inputs.filter((id) => withoutReductions(at(tensors, id).domain.logical).length === 0);
  const inputless = new Set<TensorId>(numbers);
  for (const op of ops) if (op.inputs.every((id) => inputless.has(id))) inputless.add(op.output);
  if (inputless.size === numbers.length) return early;
  const depth = [...early];
  const latest = ops.map(() => Infinity);
  const isFixed = ops.map(() => false);
  for (let i = ops.length - 1; i >= 0; i--) {
    const isFree = inputless.has(at(ops, i).output) && isFixed[i] === false && latest[i] !== Infinity;
    if (isFree) depth[i] = at(latest, i);
    for (const { from, joins } of at(edges, i)) {
      latest[from] = Math.min(at(latest, from), at(depth, i));
      if (!joins) isFixed[from] = true;
    }
  }
  return depth;
}

/**
 * An op moves on to the unit of its first reader if that takes no more memory: its operands are kept until then anyway,
 * as inputs of the Fusion are, or they are smaller than its result, which would be kept instead. Its readers then need
 * not load what it makes. Indices, constants and random numbers take no memory that counts: numbers make them.
 *
 *   T5 = tanh(T4); T6 = matmul(T5, ..); ..; T21 = matmul(T20, ..)
 *   T22 = mul(T5, T5); T23 = sub(1, T22); T24 = mul(T21, T23); T25 = matmul(T5, ..)    ->    T22 and T23 beside T24
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { knownBytes } from "../../ir/known-bytes.ts";
import { at } from "../../support/invariant.ts";

/** An op that another one reads; `joins`: one unit may hold both. */
export interface Edge {
  readonly from: number;
  readonly joins: boolean;
}

/**
 * The depths of the ops, at least `early[i]`, their least. `edges[i]` are the producers of op i: it is as deep as one
 * that it joins or deeper, and deeper than any other.
 */
export function sinkOps(
  fusion: FusionData,
  edges: readonly (readonly Edge[])[],
  early: readonly number[],
): readonly number[] {
  const { ops, tensors } = fusion;
  const latest = latestDepths(edges, early);
  const lastReadBesides = lastReadsOf(edges, early);
  const kept = keptOf(fusion);
  const bytes = ops.map(({ output }) => knownBytes(at(tensors, output)));
  const depth: number[] = [];
  for (const [i, own] of edges.entries()) {
    // An op with a reader that it does not join has its least depth.
    const least = own.reduce((most, { from, joins }) => Math.max(most, joins ? at(depth, from) : 0), at(early, i));
    const target = Math.max(least, at(latest, i));
    /** Bytes times the depths for which they are kept longer. */
    const longer = own.reduce((sum, { from }) => {
      if (kept.has(at(ops, from).output)) return sum;
      const until = Math.max(lastReadBesides(from, i), at(depth, from), least);
      return sum + at(bytes, from) * Math.max(0, target - until);
    }, 0);
    depth.push(longer <= at(bytes, i) * (target - least) ? target : least);
  }
  return depth;
}

/** What is kept in any case, or made of numbers alone. */
function keptOf({ ops, tensors, inputs, outputs }: FusionData): ReadonlySet<TensorId> {
  const numbers = inputs.filter((id) => withoutReductions(at(tensors, id).domain.logical).length === 0);
  const made = new Set<TensorId>(numbers);
  for (const op of ops) if (op.inputs.every((id) => made.has(id))) made.add(op.output);
  return new Set([...made, ...outputs]);
}

/** The depth of an op's first reader if it joins all of its readers, otherwise its least depth. */
function latestDepths(edges: readonly (readonly Edge[])[], early: readonly number[]): readonly number[] {
  const first = early.map(() => Infinity);
  const isFixed = early.map(() => false);
  const latest = [...early];
  for (let i = early.length - 1; i >= 0; i--) {
    if (isFixed[i] === false && first[i] !== Infinity) latest[i] = at(first, i);
    for (const { from, joins } of at(edges, i)) {
      first[from] = Math.min(at(first, from), at(latest, i));
      if (!joins) isFixed[from] = true;
    }
  }
  return latest;
}

/** The depth of the last read of an op's result by other ops than `reader`, at least; -1 without any. */
function lastReadsOf(
  edges: readonly (readonly Edge[])[],
  early: readonly number[],
): (op: number, reader: number) => number {
  const readers = early.map((): number[] => []);
  for (const [i, own] of edges.entries()) for (const { from } of own) at(readers, from).push(i);
  // The two deepest suffice.
  const deepest = readers.map((own) => own.toSorted((a, b) => at(early, b) - at(early, a)).slice(0, 2));
  return (op, reader) => {
    const other = at(deepest, op).find((each) => each !== reader);
    return other === undefined ? -1 : at(early, other);
  };
}

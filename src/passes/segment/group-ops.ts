/** Which ops one statement of the host program holds: a unit of several, or an op alone. */
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { knownBytes } from "../../ir/sizes.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { sameChunks, streamPart } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { createUnionFind } from "../../support/union-find.ts";
import type { LoweringOptions } from "../options.ts";
import { isResharding, sameMesh } from "../routes/layouts.ts";

/**
 * The groups in topological order. An op is one deeper than its producers in other groups, or more (below),
 * and joins the unit of a producer of its own depth. No path then leaves a unit and returns to it. All ops that
 * normalize the same rows are as deep as the deepest of them.
 */
export function groupOps(
  fusion: FusionData,
  { nvfuserLimits }: Pick<LoweringOptions, "nvfuserLimits">,
): readonly (readonly Op[])[] {
  const { ops, tensors } = fusion;
  const producerOf = new Map<TensorId, number>(ops.flatMap((op, i) => outputsOf(op).map((id) => [id, i])));
  const rows = new Map<Op, readonly Op[]>(
    nvfuserLimits ? [] : normalizedRows(fusion).flatMap((group) => group.map((op) => [op, group])),
  );
  const couldFuse = ops.map(
    (op) =>
      !rows.has(op) &&
      (!rowOf(op).standalone || (!nvfuserLimits && isFused(op, tensors))) &&
      !isResharding(op, tensors),
  );
  const views = nvfuserLimits ? new Set<Op>() : loneViews(fusion, producerOf, couldFuse);
  const fusible = ops.map((op, i) => at(couldFuse, i) && !views.has(op));
  const early: number[] = [];
  const sets = createUnionFind(ops.length);
  const edges = ops.map((op, i) => {
    const producers = [...new Set(op.inputs.flatMap((input) => producerOf.get(input) ?? []))];
    const own = producers.map((from): Edge => {
      const producer = at(ops, from);
      const joins =
        at(fusible, i) &&
        at(fusible, from) &&
        sameMesh(at(tensors, producer.output).mesh, at(tensors, op.output).mesh) &&
        (nvfuserLimits || sameLoop(producer, op, tensors));
      return { from, joins };
    });
    const group = rows.get(op);
    const first = group === undefined ? i : (producerOf.get(at(group, 0).output) ?? i);
    sets.union(first, i);
    early[i] =
      first < i
        ? at(early, first)
        : group === undefined
          ? own.reduce((deepest, { from, joins }) => Math.max(deepest, at(early, from) + (joins ? 0 : 1)), 0)
          : // They come before the first op of the group.
            producersOf(group, producerOf).reduce((deepest, from) => Math.max(deepest, at(early, from) + 1), 0);
    return own;
  });
  const depth = nvfuserLimits ? early : sinkOps(fusion, edges, early);
  edges.forEach((own, i) => {
    for (const { from, joins } of own) if (joins && depth[from] === depth[i]) sets.union(from, i);
  });
  const members = new Map<number, Op[]>();
  ops.forEach((op, i) => {
    const root = sets.find(i);
    const group = members.get(root);
    if (group) group.push(op);
    else members.set(root, [op]);
  });
  const groupOfRoot = new Map([...members.keys()].map((root, g) => [root, g]));
  return orderGroups([...members.values()], (tensor) => {
    const producer = producerOf.get(tensor);
    return producer === undefined ? undefined : groupOfRoot.get(sets.find(producer));
  });
}

/** The ops outside of the group that it reads. */
function producersOf(group: readonly Op[], producerOf: ReadonlyMap<TensorId, number>): readonly number[] {
  const own = new Set(group.flatMap(outputsOf));
  return group.flatMap(({ inputs }) =>
    inputs.flatMap((input) => (own.has(input) ? [] : (producerOf.get(input) ?? []))),
  );
}

/**
 * The reshapes, expands and slices with no op beside them that a unit could hold together with them: on their own they
 * are views, and a unit would copy. A slice of what a unit makes for it alone is made in the unit: it is smaller.
 */
function loneViews(
  { ops, tensors, outputs }: FusionData,
  producerOf: ReadonlyMap<TensorId, number>,
  fusible: readonly boolean[],
): ReadonlySet<Op> {
  const read = new Set(ops.flatMap((op, i) => (at(fusible, i) && !isViewAlone(op) ? op.inputs : [])));
  const stored = new Set([...outputs, ...ops.flatMap((op, i) => (at(fusible, i) ? [] : op.inputs))]);
  const isAlone = (op: Op): boolean => {
    const source = at(op.inputs, 0);
    const producer = producerOf.get(source);
    if (producer === undefined || !at(fusible, producer)) return true;
    return !read.has(op.output) && (op.kind !== "Slice" || stored.has(source));
  };
  return new Set(
    ops.filter(
      (op, i) => isViewAlone(op) && at(fusible, i) && streamPart(at(tensors, op.output)) === null && isAlone(op),
    ),
  );
}

export function isViewAlone({ kind }: Op): boolean {
  return kind === "Reshape" || kind === "Expand" || kind === "Slice";
}

/**
 * Whether an op that could be a statement joins a unit. Alone, a slice is a view, but in a loop over chunks a copy. A
 * reduction is a unit's only in such a loop, where it is launched in each iteration.
 */
function isFused({ kind, output }: Op, tensors: readonly Tensor[]): boolean {
  if (kind === "Binary" || kind === "Slice") return true;
  if (kind !== "Reduction") return false;
  const stream = streamPart(at(tensors, output));
  return stream !== null && stream.chunks !== null && stream.part.iterType !== "reduction";
}

/**
 * Whether one unit may hold both ops: neither has a Stream axis, or an iteration of the loop over the consumer's needs
 * of the producer only what the same iteration makes.
 */
function sameLoop(producer: Op, consumer: Op, tensors: readonly Tensor[]): boolean {
  const [from, to] = [producer, consumer].map((op) => streamPart(at(tensors, op.output)));
  if (from === null || to === null || from === undefined || to === undefined) return from === to;
  if (!sameChunks(from.chunks, to.chunks)) return false;
  const own = axisMap(consumer, tensors).filter(({ operand }) => consumer.inputs[operand] === producer.output);
  return consumer.inputs.every(
    (input, operand) =>
      input !== producer.output ||
      own.some(
        (pair) =>
          pair.operand === operand &&
          !pair.broadcast &&
          pair.producer.id === from.axis.id &&
          pair.consumer.id === to.axis.id,
      ),
  );
}

/** The groups in the order of their first ops, unless a group needs a later one. */
function orderGroups(
  groups: readonly (readonly Op[])[],
  groupOf: (tensor: TensorId) => number | undefined,
): readonly (readonly Op[])[] {
  const ordered: (readonly Op[])[] = [];
  const state = new Uint8Array(groups.length);
  const [unseen, open, done] = [0, 1, 2];
  for (let first = 0; first < groups.length; first++) {
    // An explicit stack: a chain of 10,000 groups would exhaust the call stack.
    const stack = [first];
    while (stack.length > 0) {
      const g = at(stack, stack.length - 1);
      const needed =
        state[g] === unseen ? at(groups, g).flatMap((op) => op.inputs.flatMap((input) => groupOf(input) ?? [])) : [];
      const missing = needed.filter((other) => other !== g && state[other] === unseen);
      if (missing.length > 0) {
        state[g] = open;
        stack.push(...missing.toReversed());
        continue;
      }
      stack.pop();
      if (state[g] !== done) ordered.push(at(groups, g));
      state[g] = done;
    }
  }
  return ordered;
}

// An op moves on to the unit of its first reader if that takes no more memory: its operands are kept until then anyway,
// as inputs of the Fusion are, or they are smaller than its result, which would be kept instead. Its readers then need
// not load what it makes. Indices, constants and random numbers take no memory that counts: numbers make them.
//
//   T5 = tanh(T4); T6 = matmul(T5, ..); ..; T21 = matmul(T20, ..)
//   T22 = mul(T5, T5); T23 = sub(1, T22); T24 = mul(T21, T23); T25 = matmul(T5, ..)    ->    T22 and T23 beside T24

/** An op that another one reads; `joins`: one unit may hold both. */
interface Edge {
  readonly from: number;
  readonly joins: boolean;
}

/**
 * The depths of the ops, at least `early[i]`, their least. `edges[i]` are the producers of op i: it is as deep as one
 * that it joins or deeper, and deeper than any other.
 */
function sinkOps(fusion: FusionData, edges: readonly (readonly Edge[])[], early: readonly number[]): readonly number[] {
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

/*
 * The ops that normalize rows: reductions of the last axes whose results are broadcast along these axes again, and the
 * elementwise ops that they are connected with. Norms and softmax are made of them. As one unit they read each row once.
 *
 * Only ops between the same GEMMs and communications are put together: as a unit they run where the first of them
 * stands, and what an op further back makes would be held until then.
 */

/** Groups in the order of the ops. The producers of a group's ops are in the group or before its first op. */
function normalizedRows(fusion: FusionData): readonly (readonly Op[])[] {
  const { ops, tensors } = fusion;
  if (!ops.some((op) => isRowReduction(op, fusion))) return [];
  const sets = createUnionFind(ops.length);
  /** The ops of the current stretch by their outputs, and what else it computes. */
  let members = new Map<TensorId, number>();
  let others = new Set<TensorId>();
  let last: Op | null = null;
  const start = (): void => {
    members = new Map();
    others = new Set();
    last = null;
  };
  const inRows = ops.map((op) => isInRows(op, fusion));
  for (const [i, op] of ops.entries()) {
    if (!at(inRows, i)) {
      // A sum of columns may stand between, if nothing in the stretch reads it.
      if (op.kind === "Reduction" && isLocal(op, fusion)) others.add(op.output);
      else start();
      continue;
    }
    const follows = last === null || sameMesh(at(tensors, last.output).mesh, at(tensors, op.output).mesh);
    if (!follows || op.inputs.some((input) => others.has(input))) start();
    for (const input of op.inputs) {
      const producer = members.get(input);
      if (producer !== undefined) sets.union(producer, i);
    }
    members.set(op.output, i);
    last = op;
  }
  const groups = new Map<number, Op[]>();
  for (const [i, op] of ops.entries()) {
    if (!at(inRows, i)) continue;
    const root = sets.find(i);
    const group = groups.get(root);
    if (group) group.push(op);
    else groups.set(root, [op]);
  }
  const normalizing = [...groups.values()].filter((group) => normalizes(group, fusion));
  return normalizing.length === 0 ? [] : withColumnSums(normalizing, fusion);
}

/**
 * The groups with the sums of columns of what they alone make and read, as the gradient of a norm's weight is. In the
 * unit it is computed as it is added, and not stored.
 */
function withColumnSums(groups: readonly (readonly Op[])[], fusion: FusionData): readonly (readonly Op[])[] {
  const groupOf = new Map(groups.flatMap((group, g) => group.map(({ output }) => [output, g] as const)));
  const sums = groups.map((): Op[] => []);
  /** What others read. */
  const shared = new Set<TensorId>(fusion.outputs);
  for (const op of fusion.ops) {
    const group = groupOf.get(op.inputs[0] ?? op.output);
    const adds = op.kind === "Reduction" && isLocal(op, fusion) && !isRowReduction(op, fusion);
    if (adds && group !== undefined) at(sums, group).push(op);
    else for (const id of op.inputs) if (groupOf.get(id) !== groupOf.get(op.output)) shared.add(id);
  }
  return groups.map((group, g) => [...group, ...at(sums, g).filter(({ inputs }) => !shared.has(at(inputs, 0)))]);
}

function isLocal(op: Op, { tensors }: FusionData): boolean {
  return !isResharding(op, tensors) && streamPart(at(tensors, op.output)) === null;
}

function isInRows(op: Op, fusion: FusionData): boolean {
  const fits = !rowOf(op).standalone || op.kind === "Binary" || isRowReduction(op, fusion);
  return fits && isLocal(op, fusion);
}

/** Whether it reduces the last axes, and keeps others. */
function isRowReduction(op: Op, { tensors }: FusionData): boolean {
  if (op.kind !== "Reduction") return false;
  const { length } = withoutReductions(at(tensors, at(op.inputs, 0)).domain.logical);
  const kept = length - op.axes.length;
  return kept > 0 && op.axes.every((axis) => axis >= kept);
}

/** Whether a broadcast of the group depends on a reduction of the group. */
function normalizes(group: readonly Op[], fusion: FusionData): boolean {
  const reduced = new Set<TensorId>();
  return group.some((op) => {
    const depends = op.inputs.some((input) => reduced.has(input));
    if (depends || isRowReduction(op, fusion)) reduced.add(op.output);
    return depends && op.kind === "Broadcast";
  });
}

/**
 * The ops that normalize rows: reductions of the last axes whose results are broadcast along these axes again, and the
 * elementwise ops that they are connected with. Norms and softmax are made of them. As one unit they read each row once.
 *
 * Only ops between the same GEMMs and communications are put together: as a unit they run where the first of them
 * stands, and what an op further back makes would be held until then.
 */
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import { at } from "../../support/invariant.ts";
import { createUnionFind } from "../../support/union-find.ts";
import { isResharding, sameMesh } from "../routes/sharding.ts";
import { streamPart } from "../../ir/stream.ts";

/** Groups in the order of the ops. The producers of a group's ops are in the group or before its first op. */
export function normalizedRows(fusion: FusionData): readonly (readonly Op[])[] {
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

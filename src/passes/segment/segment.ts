/**
 * Turns a Fusion into the top-level statements of one rank's host program. Standalone ops stay alone, all other ops are
 * fused into HostUnits.
 *
 *   T1 = broadcast(T0); T3 = matmul(T2, T1)
 * becomes
 *   PostOnStream(HostUnit0, Inputs:{T0}, Outputs:{T1}); T3 = matmul(T2, T1)
 *
 * Ops with Stream and ops without are in different units, because a unit with Stream runs per chunk in a loop. Chunks of
 * an axis are small, so binary ops and reductions on them are fused, too.
 *
 * Source: nvFuser's HostIrLower. Here ops are grouped by depth, in one linear sweep.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import type { HostUnit, Statement, UnitId } from "../../host/nodes.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { createUnionFind } from "../../support/union-find.ts";
import type { LoweringOptions } from "../options.ts";
import type { Pass } from "../pass.ts";
import { isResharding, sameMesh } from "../reshard/sharding.ts";
import { sameChunks, streamPart } from "../stream-loops/stream-part.ts";

export const segment: Pass<"checked", "segmented"> = {
  name: "segment",
  from: "checked",
  to: "segmented",
  run: (fusion, { rank, options }) => {
    const tensors = fusion.tensors.map(inGlobalMemory);
    const units: HostUnit[] = [];
    const body: Statement[] = [];
    const uses = usesOf(fusion);
    const results = new Set(fusion.outputs);
    for (const group of groupOps(fusion, options)) {
      const first = at(group, 0);
      // Tensors without a mesh are on device 0. stream-parallel-type drops the other statements of other ranks, because
      // all ranks must make the same loops.
      if (rank !== 0 && at(tensors, first.output).mesh === null) continue;
      const isView =
        first.kind === "Reshape" && !options.nvfuserLimits && streamPart(at(tensors, first.output)) === null;
      if (group.length === 1 && (isView || rowOf(first).standalone || isResharding(first, tensors))) body.push(first);
      else body.push(...postUnit(group, { ...fusion, tensors }, uses, results, units));
    }
    const { inputs, outputs, iterDomainCount, scalarCount } = fusion;
    return {
      kind: "HostProgram",
      tensors,
      inputs,
      outputs,
      streams: [],
      units,
      body,
      iterDomainCount,
      scalarCount,
      exprCount: 0,
    };
  },
};

function inGlobalMemory(tensor: Tensor): Tensor {
  return tensor.memory === "local" ? { ...tensor, memory: "global" } : tensor;
}

/**
 * The groups in topological order. An op is one deeper than its producers in other groups, and joins the unit of a
 * producer of its own depth. No path then leaves a unit and returns to it.
 */
function groupOps(
  fusion: FusionData,
  { nvfuserLimits }: Pick<LoweringOptions, "nvfuserLimits">,
): readonly (readonly Op[])[] {
  const { ops, tensors } = fusion;
  const producerOf = new Map<TensorId, number>(ops.map((op, i) => [op.output, i]));
  const couldFuse = ops.map(
    (op) => (!rowOf(op).standalone || (!nvfuserLimits && isPerChunk(op, tensors))) && !isResharding(op, tensors),
  );
  const views = nvfuserLimits ? new Set<Op>() : reshapeViews(fusion, producerOf, couldFuse);
  const fusible = ops.map((op, i) => at(couldFuse, i) && !views.has(op));
  const depth: number[] = [];
  const sets = createUnionFind(ops.length);
  ops.forEach((op, i) => {
    const producers = op.inputs.flatMap((input) => producerOf.get(input) ?? []);
    const joins = (producer: number): boolean =>
      at(fusible, i) &&
      at(fusible, producer) &&
      sameMeshes(at(ops, producer), op, tensors) &&
      (nvfuserLimits || sameLoop(at(ops, producer), op, tensors));
    depth[i] = producers.reduce(
      (deepest, producer) => Math.max(deepest, at(depth, producer) + (joins(producer) ? 0 : 1)),
      0,
    );
    for (const producer of producers) if (joins(producer) && depth[producer] === depth[i]) sets.union(producer, i);
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

/**
 * The reshapes with no op beside them that a unit could hold together with them: on their own they are views, and a
 * unit would copy.
 */
function reshapeViews(
  { ops, tensors }: FusionData,
  producerOf: ReadonlyMap<TensorId, number>,
  fusible: readonly boolean[],
): ReadonlySet<Op> {
  const read = new Set(ops.flatMap((op, i) => (at(fusible, i) && op.kind !== "Reshape" ? op.inputs : [])));
  const isAlone = (op: Op): boolean => {
    const producer = producerOf.get(at(op.inputs, 0));
    const follows = producer !== undefined && at(fusible, producer);
    return !follows || !read.has(op.output);
  };
  return new Set(
    ops.filter(
      (op, i) => op.kind === "Reshape" && at(fusible, i) && streamPart(at(tensors, op.output)) === null && isAlone(op),
    ),
  );
}

function sameMeshes(a: Op, b: Op, tensors: readonly Tensor[]): boolean {
  return sameMesh(at(tensors, a.output).mesh, at(tensors, b.output).mesh);
}

/** Whether a loop over chunks of an axis computes the op, which is launched in each iteration. */
function isPerChunk(op: Op, tensors: readonly Tensor[]): boolean {
  if (op.kind !== "Binary" && op.kind !== "Reduction") return false;
  const stream = streamPart(at(tensors, op.output));
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

function usesOf(fusion: FusionData): ReadonlyMap<TensorId, readonly Op[]> {
  const uses = new Map<TensorId, Op[]>();
  for (const op of fusion.ops) {
    for (const input of op.inputs) {
      const list = uses.get(input);
      if (list) list.push(op);
      else uses.set(input, [op]);
    }
  }
  return uses;
}

function postUnit(
  group: readonly Op[],
  fusion: FusionData,
  uses: ReadonlyMap<TensorId, readonly Op[]>,
  results: ReadonlySet<TensorId>,
  units: HostUnit[],
): readonly Statement[] {
  const members = new Set(group);
  const made = new Set(group.map((op) => op.output));
  const inputs = [...new Set(group.flatMap((op) => op.inputs))].filter((id) => !made.has(id));
  const outputs = [...made].filter(
    (id) => results.has(id) || uses.get(id)?.some((user) => !members.has(user)) === true,
  );
  // A unit whose results nothing reads is dead code.
  if (outputs.length === 0) return [];
  const unit: HostUnit = { id: makeId<UnitId>(units.length), fusion: { ...fusion, ops: group, inputs, outputs } };
  units.push(unit);
  return [{ kind: "PostOnStream", unit: unit.id, inputs, outputs }];
}

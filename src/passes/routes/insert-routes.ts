/**
 * Decides what moves between devices, and inserts it: after this pass, an op that reshards does nothing else, and one
 * communication carries it.
 *
 *   whether operands of an op move, or its result, or it is reduced instead    weigh-ops.ts, place-op.ts
 *   what a sum over devices becomes                                            split-over-devices.ts, merge-sums.ts,
 *   which ops are computed on what devices have of a sum                       partial-views.ts
 *   which tensor moves, for how many readers                                   move.ts
 *   the route, and what it costs                                               route.ts
 *   the kinds of steps, and the bytes of each                                  steps/
 *
 * With `nvfuserLimits` each op is placed for itself, as nvFuser does.
 */
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { isContraction, type Op } from "../../ir/ops/op.ts";
import { streamAxis } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { onParts } from "./partial-views.ts";
import { type Decisions, routeOps, costOf, excerpt, movesOf, weighing } from "./weigh-ops.ts";
import type { Routing } from "./routing.ts";

export const insertRoutes: Pass<"checked", "checked"> = {
  name: "insert-routes",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => routeOps(fusion, options, options.nvfuserLimits ? {} : decisions(fusion)),
};

function decisions(fusion: FusionData): Decisions {
  const weigh = weighing(fusion);
  const isOfSums = sumsOf(fusion);
  return {
    decide: (routing, op, written) => {
      weigh(routing, op, written);
      if (isContraction(op))
        for (const id of lateSums(routing, op, isOfSums)) routing.late.set(id, at(fusion.tensors, op.output).dtype);
    },
  };
}

// Leaves the sum of a contraction's partial results to what views of it, and other ops that are linear in it, make of
// them, where that moves less.
//
//   T2[16, 32] = matmul(T0, T1), summed over devices; T5[32, 16] = cat(slice(T2), slice(T2)), cut over them
//
// Summed at once, T2 takes an Allreduce. The partial results are sliced and joined instead, and a ReduceScatter gives T5.
// In a mixture of experts, what experts give for a token is weighed and added before devices add it: the bytes of a
// token move once, not once for each of its experts. Both ways are routed, and their bytes compared (weigh-ops.ts).

/** At most so many ops on a sum are looked at. */
const farthest = 10;

/** The results of an op and of ops on it whose sums are left to further ops: none if that moves no less. */
function lateSums(
  { fusion, tensors, options, readers, outputs }: Routing,
  op: Op,
  isOfSums: (id: TensorId) => boolean,
): readonly TensorId[] {
  const readersOf = (id: TensorId): readonly Op[] => readers.get(id) ?? [];
  const region = linearIn(fusion, op, readersOf);
  if (region.length === 1) return [];
  const made = new Set(region.map(({ output }) => output));
  const late = [...made].filter((id) => readersOf(id).some(({ output }) => made.has(output)));
  const isClosed = late.every((id) => !outputs.has(id) && readersOf(id).every(({ output }) => made.has(output)));
  const isChunked = [...op.inputs, ...made].some((id) => streamAxis(at(tensors, id)) !== null);
  if (!isClosed || isChunked) return [];
  const based = region.flatMap((each) => (each.kind === "ScatterAdd" ? [at(each.inputs, 0)] : []));
  const zeros =
    based.length === 0 ? [] : fusion.ops.filter((each) => each.kind === "Full" && based.includes(each.output));
  const program = excerpt(fusion, [...zeros, ...region], tensors);
  const own = program.ops.map(({ output }) => output).filter((id) => !program.outputs.includes(id));
  const now = movesOf(program, options);
  const later =
    now === null || now.bytes === 0
      ? null
      : movesOf(program, options, { late: new Map(own.map((id) => [id, at(tensors, op.output).dtype])) });
  if (now === null || later === null) return [];
  if (later.bytes < now.bytes && costOf(later) < costOf(now)) return late;
  // One collective carries all sums that are added, as of a weight that each step of a loop reads.
  const isAdded = region.every(({ output }) =>
    readersOf(output).every((each) => made.has(each.output) || (isAddition(each) && each.inputs.every(isOfSums))),
  );
  return isAdded && later.bytes === now.bytes ? late : [];
}

function isAddition(op: Op): boolean {
  return op.kind === "Binary" && op.op === "add" && op.scalar === undefined;
}

/** Whether a tensor is a view of the result of a contraction or of an addition. */
function sumsOf(fusion: FusionData): (id: TensorId) => boolean {
  const producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const isOfSums = (id: TensorId): boolean => {
    const op = producers.get(id);
    if (op === undefined) return false;
    const isView = op.kind === "Permute" || op.kind === "Slice" || op.kind === "Reshape";
    return isContraction(op) || isAddition(op) || (isView && isOfSums(at(op.inputs, 0)));
  };
  return isOfSums;
}

/** The op, and what is linear in its result, op by op. */
function linearIn(fusion: FusionData, op: Op, readersOf: (id: TensorId) => readonly Op[]): readonly Op[] {
  const { dtype } = at(fusion.tensors, op.output);
  const region = [op];
  const made = new Set([op.output]);
  for (const { output } of region) {
    for (const reader of readersOf(output)) {
      const isLinear = onParts(fusion, reader, (id) => made.has(id), dtype, 0, 0) !== null;
      if (!isLinear || made.has(reader.output) || region.length > farthest) continue;
      region.push(reader);
      made.add(reader.output);
    }
  }
  return region;
}

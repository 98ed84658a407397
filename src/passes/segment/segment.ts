/**
 * Turns a Fusion into the top-level statements of one rank's host program. Standalone ops stay alone, all other ops are
 * fused into HostUnits.
 *
 *   T1 = broadcast(T0); T3 = matmul(T2, T1)
 * becomes
 *   PostOnStream(HostUnit0, Inputs:{T0}, Outputs:{T1}); T3 = matmul(T2, T1)
 *
 * Ops with Stream and ops without are in different units, because a unit with Stream runs per chunk in a loop. Chunks of
 * an axis are small, so binary ops and reductions on them are fused, too. So are those that normalize rows
 * (normalized-rows.ts).
 *
 * Source: nvFuser's HostIrLower. Here ops are grouped by depth, in one linear sweep.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import { rowOf } from "../../ir/ops/rows.ts";
import type { HostUnit, Statement, UnitId } from "../../host/nodes.ts";
import { makeId, at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { decided } from "../rank-class.ts";
import { isResharding } from "../routes/layouts.ts";
import { streamPart } from "../../ir/stream.ts";
import { groupOps, isViewAlone } from "./group-ops.ts";

export const segment: Pass<"checked", "segmented"> = {
  name: "segment",
  from: "checked",
  to: "segmented",
  run: (fusion, context) => {
    const { options } = context;
    const tensors = fusion.tensors.map(inGlobalMemory);
    const units: HostUnit[] = [];
    const body: Statement[] = [];
    const uses = usesOf(fusion);
    const results = new Set(fusion.outputs);
    for (const group of groupOps(fusion, options)) {
      const first = at(group, 0);
      // Tensors without a mesh are on device 0. stream-parallel-type drops the other statements of other ranks, because
      // all ranks must make the same loops.
      if (at(tensors, first.output).mesh === null && decided(context, (rank) => rank !== 0)) continue;
      const isView = isViewAlone(first) && !options.nvfuserLimits && streamPart(at(tensors, first.output)) === null;
      if (group.length === 1 && (isView || rowOf(first).standalone || isResharding(first, tensors))) body.push(first);
      else body.push(...postUnit(group, { ...fusion, tensors }, uses, results, units));
    }
    const { inputs, outputs, aliases, iterDomainCount, scalarCount } = fusion;
    return {
      kind: "HostProgram",
      tensors,
      inputs,
      outputs,
      ...(aliases === undefined ? {} : { aliases }),
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

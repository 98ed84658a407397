/**
 * A region as a Fusion of its own, whose tensors and axes are numbered by their first use. Regions that differ only in
 * numbers, in the names of their tensors and in where they were written have the same Fusion.
 */
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  loweringOf,
  type RegionOptions,
} from "../../compile/compile.ts";
import { type FusionRegion, lowerRegions } from "../../compile/lower-regions.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import { numbersByName } from "../../compile/record.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { outputsOf, renamedOp } from "../../ir/ops/op.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import { copyTensor, type TensorEdit } from "../../passes/edit/tensor-edit.ts";
import { makeId } from "../../support/ids.ts";
import { at } from "../../support/invariant.ts";
import { candidateStreams, type ScheduleCandidate } from "../choose/candidates.ts";
import type { FoundRegions } from "./split-regions.ts";

export interface RegionFusion {
  readonly fusion: HasFusionData;
  /** Equal for equal regions. */
  readonly key: string;
}

export function regionFusion(placed: FusionData, { ops, inputs, outputs }: FusionRegion): RegionFusion {
  const order = [...new Set([...inputs, ...ops.flatMap((op) => [...op.inputs, ...outputsOf(op)])])];
  const ids = new Map(order.map((id, index) => [id, makeId<TensorId>(index)]));
  const idOf = (id: TensorId): TensorId => ids.get(id) ?? id;
  const edit: TensorEdit = { tensors: [], iterDomainCount: 0 };
  for (const id of order) copyTensor(edit, at(placed.tensors, id));
  const data: FusionData = {
    kind: "Fusion",
    isPlaced: true,
    ...edit,
    ops: ops.map((op) => renamedOp(op, idOf)),
    inputs: inputs.map(idOf),
    outputs: outputs.map(idOf),
    scalarCount: placed.scalarCount,
  };
  return { fusion: { data: () => data }, key: keyOf(data) };
}

function keyOf({ tensors, ops, inputs, outputs }: FusionData): string {
  const shapes = tensors.map(({ dtype, memory, domain, mesh }) => ({ dtype, memory, domain, mesh: mesh?.toString() }));
  return JSON.stringify({ shapes, ops, inputs, outputs }, (_, value: unknown) =>
    typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? `${value} exactly` : value,
  );
}

/** The options for a part of a Fusion: sizes of its axes may follow from meshes of other tensors. */
export function withPlaced<Options extends CompileOptions>(placed: FusionData, options: Options): Options {
  return { ...options, sizes: new Map([...sizesFromMeshes(placed.tensors), ...numbersByName(options.sizes)]) };
}

// Compiles a Fusion whose regions have different lowering options and schedules.

/** The whole program with a schedule for each region, not verified. `options` have neither `schedule` nor `streams`. */
export function compileRegions(
  { placed, regions }: FoundRegions,
  candidates: readonly Pick<ScheduleCandidate, "lowering" | "schedule">[],
  options: CompileOptions,
): AnyCompilation {
  const given = loweringOf(options);
  const lowered = lowerRegions(
    placed,
    regions.map((region, position) => ({ region, lowering: { ...given, ...at(candidates, position).lowering } })),
    options.devices,
  );
  const own = candidates.map(({ lowering: { protocol }, schedule }): RegionOptions => ({ schedule, protocol }));
  return compile(lowered, { ...options, streams: candidateStreams, regions: own, verify: "off" });
}

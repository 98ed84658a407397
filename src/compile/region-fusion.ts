/**
 * A region as a Fusion of its own, whose tensors and axes are numbered by their first use. Regions that differ only in
 * numbers, in the names of their tensors and in where they were written have the same Fusion.
 */
import type { TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { type Op, outputsOf, renamedOp } from "../ir/ops/op.ts";
import { copyTensor, type TensorEdit } from "../passes/edit/tensor-edit.ts";
import { exactText } from "../support/exact-text.ts";
import { makeId, at } from "../support/invariant.ts";
import type { HasFusionData } from "./lower.ts";

/** Consecutive ops of a Fusion. */
export interface FusionRegion {
  readonly ops: readonly Op[];
  /** Tensors that the ops read and do not make. */
  readonly inputs: readonly TensorId[];
  /** Tensors that the ops make and that later ops or the caller read. */
  readonly outputs: readonly TensorId[];
}

export interface RegionFusion {
  readonly fusion: HasFusionData;
  /** The numbers that its tensors have in the whole. */
  readonly order: readonly TensorId[];
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
  return { fusion: { data: () => data }, order, key: keyOf(data) };
}

function keyOf({ tensors, ops, inputs, outputs }: FusionData): string {
  const shapes = tensors.map(({ dtype, memory, domain, mesh }) => ({ dtype, memory, domain, mesh: mesh?.toString() }));
  return exactText({ shapes, ops, inputs, outputs });
}

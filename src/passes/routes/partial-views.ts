/**
 * Views of partial results in place of views of their sum (late-sums.ts): the axis that numbers the devices is the last
 * one, and stays.
 *
 *   T3 = reduction(T2[M, N, DIDx], {2}); T4 = slice(T3)   ->   T5 = slice(T2); T4 = reduction(T5[M, N', DIDx], {2})
 */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import { type AxisShape, type DIDType, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { keepShares, layout, layoutOf } from "../../ir/layout.ts";
import type { Op } from "../../ir/ops/op.ts";
import { wholeAxis } from "../../ir/parts.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { typeOfWhole } from "../../ir/shards.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor } from "../edit/tensor-edit.ts";
import { reduceOverDevices } from "./merge-sums.ts";
import { moveTo } from "./layouts.ts";
import type { Routing } from "./routing.ts";

/** Adds the view of partial results and the sum of what it gives, in place of a view of late sums; false for other ops. */
export function viewPartialSums(routing: Routing, op: Op): boolean {
  const { tensors } = routing;
  const output = at(tensors, op.output);
  const to = layoutOf(output);
  const sums = op.inputs.map((id) => lateSum(routing, id));
  const [first] = sums;
  if (first === undefined || first === null || to === null) return false;
  const { mesh, axis, type } = first;
  if (!sums.every((sum) => sum?.type === type && sum.axis === axis && sum.mesh.equals(mesh))) return false;
  const view = partialView(op, axis, mesh.size(type));
  if (view === null || !to.mesh.equals(mesh)) return false;
  const axes = withoutReductions(output.domain.logical);
  const devices: AxisShape = { extent: constant(mesh.size(type)), iterType: "iteration" };
  const parts = addSerialTensor(routing, output, [...axes, devices], mesh, "partial sum");
  const kept = keepShares(to, (share) => share.type !== type).axes;
  moveTo(routing, parts, parts.domain.logical, layout(mesh, [...kept, wholeAxis(devices.extent, type)]), null);
  routing.ops.push({ ...view, inputs: sums.flatMap((sum) => sum?.parts ?? []), output: parts.id });
  reduceOverDevices(routing, { tensor: parts.id, slots: [...axes.keys(), type] }, "sum", output);
  return true;
}

/** Partial results whose innermost axis numbers the devices along a type. */
interface LateSum {
  readonly parts: TensorId;
  readonly axis: number;
  readonly type: DIDType;
  readonly mesh: DeviceMesh;
}

function lateSum({ tensors, late, waiting }: Routing, id: TensorId): LateSum | null {
  const sum = late.has(id) ? waiting.get(id)?.op : undefined;
  if (sum?.kind !== "Reduction") return null;
  const parts = at(tensors, at(sum.inputs, 0));
  const axes = withoutReductions(parts.domain.logical);
  const axis = axes.length - 1;
  const type = typeOfWhole(parts, at(axes, axis));
  if (type === null || parts.mesh === null || sum.axes.join() !== `${axis}`) return null;
  return { parts: parts.id, axis, type, mesh: parts.mesh };
}

/** The view of partial results, which have an axis more at the end; null for other ops. */
export function partialView(op: Op, axis: number, devices: number): Op | null {
  switch (op.kind) {
    case "Slice":
      return { ...op, ranges: [...op.ranges, { start: constant(0), stop: constant(devices) }] };
    case "Permute":
      return { ...op, order: [...op.order, axis] };
    case "Cat":
    case "Reshape":
      return op;
    default:
      return null;
  }
}

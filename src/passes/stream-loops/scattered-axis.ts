/** The axis of which each device keeps a part in an exchange of all with all: one index, or one run of its indices. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { type DeviceMesh, devicesAlong } from "../../ir/device-mesh.ts";
import type { DIDType, IterDomain, Tensor } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { didTypesOf, isOneRun, isWhole, type Shard, shardsOf } from "../../ir/shards.ts";
import type { Chunks } from "../../ir/stream.ts";
import { at } from "../../support/invariant.ts";
import { axisText, opPlace } from "../op-text.ts";
import type { ScatteredAxis } from "./forms.ts";

/** The axis of which each device keeps the part `to`. */
export function scatteredAxis(
  op: Op,
  to: Shard,
  mesh: DeviceMesh,
  tensors: readonly Tensor[],
  refuse: (found: string, expected: string, help: string) => never,
): ScatteredAxis {
  const [operand, output] = [at(tensors, at(op.inputs, 0)), at(tensors, op.output)];
  const scattered = axisMap(op, tensors).find(({ consumer }) => consumer.id === to.axis.id);
  if (scattered === undefined || shardsOf(operand).some(({ axis }) => axis.id === scattered.producer.id)) {
    return refuse(
      scattered === undefined
        ? `${axisText(output, to.axis)} without an axis in T${operand.id}`
        : axisText(operand, scattered.producer),
      `an axis of T${operand.id} that is not sharded and becomes ${axisText(output, to.axis)}`,
      "put set() in between and give it a sharding that is one step away from either side",
    );
  }
  return { from: scattered.producer, to: to.axis, chunks: scatteredChunks(op, output, to, mesh) };
}

/** How a device's part of the scattered axis is cut. */
function scatteredChunks(op: Op, output: Tensor, to: Shard, mesh: DeviceMesh): Chunks | null {
  if (isWhole(to)) {
    requireMeshExtent(op, output, to.axis, mesh, to.type);
    return null;
  }
  if (didTypesOf(to.cut).length === 1 && isOneRun(to, mesh.size(to.type)))
    return { parts: constant(mesh.size(to.type)), within: [] };
  return fail({
    code: "point-to-point-unsupported",
    message: `a device keeps no equal run of ${axisText(output, to.axis)}, and the op has no point-to-point form`,
    place: opPlace(op),
    found: `${axisText(output, to.axis)} in parts ${to.cut.parts.map(({ type }) => type).join(", ")}`,
    expected: `the axis in equal parts for the devices, ${to.type} on the outermost, and no other type on it`,
    help: `leave Stream out: one ${op.kind === "Set" ? "AllToAll" : "ReduceScatter"} moves all of it`,
  });
}

/**
 * Iteration i works with the i-th device, so the axis has one index per device. A symbolic size is checked once it is
 * known.
 */
export function requireMeshExtent(op: Op, tensor: Tensor, axis: IterDomain, mesh: DeviceMesh, type: DIDType): void {
  const devices = mesh.size(type);
  if (axis.extent.kind !== "constant" || axis.extent.value === devices) return;
  fail({
    code: "size-contradicts-mesh",
    message: `${axisText(tensor, axis)} and the mesh differ in size along ${type}`,
    place: opPlace(op),
    found: `size ${axis.extent.value}, ${devicesAlong(mesh, type)}`,
    expected: `size ${devices}`,
    help: `give the axis the size of the mesh along ${type}`,
  });
}

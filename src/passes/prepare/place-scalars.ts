/**
 * Puts inputs without axes, and ops without operands, on every device that reads them, and with them what is computed
 * from them alone, where the user gave no mesh. Nothing is sent: an executor gives the number to each device.
 *
 *   T2[b, b] = broadcast(T1[]); T3[DIDx, _] = mul(T0[DIDx, _], T2)     (a mesh on T0 and T3)
 * becomes
 *   the mesh of T3 on T1 and T2
 *
 * Source: nvFuser's CPU scalars, which need no mesh.
 */
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { reparallelize } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { sameMesh } from "../routes/layouts.ts";

export const placeScalars: Pass<"fusion", "fusion"> = {
  name: "place-scalars",
  from: "fusion",
  to: "fusion",
  run: (fusion) => {
    const scalars = unplacedScalars(fusion);
    if (scalars.size === 0) return fusion;
    const tensors = [...fusion.tensors];
    const place = (id: TensorId, mesh: DeviceMesh | null): void => {
      if (scalars.has(id)) tensors[id] = { ...at(tensors, id), mesh: joined(at(tensors, id).mesh, mesh) };
    };
    // In reverse order: an output has its mesh before its operands take it.
    for (const op of fusion.ops.toReversed()) for (const id of op.inputs) place(id, at(tensors, op.output).mesh);
    return tensors.some((tensor, id) => tensor !== fusion.tensors[id]) ? { ...fusion, tensors } : fusion;
  },
};

function unplacedScalars({ tensors, inputs, ops }: FusionData): ReadonlySet<TensorId> {
  const scalars = new Set(inputs.filter((id) => withoutReductions(at(tensors, id).domain.logical).length === 0));
  if (scalars.size === 0 && ops.every((op) => op.inputs.length > 0)) return scalars;
  for (const op of ops) if (op.inputs.every((id) => scalars.has(id))) scalars.add(op.output);
  return new Set([...scalars].filter((id) => at(tensors, id).mesh === null));
}

/** A mesh of the devices of both. */
function joined(a: DeviceMesh | null, b: DeviceMesh | null): DeviceMesh | null {
  if (a === null || b === null || sameMesh(a, b)) return a ?? b;
  if (b.devices.every((device) => a.has(device))) return a;
  return new DeviceMesh([...new Set([...a.devices, ...b.devices])].toSorted((x, y) => x - y));
}

// Gives a cast without a mesh the mesh and DID types of its operand. The API inserts casts to promote operands, and the
// user has no handle to place them.
//
//   T2 = cast(T0[DIDx, _])     ->     T2[DIDx, _] = cast(T0[DIDx, _])

export const placeCasts: Pass<"fusion", "fusion"> = {
  name: "place-casts",
  from: "fusion",
  to: "fusion",
  run: (fusion) => {
    const tensors = [...fusion.tensors];
    let changed = false;
    for (const op of fusion.ops) {
      if (op.kind !== "Cast") continue;
      const source = at(tensors, at(op.inputs, 0));
      if (source.mesh === null || at(tensors, op.output).mesh !== null) continue;
      tensors[op.output] = placedLike(op, source, tensors);
      changed = true;
    }
    return changed ? { ...fusion, tensors } : fusion;
  },
};

function placedLike(op: Op, source: Tensor, tensors: readonly Tensor[]): Tensor {
  const types = new Map(axisMap(op, tensors).map(({ producer, consumer }) => [consumer.id, producer.parallelType]));
  return reparallelize(
    at(tensors, op.output),
    (axis) => (types.get(axis.id) === "Stream" ? "Serial" : (types.get(axis.id) ?? axis.parallelType)),
    source.mesh,
  );
}

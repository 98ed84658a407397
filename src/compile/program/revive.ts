/** What building a program gives, and how it is after structured clone, which keeps all but the class of meshes. */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { Parameters } from "../../host/program-file.ts";
import { DeviceMesh, type NestedDevices } from "../../ir/device-mesh.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { getOrMake } from "../../support/invariant.ts";

/** The program of a file for the requested devices and parameters. */
export interface BuiltData {
  /** A Fusion, or the host program of each rank. */
  readonly source: FusionData | readonly HostProgram[];
  /** The Fusion that a program of host programs names for checks. */
  readonly reference: FusionData | null;
  readonly defaults: Parameters;
}

export function revived({ source, reference, defaults }: BuiltData): BuiltData {
  return {
    source: "kind" in source ? revivedFusion(source) : source.map(revivedHost),
    reference: reference === null ? null : revivedFusion(reference),
    defaults,
  };
}

function revivedFusion(fusion: FusionData): FusionData {
  return { ...fusion, tensors: revivedTensors(fusion.tensors) };
}

function revivedHost(host: HostProgram): HostProgram {
  const units = host.units.map((unit) => ({ ...unit, fusion: revivedFusion(unit.fusion) }));
  return { ...host, tensors: revivedTensors(host.tensors), units };
}

/** Tensors that shared a mesh share it again. */
function revivedTensors(tensors: readonly Tensor[]): readonly Tensor[] {
  const meshes = new Map<DeviceMesh, DeviceMesh>();
  const revivedMesh = (clone: DeviceMesh): DeviceMesh => {
    return getOrMake(meshes, clone, () => new DeviceMesh(nested(clone.devices, clone.shape), clone.names));
  };
  return tensors.map((tensor) => (tensor.mesh === null ? tensor : { ...tensor, mesh: revivedMesh(tensor.mesh) }));
}

/** The lists of which `DeviceMesh` makes this shape. */
function nested(devices: readonly number[], [, ...inner]: readonly number[]): NestedDevices {
  const [length] = inner;
  if (length === undefined) return devices;
  const span = elementCount(inner);
  return Array.from({ length: devices.length / span }, (_, i) =>
    nested(devices.slice(i * span, (i + 1) * span), inner),
  );
}

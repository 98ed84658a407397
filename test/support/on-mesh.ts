/** Places tensors on the mesh of devices 0 .. n-1. */
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";

export function onMesh(tensors: readonly TensorView[], devices: number): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(devices));
}

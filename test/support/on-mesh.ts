/** Places tensors on meshes. A number is the mesh of devices 0 .. n-1. */
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import type { ParallelType } from "../../src/ir/parallel-type.ts";

export function onMesh(tensors: readonly TensorView[], devices: number): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(devices));
}

type Laid = TensorView | readonly [tensor: TensorView, ...types: readonly (ParallelType | null)[]];

/** Places tensors on a mesh. What follows a tensor are the parallel types of its axes from the first. */
export function lay(mesh: DeviceMesh | number, ...laid: readonly Laid[]): void {
  for (const each of laid) {
    const [tensor, ...types] = "setDeviceMesh" in each ? [each] : each;
    tensor.setDeviceMesh(typeof mesh === "number" ? DeviceMesh.range(mesh) : mesh);
    for (const [i, type] of types.entries()) if (type !== null) tensor.axis(i).parallelize(type);
  }
}

/** The check that a run has the devices that a Fusion's meshes name. */
import { fail } from "../diagnostics/diagnostic.ts";
import type { Tensor } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";

/** Throws `mesh-too-large` for the first mesh with a device that is not one of 0 .. devices-1. */
export function requireMeshDevices(tensors: readonly Tensor[], devices: number): void {
  for (const tensor of tensors) {
    const beyond = tensor.mesh?.devices.find((device) => device >= devices);
    if (beyond === undefined) continue;
    fail({
      code: "mesh-too-large",
      message: `the mesh of T${tensor.id} names device ${beyond}, but the run has ${devices}`,
      place: { kind: "tensor", text: printTensor(tensor) },
      found: `device ${beyond}`,
      expected: devices === 1 ? "device 0 only" : `devices 0 to ${devices - 1}`,
      help: `run on at least ${beyond + 1} devices (--devices ${beyond + 1}), or make the mesh smaller`,
    });
  }
}

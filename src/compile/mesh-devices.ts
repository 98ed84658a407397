/** The check that a run has the devices that a Fusion's meshes name. */
import { fail } from "../diagnostics/diagnostic.ts";
import type { Tensor } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";

/** Throws `mesh-too-large` for the first mesh with a device that is not one of 0 .. devices-1; the fix fits all meshes. */
export function requireMeshDevices(tensors: readonly Tensor[], devices: number): void {
  const largest = (all: readonly Tensor[]): number =>
    all.reduce((most, { mesh }) => (mesh?.devices ?? []).reduce((a, b) => Math.max(a, b), most), -1);
  for (const tensor of tensors) {
    const beyond = largest([tensor]);
    if (beyond < devices) continue;
    const needed = largest(tensors) + 1;
    fail({
      code: "mesh-too-large",
      message: `the mesh of T${tensor.id} names device ${beyond}, but the run has ${devices}`,
      place: { kind: "tensor", text: printTensor(tensor) },
      found: `device ${beyond}`,
      expected: devices === 1 ? "device 0 only" : `devices 0 to ${devices - 1}`,
      help: `run on at least ${needed} devices (--devices ${needed}), or make the mesh smaller`,
    });
  }
}

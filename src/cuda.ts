/// <reference lib="esnext.disposable" preserve="true" />
/** `@braid-compiler/braid/cuda`: the back end for NVIDIA GPUs, one process per GPU. */
export { createCudaBackend, type CudaOptions, graphUses } from "./backends/cuda/cuda-backend.ts";
export type { GraphUse } from "./backends/cuda/run/runner.ts";
export {
  createFlightRecorder,
  type Flight,
  type FlightOptions,
  type FlightRecorder,
} from "./backends/flight/flight-recorder.ts";
export type { FlightPlace, FlightPlan, PlannedCommand } from "./trace/flight/flight-record.ts";
export type { Flights } from "./backends/flight/program-flights.ts";
export { requireGpus } from "./backends/cuda/require-gpus.ts";
export { type EndOfWorld, type Rendezvous, soloRendezvous } from "./backends/cuda/world.ts";

import type { Backend } from "./backends/backend.ts";
import { attentionObstacle } from "./backends/cuda/attention/availability.ts";
import { driverPrototypes } from "./backends/cuda/bindings/driver-api.ts";
import { loadLibrary } from "./backends/cuda/bindings/native-library.ts";
import { createCudaBackend } from "./backends/cuda/cuda-backend.ts";
import { soloRendezvous } from "./backends/cuda/world.ts";
import { fail } from "./diagnostics/diagnostic.ts";

/**
 * The back end of `on: "cuda"`: one GPU of this process. `open` throws `device-count` for a world of more ranks, which
 * needs a Rendezvous; `braid run` makes one.
 */
export const cudaBackend: Backend = {
  name: "cuda",
  attentionObstacle: (gradientHeads) => attentionObstacle(0, gradientHeads),
  open: async ({ world, localRanks }) => {
    if (world !== 1) oneProcess(world);
    return createCudaBackend({ rendezvous: soloRendezvous() }).open({ world, localRanks });
  },
};

/** Reports a missing driver before the number of devices. */
function oneProcess(world: number): never {
  loadLibrary("driver", driverPrototypes);
  return fail("device-count", 'on: "cuda" in one process runs one device', {
    place: { kind: "call", text: 'MultiDeviceExecutor.create(fusion, { on: "cuda" })' },
    found: `${world} devices`,
    expected: "1, or a process per GPU",
    help: "use `braid run --on cuda`, or pass createCudaBackend({ rendezvous }) in every process",
  });
}

/** `@braid-compiler/braid/cpu`: the CPU back end, with an interleaving of choice. */
export { type BlasUse, blasUses, type CpuOptions, createCpuBackend } from "./backends/cpu/cpu-backend.ts";
export type { QueueMode } from "./machine/tables.ts";
export {
  type CallerStep,
  parseInterleaving,
  type Interleaving,
  type InterleavingStep,
  type StreamStep,
} from "./machine/interleaving.ts";

export {
  createFlightRecorder,
  type Flight,
  type FlightOptions,
  type FlightRecorder,
} from "./backends/flight/flight-recorder.ts";

import { createCpuBackend } from "./backends/cpu/cpu-backend.ts";

/** The back end of `on: "cpu"`: one worker thread per core, or the calling thread where threads are unavailable. */
export const cpuBackend = createCpuBackend();

/** `braid/cpu`: the CPU back end, with an interleaving of choice. */
export { type BlasUse, blasUses, type CpuOptions, createCpuBackend } from "./backends/cpu/cpu-backend.ts";
export type { QueueMode } from "./machine/tables.ts";
export {
  type CallerStep,
  parseInterleaving,
  type Interleaving,
  type InterleavingStep,
  type StreamStep,
} from "./machine/interleaving.ts";

import { createCpuBackend } from "./backends/cpu/cpu-backend.ts";

/** What `on: "cpu"` opens: streams in turns, each until it blocks. */
export const cpuBackend = createCpuBackend();

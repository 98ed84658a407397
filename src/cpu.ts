/** `braid/cpu`: the CPU back end, in a schedule of choice. */
export { type BlasUse, blasUses, type CpuOptions, createCpuBackend } from "./backends/cpu/cpu-backend.ts";
export type { QueueMode } from "./machine/tables.ts";
export {
  type CallerStep,
  parseSchedule,
  type Schedule,
  type ScheduleStep,
  type StreamStep,
} from "./machine/interleaving.ts";

import { createCpuBackend } from "./backends/cpu/cpu-backend.ts";

/** What `on: "cpu"` opens: streams in turns, each until it blocks. */
export const cpuBackend = createCpuBackend();

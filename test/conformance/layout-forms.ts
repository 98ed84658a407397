import { type ScheduleOptions, schedules } from "../support/point-to-point-schedules.ts";

/** With a chunk per device, or with chunks that all devices gather. */
export const forms: readonly (readonly [name: string, chunks: number | null, options: ScheduleOptions])[] = [
  ...Object.entries(schedules).map(([name, options]) => [name, null, options] as const),
  ["Allgather_Nccl", 3, {}],
  ["Allgather_Cuda", 3, { backend: "cuda" }],
];

/**
 * Every schedule of a loop over the devices, as lowering options: nvFuser's names of its parameters, and those that
 * Braid has beside.
 */
import type { LowerOptions } from "@braid-compiler/braid";

export type ScheduleOptions = Omit<LowerOptions, "rank" | "onPass">;

export const schedules: Readonly<Record<string, ScheduleOptions>> = {
  Broadcast_Nccl: { p2p: "broadcast" },
  Broadcast_Cuda: { p2p: "broadcast", backend: "cuda" },
  Broadcast_Ucc: { p2p: "broadcast", backend: "ucc" },
  p2p_Nccl: { p2p: "rotated" },
  p2p_Cuda: { p2p: "rotated", backend: "cuda" },
  p2p_Cuda_put: { p2p: "rotated", backend: "cuda", protocol: "put" },
  linear_Nccl: { p2p: "linear" },
};

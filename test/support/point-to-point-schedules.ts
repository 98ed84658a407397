/** Every schedule of a loop over the devices, as lowering options: nvFuser's names of its parameters, and those that Braid has beside. */
import type { LowerOptions } from "braid";

export type ScheduleOptions = Omit<LowerOptions, "rank" | "onPass">;

export const schedules: Readonly<Record<string, ScheduleOptions>> = {
  Broadcast_Nccl: { pointToPoint: "broadcast" },
  Broadcast_Cuda: { pointToPoint: "broadcast", communicatorBackend: "cuda" },
  Broadcast_Ucc: { pointToPoint: "broadcast", communicatorBackend: "ucc" },
  p2p_Nccl: { pointToPoint: "rotated" },
  p2p_Cuda: { pointToPoint: "rotated", communicatorBackend: "cuda" },
  p2p_Cuda_put: { pointToPoint: "rotated", communicatorBackend: "cuda", p2pProtocol: "put" },
  linear_Nccl: { pointToPoint: "linear" },
};

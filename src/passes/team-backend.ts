/**
 * Which library communicates among a team. Devices of one host reach each other's memory; between hosts only NCCL
 * moves data, so `cuda` stands for it there.
 */
import type { CommunicatorBackend } from "../host/collectives.ts";
import type { LoweringOptions } from "./options.ts";

export function teamBackend(
  team: readonly number[],
  { backend, devicesPerHost }: Pick<LoweringOptions, "backend" | "devicesPerHost">,
): CommunicatorBackend {
  if (backend !== "cuda" || devicesPerHost === undefined) return backend;
  const hosts = new Set(team.map((device) => Math.floor(device / devicesPerHost)));
  return hosts.size > 1 ? "nccl" : backend;
}

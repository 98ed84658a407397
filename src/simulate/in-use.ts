/**
 * What GPUs take longer in use than in the measurements of a profile. `braid calibrate` runs one small program at a time
 * and keeps the least of 31 times, or for GEMMs the median; a run in use takes its median time. Found by
 * bench/residuals.ts in the runs of bench/results (docs/simulation.md).
 */
import type { Program } from "../commands/program.ts";
import type { MachineProfile } from "./machine-profile.ts";

export interface InUse {
  /** The factor on GEMMs: a device that has computed for seconds is warm, and has a lower clock. */
  readonly gemms: number;
  /**
   * The factor on kernels and copies that are bound by the device's memory. The profile has the least time of a kernel
   * that does no more than read and write.
   */
  readonly memory: number;
  /** Microseconds of a run that communicates: its ranks start apart. In the least of 31 times they start together. */
  readonly start: number;
}

const onGpus: InUse = { gemms: 1.03, memory: 1.2, start: 7.5 };
const elsewhere: InUse = { gemms: 1, memory: 1, start: 0 };

export function inUse({ on }: Pick<MachineProfile, "on">): InUse {
  return on === "cuda" ? onGpus : elsewhere;
}

/** Microseconds of a run beside its commands. */
export function runCost({ transfers, slots }: Program, profile: MachineProfile): number {
  const communicates = slots.length > 0 || transfers.some(({ participants }) => participants.length > 1);
  return profile.costs.run + (communicates ? inUse(profile).start : 0);
}

/** A profile of round figures, in which tests change what they are about. */
import type { MachineProfile, Timing } from "../../../src/simulate/machine-profile.ts";

/** Rates in bytes per microsecond. */
export function rate(fixed: number, bytesPerMicrosecond: number): readonly Timing[] {
  return [1e3, 1e9].map((bytes) => ({ bytes, microseconds: fixed + bytes / bytesPerMicrosecond }));
}

/** Figures of the order of an H200's. */
export const machine: MachineProfile = {
  version: 1,
  on: "cpu",
  machine: "round figures",
  products: [
    {
      dtype: "bfloat16",
      m: [512, 16_384],
      n: [1024, 8192],
      k: [512, 16_384],
      teraflops: [250, 500, 400, 650, 450, 700, 600, 720],
    },
  ],
  memory: rate(3, 3.5e6),
  localCopies: rate(3, 1.7e6),
  peerCopies: rate(8, 3.6e5),
  transfers: [
    { type: "Allgather", ranks: 4, timings: rate(25, 3.3e5) },
    { type: "group", ranks: 2, timings: rate(25, 2e5) },
  ],
  costs: { run: 10, launch: 2, event: 1, join: 0, signal: 3, issue: 3, underTransfer: 1.2 },
};

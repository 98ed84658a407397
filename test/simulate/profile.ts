/** A machine profile with round figures in microseconds, so that tests can add up simulated times by hand. */
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";

export const roundProfile: MachineProfile = {
  version: 1,
  on: "cpu",
  machine: "made up",
  products: [{ dtype: "float", m: [16], n: [16], k: [16], teraflops: [0.008192] }],
  sustained: [
    { microseconds: 1000, factor: 1 },
    { microseconds: 4000, factor: 1.5 },
  ],
  memory: [
    { bytes: 0, microseconds: 0 },
    { bytes: 1000, microseconds: 10 },
  ],
  reductions: [
    { kernel: "reduction", dtype: "float", timings: [{ bytes: 1000, microseconds: 40 }] },
    { kernel: "combine", dtype: "bfloat16", timings: [{ bytes: 1000, microseconds: 20 }] },
    { kernel: "combine", dtype: "float", timings: [{ bytes: 1000, microseconds: 30 }] },
  ],
  localCopies: [
    { bytes: 0, microseconds: 1 },
    { bytes: 1000, microseconds: 3 },
  ],
  peerCopies: [
    { bytes: 0, microseconds: 0 },
    { bytes: 1000, microseconds: 100 },
  ],
  transfers: [
    { type: "Allgather", ranks: 2, timings: [{ bytes: 16, microseconds: 20 }] },
    { type: "group", ranks: 2, timings: [{ bytes: 16, microseconds: 7 }] },
  ],
  costs: { run: 5, launch: 0, event: 0.5, join: 0, signal: 2, issue: 50, underTransfer: 2 },
};

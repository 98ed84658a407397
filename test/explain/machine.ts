/** A made-up machine on which everything but GEMMs takes no time, unless a test says so: each cause shows alone. */
import type { MachineProfile, Timing } from "../../src/simulate/machine-profile.ts";

const ranks = 4;

/** Times in proportion to the bytes. */
export function perMegabyte(microseconds: number): readonly Timing[] {
  return [
    { bytes: 0, microseconds: 0 },
    { bytes: 1e6, microseconds },
  ];
}

const free = perMegabyte(0);

export function transfersAt(timings: readonly Timing[]): MachineProfile["transfers"] {
  return [
    { type: "Allgather", ranks, timings },
    { type: "ReduceScatter", ranks, timings },
    { type: "Allreduce", ranks, timings },
    { type: "group", ranks: 2, timings },
  ];
}

export const noCosts: MachineProfile["costs"] = {
  run: 0,
  launch: 0,
  event: 0,
  join: 0,
  signal: 0,
  issue: 0,
  underTransfer: 1,
};

/** GEMMs of bfloat16 run at 10 TFLOP/s. */
export function machine(changed: Partial<MachineProfile>): MachineProfile {
  return {
    version: 1,
    on: "cpu",
    machine: "made up",
    products: [{ dtype: "bfloat16", m: [1], n: [1], k: [1], teraflops: [10] }],
    memory: free,
    localCopies: free,
    peerCopies: free,
    transfers: transfersAt(free),
    costs: noCosts,
    ...changed,
  };
}

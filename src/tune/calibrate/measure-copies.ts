/**
 * Times copies between ranks and the signals around them. In a ring on the copy stream, all ranks signal that they are
 * ready, make D - 1 copies, and signal that they are done. Rings in more and fewer chunks differ by the time of small
 * copies. In a small ring, the time that is not copies is that of the signals.
 *
 *     ring = 2 signals + (D - 1) copies        ring in 8 chunks - ring in 2 chunks = 6 (D - 1) copies
 */
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import { type Calibration, timingsOf } from "./calibration-host.ts";
import type { ProbeOptions } from "./probe.ts";
import { gatherAndMultiplyCopies, ring } from "./probe-fusions.ts";

export type CopyTables = Pick<MachineProfile, "peerCopies" | "kernelCopies">;

const copies = { backend: "cuda", p2p: "rotated", protocol: "get" } as const;

/** On a copy stream, with waits and signals batched, like the schedules that are simulated. */
const onCopyStream = {
  lowering: copies,
  streams: 64,
  schedule: { computeStreams: 1, batchSignals: true, copyStream: "dedicated" },
} as const satisfies ProbeOptions;

/** Microseconds of a signal, with its wait. */
export async function signalTime(calibration: Calibration): Promise<number> {
  const { devices, sizes, say, took } = calibration;
  say("signals");
  const around = await took(ring(devices, at(sizes.bytes, 0)), onCopyStream);
  return Math.max(0, around - (devices - 1) * (await shortCopy(calibration))) / 2;
}

export async function measureCopies(calibration: Calibration, signal: number): Promise<CopyTables> {
  const { devices } = calibration;
  const ofOne = (time: number): number => (time - 2 * signal) / (devices - 1);
  const ringOf = (bytes: number): ReturnType<typeof ring> => ring(devices, bytes);
  const byKernel = { ...onCopyStream, schedule: { ...onCopyStream.schedule, kernelCopies: Number.MAX_SAFE_INTEGER } };
  return {
    peerCopies: await timingsOf(calibration, "copies between ranks", ringOf, onCopyStream, ofOne),
    kernelCopies: await timingsOf(calibration, "copies between ranks by kernel", ringOf, byKernel, ofOne),
  };
}

const fewParts = 2;
const manyParts = 8;

/**
 * Microseconds that a tiny copy adds to a copy stream. Both programs move the same bytes and start the GEMM after all
 * have arrived.
 */
async function shortCopy({ devices, took }: Calibration): Promise<number> {
  const inParts = (splitChunks: number): Promise<number> => {
    const schedule = { ...onCopyStream.schedule, inPlace: true, splitChunks, mergeGemms: [Number.MAX_SAFE_INTEGER] };
    return took(gatherAndMultiplyCopies(devices, { m: 256 * devices, n: 16, k: 64 }, "float"), {
      ...onCopyStream,
      schedule,
    });
  };
  const added = (await inParts(manyParts)) - (await inParts(fewParts));
  return Math.max(0, added / ((manyParts - fewParts) * (devices - 1)));
}

/**
 * Microseconds of delay before a GEMM that follows a copy, even a copy that finished long before. A pipeline whose
 * copies are shorter than its GEMMs takes this much longer per chunk on one compute stream than on two, beyond the
 * latency of any kernel.
 */
export async function joinTime({ devices, sizes, say, took }: Calibration, launch: number): Promise<number> {
  say("GEMMs after copies");
  const on = (computeStreams: number): Promise<number> => {
    const schedule = { ...onCopyStream.schedule, inPlace: true, computeStreams };
    const fusion = gatherAndMultiplyCopies(devices, sizes.afterCopies, at(sizes.dtypes, 0));
    return took(fusion, { ...onCopyStream, schedule }, "median");
  };
  return Math.max(0, ((await on(1)) - (await on(2))) / (devices - 1) - launch);
}

/**
 * Times copies between ranks and the signals around them. In a ring on the copy stream, all ranks signal that they are
 * ready, make D - 1 copies, and signal that they are done. Exchanges of more and fewer tensors with the same signals
 * differ by the time of small copies. In a small ring, the time that is not copies is that of the signals.
 *
 *     ring = 2 signals + (D - 1) copies        exchange of 8 tensors - exchange of 2 tensors = 6 copies
 */
import type { MachineProfile } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import { type Calibration, timingsOf } from "./calibration-host.ts";
import type { ProbeOptions } from "./probe.ts";
import { exchanges, gatherAndMultiplyCopies, ring } from "./probe-fusions.ts";

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

export async function measureCopies(calibration: Calibration, signal: number): Promise<MachineProfile["peerCopies"]> {
  const { devices } = calibration;
  const ofOne = (time: number): number => (time - 2 * signal) / (devices - 1);
  const ringOf = (bytes: number): ReturnType<typeof ring> => ring(devices, bytes);
  return timingsOf(calibration, "copies between ranks", ringOf, onCopyStream, ofOne);
}

const [few, many] = [2, 8];

/** Microseconds that a tiny copy adds to a copy stream: between two ranks, whose tensors can share their signals. */
async function shortCopy({ sizes, took }: Calibration): Promise<number> {
  const options = { ...onCopyStream, schedule: { ...onCopyStream.schedule, dropSignals: true } };
  const of = (count: number): Promise<number> => took(exchanges(count, at(sizes.bytes, 0)), options);
  return Math.max(0, ((await of(many)) - (await of(few))) / (many - few));
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

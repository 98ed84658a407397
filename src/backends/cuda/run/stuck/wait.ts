/**
 * The host's waits for the GPU. A wait ends when the work is done, when the time is up, or when another rank aborts.
 */
import { CUDA_ERROR_NOT_READY } from "../../bindings/driver-api.ts";
import type { Gpu } from "../../gpu.ts";
import type { EndOfWorld } from "../../world.ts";
import { setImmediate, setTimeout } from "node:timers/promises";

/** Throws `gpu-call-failed` for errors that the GPU reports about earlier work. */
export function streamIsIdle(gpu: Gpu, stream: number): boolean {
  const status = gpu.raw.cuStreamQuery(stream);
  if (status === CUDA_ERROR_NOT_READY) return false;
  if (status !== 0) gpu.check(status, "cuStreamQuery");
  return true;
}

export interface Deadline {
  /** On the clock of performance.now. */
  readonly at: number;
  readonly signal: EndOfWorld;
  /** Throws the diagnostic of a run that takes too long. */
  readonly expired: () => never;
}

/** For this many milliseconds the wait spins. */
const spin = 0.2;
/** Then it checks at every turn of the event loop, and after this many milliseconds once a millisecond. */
const eager = 50;

/** Returns when `done` returns true. Messages of other ranks arrive meanwhile. */
export async function waitUntil(done: () => boolean, { at, signal, expired }: Deadline): Promise<void> {
  const start = performance.now();
  while (performance.now() < start + spin) if (done()) return;
  while (!done()) {
    signal.throwIfAborted();
    const now = performance.now();
    if (now > at) expired();
    await pause(now < start + eager ? 0 : 1);
  }
}

/** Waits at least `milliseconds`; 0 only runs what is due. */
export async function pause(milliseconds: number): Promise<void> {
  if (milliseconds === 0) await setImmediate();
  else await setTimeout(milliseconds);
}

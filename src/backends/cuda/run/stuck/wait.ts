/** Waits of the host for the GPU that end: with the work, the time, or another rank's abort. */
import { CUDA_ERROR_NOT_READY } from "../../bindings/driver-api.ts";
import type { Gpu } from "../../gpu.ts";
import type { EndOfWorld } from "../../world.ts";
import { pause } from "../pause.ts";

/** Throws `gpu-call-failed` for what the GPU reports about earlier work. */
export function streamIsIdle(gpu: Gpu, stream: number): boolean {
  const status = gpu.raw.cuStreamQuery(stream);
  if (status === CUDA_ERROR_NOT_READY) return false;
  if (status !== 0) gpu.check(status, "cuStreamQuery");
  return true;
}

export interface Deadline {
  /** On performance.now's clock. */
  readonly at: number;
  readonly signal: EndOfWorld;
  /** Throws the diagnostic of a run that takes too long. */
  readonly expired: () => never;
}

/** Runs that end within this many milliseconds are waited for without giving way to others. */
const spin = 0.2;
/** Then every turn of the event loop; after this many, once a millisecond. */
const eager = 50;

/** Returns when `done` does; hears other ranks meanwhile. */
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

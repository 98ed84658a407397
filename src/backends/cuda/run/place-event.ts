/** Finds when an event of the GPU took place, on the host's clock. */
import type { Checked } from "../bindings/call-error.ts";
import { CUDA_ERROR_NOT_READY, type DriverFunctions } from "../bindings/driver-api.ts";
import type { Gpu } from "../gpu.ts";
import type { WorldClock } from "./world-clock.ts";

/** The parts of a Gpu that this needs. */
export interface EventCalls extends Pick<Gpu, "check"> {
  readonly call: Pick<Checked<DriverFunctions>, "cuEventRecord">;
  readonly raw: Pick<DriverFunctions, "cuEventQuery">;
}

/**
 * An idle stream takes microseconds. A stream that does not reach the event in this many milliseconds counts as busy.
 */
const patience = 100;

/**
 * Records the event on the stream, which should be idle, and queries it until it is done. The event took place between
 * the last query that answered "not ready" and the one that answered "done". Returns milliseconds with an `error` that
 * includes the clock's; null for a busy stream. Throws `gpu-call-failed`.
 */
export function placeEvent(
  { call, raw, check }: EventCalls,
  event: number,
  stream: number,
  { now, error }: WorldClock,
): { readonly at: number; readonly error: number } | null {
  const began = now();
  call.cuEventRecord(event, stream);
  for (let earliest = began; ;) {
    const asked = now();
    const status = raw.cuEventQuery(event);
    const answered = now();
    if (status === 0) return { at: (earliest + answered) / 2, error: (answered - earliest) / 2 + error };
    if (status !== CUDA_ERROR_NOT_READY) check(status, "cuEventQuery");
    if (answered - began > patience) return null;
    earliest = asked;
  }
}

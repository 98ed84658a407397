/** Two timing events around work on a stream: the time of a run as the GPU sees it. */
import type { Out } from "../bindings/driver-api.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";

export interface Stopwatch {
  readonly start: () => void;
  readonly stop: () => void;
  /** Milliseconds, once the stream is idle. */
  readonly read: () => number;
}

export function createStopwatch({ gpu, pool }: Session, stream: number, resources: Resources): Stopwatch {
  const [start, stop] = [pool.event("time", resources), pool.event("time", resources)];
  return {
    start: () => gpu.call.cuEventRecord(start, stream),
    stop: () => gpu.call.cuEventRecord(stop, stream),
    read: () => {
      const milliseconds: Out = [0];
      gpu.call.cuEventElapsedTime(milliseconds, start, stop);
      return milliseconds[0];
    },
  };
}

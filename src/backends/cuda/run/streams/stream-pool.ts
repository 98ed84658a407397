/** CUDA streams and events, created once and lent to Programs. A stream must be idle when it is returned. */
import { CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING, CU_STREAM_NON_BLOCKING } from "../../bindings/driver-api.ts";
import { type Gpu, out } from "../../gpu.ts";
import type { Resources } from "../../resources.ts";

/** 0 is the highest. A GPU has few priorities; all below its lowest are the same. */
export type StreamPriority = number;
export const lowestPriority: StreamPriority = Infinity;

/** Events that measure time cost more to record. */
export type EventUse = "order" | "time";

export interface StreamPool extends Disposable {
  /** `resources` returns it to the pool. */
  readonly stream: (priority: StreamPriority, resources: Resources) => number;
  readonly event: (use: EventUse, resources: Resources) => number;
}

export function createStreamPool(gpu: Gpu): StreamPool {
  const made: { readonly streams: number[]; readonly events: number[] } = { streams: [], events: [] };
  const events = { order: new Array<number>(), time: new Array<number>() };
  /** Keyed by the driver's number of the priority, which falls as the priority rises. */
  const streams = new Map<number, number[]>();
  const lend = (list: number[], make: () => number, resources: Resources): number => {
    const handle = list.pop() ?? make();
    resources.defer(() => list.push(handle));
    return handle;
  };
  const newStream = (level: number): number => {
    const stream = out((value) => gpu.call.cuStreamCreateWithPriority(value, CU_STREAM_NON_BLOCKING, level));
    made.streams.push(stream);
    return stream;
  };
  const newEvent = (use: EventUse): number => {
    const flags = use === "time" ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    const event = out((value) => gpu.call.cuEventCreate(value, flags));
    made.events.push(event);
    return event;
  };
  return {
    stream: (priority, resources) => {
      const level = Math.min(gpu.priorities.least, gpu.priorities.greatest + priority);
      const free = streams.get(level) ?? [];
      streams.set(level, free);
      return lend(free, () => newStream(level), resources);
    },
    event: (use, resources) => lend(events[use], () => newEvent(use), resources),
    [Symbol.dispose]: () => {
      for (const event of made.events.splice(0)) gpu.call.cuEventDestroy_v2(event);
      for (const stream of made.streams.splice(0)) gpu.call.cuStreamDestroy_v2(stream);
    },
  };
}

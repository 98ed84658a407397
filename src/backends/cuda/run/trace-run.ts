/**
 * A traced run: timing events around every command that takes time, on its own stream, read after the run. Traced runs
 * are eager because events inside a graph cannot be read. The events around a wait say when its stream reached it and
 * when it went on. Times count from an event at the start of the run. The host waits for that event and notes its time
 * on the world clock, which puts the times of several GPUs on one axis.
 */
import type { Command } from "../../../commands/command.ts";
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";
import type { TraceEvent, TraceOrigin } from "../../../trace/event.ts";
import type { Out } from "../bindings/driver-api.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import type { Enqueued } from "./actions/enqueue.ts";
import { placeEvent } from "./place-event.ts";
import type { PreparedList } from "./prepared-list.ts";
import type { WorldClock } from "./world-clock.ts";

export interface TracedList {
  readonly list: Enqueued;
  /** Called after the run: every command of the rank in order of start, and when the run began. */
  readonly read: () => { readonly trace: readonly TraceEvent[]; readonly origins: readonly TraceOrigin[] };
}

/** wait: the stream stands still between the two events. */
const timed: { readonly [K in Command["kind"]]: "work" | "wait" | null } = {
  launch: "work",
  copy: "work",
  transfer: "work",
  waitEvent: "wait",
  waitSignal: "wait",
  recordEvent: "work",
  signal: "work",
  alloc: null,
  free: null,
};

/** The list with its timing events; made once. */
export function traceList(
  session: Session,
  program: Program,
  prepared: PreparedList,
  clock: WorldClock,
  resources: Resources,
): TracedList {
  const { gpu, pool } = session;
  const { rank } = gpu;
  const own = at(program.ranks, rank);
  const event = (): number => pool.event("time", resources);
  const mark = (handle: number, stream: number) => (): void =>
    gpu.call.cuEventRecord(handle, at(prepared.streams, stream));
  const origin = event();
  let origins: readonly TraceOrigin[] = [];
  const begin = (): void => {
    const placed = placeEvent(gpu, origin, at(prepared.streams, 0), clock);
    origins = placed === null ? [] : [{ rank, ...placed }];
  };
  const spans = prepared.commands.flatMap(({ index, stream }) => {
    const what = timed[at(own.commands, index).kind];
    return what === null ? [] : [{ index, stream, what, start: event(), end: event() }];
  });
  const spanOf = new Map(spans.map((span) => [span.index, span]));
  const inOrder = [
    { action: begin, index: -1 },
    ...prepared.forks.map((action) => ({ action, index: -1 })),
    ...prepared.commands.flatMap(({ index, stream, actions }) => {
      const span = spanOf.get(index);
      const calls = actions();
      const all = span === undefined ? calls : [mark(span.start, stream), ...calls, mark(span.end, stream)];
      return all.map((action) => ({ action, index }));
    }),
    ...prepared.joins.map((action) => ({ action, index: -1 })),
  ];
  const since = (handle: number): number => {
    const milliseconds: Out = [0];
    gpu.call.cuEventElapsedTime(milliseconds, origin, handle);
    return milliseconds[0];
  };
  return {
    list: {
      actions: inOrder.map(({ action }) => action),
      commandOf: Int32Array.from(inOrder, ({ index }) => index),
      busy: prepared.busy,
    },
    read: () => ({
      origins,
      trace: spans
        .map(({ index, stream, what, start, end }): TraceEvent => {
          const place = { rank, stream, command: index };
          const [began, ended] = [since(start), since(end)];
          return what === "wait"
            ? { ...place, reached: began, start: ended, end: ended }
            : { ...place, start: began, end: ended };
        })
        .toSorted((a, b) => a.start - b.start),
    }),
  };
}

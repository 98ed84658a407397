/**
 * A traced run: timing events around every command that takes time, on its own stream, read after the run. Traced runs
 * are eager, because events inside a graph cannot be read. The events around a wait tell when its stream reached it and
 * when it continued. Times count from an event at the start of the run. The host waits for that event and notes its
 * time on the world clock, which puts the times of several GPUs on one axis.
 */
import type { Command, CommandStreamId } from "../../../commands/command.ts";
import { makeId, at } from "../../../support/invariant.ts";
import type { TraceEvent, TraceOrigin } from "../../../trace/event-table.ts";
import type { Action } from "../bind/bind-op.ts";
import type { Checked } from "../bindings/call-error.ts";
import { CUDA_ERROR_NOT_READY, type DriverFunctions, type Out } from "../bindings/driver-api.ts";
import type { Gpu } from "../gpu.ts";
import type { ListNotes } from "../ops/list-notes.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import type { BoundOp, Enqueued, PreparedList } from "./prepared-list.ts";
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

interface TimedAction {
  readonly action: Action;
  readonly index: number;
}

/** A command between two timing events. */
interface Span {
  readonly index: number;
  readonly stream: CommandStreamId;
  readonly what: "work" | "wait";
  readonly start: number;
  readonly end: number;
}

interface CommandActions {
  readonly command: number;
  readonly stream: CommandStreamId;
  readonly actions: readonly Action[];
}

/** The actions of each command; those of an edge by themselves. */
function byCommand(list: readonly BoundOp[]): readonly CommandActions[] {
  const each: { command: number; stream: CommandStreamId; actions: Action[] }[] = [];
  for (const { op, action } of list) {
    const last = each.at(-1);
    if (last !== undefined && op.command >= 0 && last.command === op.command) last.actions.push(action);
    else each.push({ command: op.command, stream: makeId<CommandStreamId>(op.stream), actions: [action] });
  }
  return each;
}

/** The list with its timing events; made once. */
export function traceList(
  session: Session,
  notes: ListNotes,
  prepared: PreparedList,
  clock: WorldClock,
  resources: Resources,
): TracedList {
  const { gpu, pool } = session;
  const { rank } = notes;
  const event = (): number => pool.event("time", resources);
  const mark = (handle: number, stream: number) => (): void =>
    gpu.call.cuEventRecord(handle, at(prepared.streams, stream));
  const origin = event();
  let origins: readonly TraceOrigin[] = [];
  const begin = (): void => {
    const placed = placeEvent(gpu, origin, at(prepared.streams, 0), clock);
    origins = placed === null ? [] : [{ rank, ...placed }];
  };
  const spans: Span[] = [];
  const inOrder: TimedAction[] = [{ action: begin, index: -1 }];
  for (const { command: index, stream, actions } of byCommand(prepared.unjoined())) {
    const calls = actions.map((action) => ({ action, index }));
    const what = index < 0 ? null : timed[notes.kindOf(index)];
    if (what === null) {
      inOrder.push(...calls);
      continue;
    }
    const [start, end] = [event(), event()];
    spans.push({ index, stream, what, start, end });
    inOrder.push({ action: mark(start, stream), index }, ...calls, { action: mark(end, stream), index });
  }
  const since = (handle: number): number => {
    const milliseconds: Out = [0];
    gpu.call.cuEventElapsedTime(milliseconds, origin, handle);
    return milliseconds[0];
  };
  return {
    list: {
      actions: inOrder.map(({ action }) => action),
      commandOf: Int32Array.from(inOrder, ({ index }) => index),
      flight: prepared.flight,
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

/** The parts of a Gpu that this needs. */
interface EventCalls extends Pick<Gpu, "check"> {
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

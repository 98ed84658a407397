/**
 * Checks a parsed trace in the Chrome Trace Event format for the properties that viewers need, independently of the
 * code that made it. Times are whole nanoseconds, since sums of fractional microseconds round.
 */
import { expect } from "vitest";

export interface RawEvent {
  readonly ph: string;
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid?: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly id?: number;
  readonly bp?: string;
  readonly args?: Readonly<Record<string, string | number>>;
}

export interface RawTrace {
  readonly displayTimeUnit: string;
  readonly traceEvents: readonly RawEvent[];
}

export interface RawSlice {
  readonly name: string;
  readonly cat: string;
  readonly pid: number;
  readonly tid: number;
  /** In nanoseconds. */
  readonly start: number;
  readonly end: number;
  readonly args: Readonly<Record<string, string | number>>;
}

export interface RawArrow {
  readonly name: string;
  readonly from: RawSlice;
  readonly to: RawSlice;
}

export interface CheckedTrace {
  readonly slices: readonly RawSlice[];
  readonly arrows: readonly RawArrow[];
}

/** Expects a well-formed trace within 0 .. `end` nanoseconds, and returns its slices and arrows. */
export function checkChromeTrace({ displayTimeUnit, traceEvents }: RawTrace, end: number): CheckedTrace {
  expect(["ms", "ns"]).toContain(displayTimeUnit);
  expect(traceEvents.filter(({ ph }) => !["M", "X", "s", "f", "C"].includes(ph))).toEqual([]);
  const slices = traceEvents.filter(({ ph }) => ph === "X").map(sliceOf);
  const tracks = groupBy(slices, ({ pid, tid }) => `${pid}.${tid}`);
  for (const slice of slices) {
    if (!(slice.start >= 0 && slice.end > slice.start && slice.end <= end)) expect(slice).toBe(`within 0 .. ${end}`);
  }
  for (const track of tracks.values()) {
    track.sort((a, b) => a.start - b.start);
    for (const [i, slice] of track.entries()) {
      const next = track[i + 1];
      if (next !== undefined && slice.end > next.start) expect([slice, next]).toBe("apart");
    }
  }
  checkNames(traceEvents, tracks.keys());
  checkCounters(traceEvents, end);
  return { slices, arrows: arrowsOf(traceEvents, tracks) };
}

function sliceOf({ name, cat, pid, tid, ts, dur, args }: RawEvent): RawSlice {
  const start = nanoseconds(ts);
  return {
    name,
    cat: cat ?? "none",
    pid,
    tid: tid ?? Number.NaN,
    start,
    end: start + nanoseconds(dur),
    args: args ?? {},
  };
}

function nanoseconds(microseconds: number | undefined): number {
  const exact = (microseconds ?? Number.NaN) * 1000;
  const whole = Math.round(exact);
  expect(Math.abs(exact - whole)).toBeLessThan(1e-3);
  return whole;
}

/**
 * Every process and track with slices is named once; no number is 0, and no track has the number of a process or of
 * another track.
 */
function checkNames(events: readonly RawEvent[], tracks: Iterable<string>): void {
  const named = (name: string): readonly RawEvent[] =>
    events.filter((event) => event.ph === "M" && event.name === name);
  const threads = named("thread_name");
  const processes = named("process_name").map(({ pid }) => pid);
  const used = [...tracks];
  expect(threads.map(({ pid, tid }) => `${pid}.${tid}`).toSorted()).toEqual(used.toSorted());
  expect(new Set(processes)).toEqual(new Set(threads.map(({ pid }) => pid)));
  const numbers = [...processes, ...threads.map(({ tid }) => tid ?? 0)];
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(Math.min(...numbers)).toBeGreaterThan(0);
  for (const name of ["thread_sort_index", "process_sort_index"]) {
    expect(named(name)).toHaveLength(name === "thread_sort_index" ? threads.length : processes.length);
  }
}

/** A counter begins at 0 and never falls. */
function checkCounters(events: readonly RawEvent[], end: number): void {
  const counters = groupBy(
    events.filter(({ ph }) => ph === "C"),
    ({ pid, name }) => `${pid} ${name}`,
  );
  for (const counter of counters.values()) {
    const points = counter.map(({ ts, args }) => ({ ts: nanoseconds(ts), value: Number(args?.["bytes"]) }));
    expect(points[0]).toEqual({ ts: 0, value: 0 });
    expect(points).toEqual(points.toSorted((a, b) => a.ts - b.ts || a.value - b.value));
    expect(points.at(-1)?.ts).toBeLessThanOrEqual(end);
  }
}

/**
 * Each id has one start and one end, on slices that contain their times. The start is not after the end, and both come
 * after their slices.
 */
function arrowsOf(events: readonly RawEvent[], tracks: ReadonlyMap<string, readonly RawSlice[]>): readonly RawArrow[] {
  const flows = events.filter(({ ph }) => ph === "s" || ph === "f");
  const lastSlice = events.findLastIndex(({ ph }) => ph === "X");
  const firstFlow = events.findIndex(({ ph }) => ph === "s" || ph === "f");
  if (firstFlow !== -1) expect(firstFlow).toBeGreaterThan(lastSlice);
  return [...groupBy(flows, ({ id }) => id).values()].map((pair) => {
    const [start, end] = pair;
    expect(pair.map(({ ph }) => ph)).toEqual(["s", "f"]);
    if (start === undefined || end === undefined) throw new Error("unreachable: two events");
    expect([end.name, end.cat, end.bp]).toEqual([start.name, start.cat, "e"]);
    expect(start.ts).toBeLessThanOrEqual(end.ts ?? Number.NaN);
    return { name: start.name, from: enclosing(start, tracks), to: enclosing(end, tracks) };
  });
}

function enclosing({ pid, tid, ts, id }: RawEvent, tracks: ReadonlyMap<string, readonly RawSlice[]>): RawSlice {
  const time = nanoseconds(ts);
  const track = tracks.get(`${pid}.${tid}`) ?? [];
  const slice = track.find(({ start, end }) => start <= time && time < end);
  if (slice === undefined) throw new Error(`arrow ${id} has no slice at ${ts} on ${pid}.${tid}`);
  return slice;
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

/**
 * What communication costs a step of a profiled run: how much of it no kernel hides, by collective, and how much of that is
 * waiting for ranks that come late. Collectives of several ranks' traces are matched by step, process group and order.
 * They end at one time on all ranks, which tells how far apart the clocks of different hosts are.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { at, getOrMake, pushTo } from "../../support/invariant.ts";
import { type Interval, intersectionOf, lengthOf, unionOf } from "../../support/intervals.ts";
import type { DeviceSlice, ProfilerTrace, TracedCollective } from "./profiler-trace.ts";

/** Milliseconds, in the mean of the steps. */
export interface RankTimes {
  readonly rank: number;
  /** From the first slice of a step to the first one of the next. */
  readonly step: number;
  readonly kernels: number;
  readonly communication: number;
  /** Communication while no kernel runs. */
  readonly exposed: number;
  /** Communication before the last rank of the group arrives; null if no trace of another rank has the same collectives. */
  readonly waiting: number | null;
  /** The GPU does nothing at all. */
  readonly idle: number;
}

/** The collectives of a rank with one name, group and size: milliseconds and times in the mean of the steps. */
export interface CollectiveTimes extends Omit<TracedCollective, "isPointToPoint"> {
  readonly times: number;
  readonly milliseconds: number;
  /** Where several communicate while no kernel runs, the time counts for the one that began first. */
  readonly exposed: number;
  readonly waiting: number | null;
}

export interface ProfiledRun {
  readonly steps: readonly string[];
  readonly ranks: readonly RankTimes[];
  /** The rank whose communication is exposed most; its collectives, the most exposed ones first. */
  readonly rank: number;
  readonly collectives: readonly CollectiveTimes[];
  /** Who arrives last, and how long the others of its groups wait in a step, all together; the longest first. */
  readonly late: readonly { readonly rank: number; readonly milliseconds: number }[];
  /** What the traces cannot show. */
  readonly notes: readonly string[];
}

/** A step of a rank. A trace without steps is one. */
interface Step {
  readonly length: number;
  readonly slices: readonly DeviceSlice[];
}

/** Throws `trace-invalid`. */
export function explainProfile(traces: readonly ProfilerTrace[]): ProfiledRun {
  const steps = commonSteps(traces);
  const byRank = traces.map((trace) => ({ trace, steps: stepsOf(trace, steps) }));
  const { waits, late, notes } = waitsOf(
    byRank.map(({ steps: own }) => own.map(({ slices }) => slices)),
    traces,
  );
  const count = Math.max(1, steps.length);
  const ranks = byRank.map(({ trace: { rank }, steps: own }): RankTimes => {
    const times = own.map((step) => timesOf(step, waits));
    const mean = (key: keyof (typeof times)[number]): number => times.reduce((sum, each) => sum + each[key], 0) / count;
    return {
      rank,
      step: mean("step"),
      kernels: mean("kernels"),
      communication: mean("communication"),
      exposed: mean("exposed"),
      waiting: own.some(({ slices }) => slices.some((each) => waits.has(each))) ? mean("waiting") : null,
      idle: mean("idle"),
    };
  });
  const most = ranks.reduce((best, each, i) => (each.exposed > at(ranks, best).exposed ? i : best), 0);
  return {
    steps,
    ranks,
    rank: at(ranks, most).rank,
    collectives: collectivesOf(at(byRank, most).steps, count, waits),
    late: late
      .map(([rank, milliseconds]) => ({ rank, milliseconds: milliseconds / count }))
      .toSorted((a, b) => b.milliseconds - a.milliseconds),
    notes,
  };
}

function commonSteps(traces: readonly ProfilerTrace[]): readonly string[] {
  const [first, ...others] = traces;
  if (first === undefined) return [];
  const seen = new Set<number>();
  for (const { rank, path } of traces) {
    if (seen.has(rank)) {
      return invalid(path, `a second trace of rank ${rank}`, "one trace of each rank", "leave one of the two out");
    }
    seen.add(rank);
  }
  for (const { path, slices } of traces) {
    if (slices.length > 0) continue;
    return invalid(
      path,
      "no kernel of a GPU",
      "ProfilerActivity.CUDA among the activities",
      "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    );
  }
  const common = first.steps.filter((name) => others.every(({ steps }) => steps.includes(name)));
  if (common.length > 0 || traces.every(({ steps }) => steps.length === 0)) return common;
  return invalid(
    first.path,
    "no step that all traces have",
    "traces of the same steps",
    "profile with one schedule on all ranks",
  );
}

function invalid(path: string, found: string, expected: string, help: string): never {
  const place = { kind: "file", path } as const;
  return fail("trace-invalid", "traces of PyTorch cannot be explained", {
    place,
    found,
    expected,
    help,
  });
}

function stepsOf({ slices, steps: own }: ProfilerTrace, common: readonly string[]): readonly Step[] {
  const named = (name: string | null): readonly DeviceSlice[] =>
    name === null ? slices : slices.filter(({ step }) => step === name);
  return (common.length === 0 ? [null] : common).map((name) => {
    const these = named(name);
    const next = name === null ? undefined : own[own.indexOf(name) + 1];
    const after = next === undefined ? undefined : named(next)[0]?.start;
    const start = these[0]?.start ?? 0;
    const end = these.reduce((last, slice) => Math.max(last, slice.end), start);
    return { length: Math.max(after ?? end, start) - start, slices: these };
  });
}

function timesOf({ length, slices }: Step, waits: Waits): Record<keyof Omit<RankTimes, "rank">, number> {
  const of = (kind: DeviceSlice["kind"]): readonly Interval[] => unionOf(slices.filter((each) => each.kind === kind));
  const [kernels, communication, all] = [of("kernel"), of("communication"), unionOf(slices)];
  const total = lengthOf(communication);
  return {
    step: length,
    kernels: lengthOf(kernels),
    communication: total,
    exposed: total - lengthOf(intersectionOf(communication, kernels)),
    waiting: lengthOf(unionOf(slices.map((each) => ({ start: each.start, end: each.start + (waits.get(each) ?? 0) })))),
    idle: Math.max(0, length - lengthOf(all)),
  };
}

function collectivesOf(steps: readonly Step[], count: number, waits: Waits): readonly CollectiveTimes[] {
  const rows = new Map<string, CollectiveTimes>();
  for (const { slices } of steps) {
    const kernels = unionOf(slices.filter(({ kind }) => kind === "kernel"));
    let covered = -Infinity;
    for (const slice of slices) {
      if (slice.collective === null) continue;
      const { op, group, dtype, bytes } = slice.collective;
      const own = unionOf([{ start: Math.max(slice.start, covered), end: slice.end }]);
      covered = Math.max(covered, slice.end);
      const key = JSON.stringify([op, group, dtype, bytes]);
      const before = rows.get(key) ?? { op, group, dtype, bytes, times: 0, milliseconds: 0, exposed: 0, waiting: null };
      const waited = waits.get(slice);
      rows.set(key, {
        ...before,
        times: before.times + 1,
        milliseconds: before.milliseconds + (slice.end - slice.start) / count,
        exposed: before.exposed + (lengthOf(own) - lengthOf(intersectionOf(own, kernels))) / count,
        waiting: waited === undefined ? before.waiting : (before.waiting ?? 0) + waited / count,
      });
    }
  }
  const means = [...rows.values()].map((row) => ({ ...row, times: row.times / count }));
  return means.toSorted((a, b) => b.exposed - a.exposed || b.milliseconds - a.milliseconds);
}

// Which rank is late: by collectives that several traces have.

/** How long a rank waits for the last one, by its slice. */
type Waits = ReadonlyMap<DeviceSlice, number>;

/** One collective, by the positions of the traces that have it. */
type Matched = ReadonlyMap<number, DeviceSlice>;

function waitsOf(
  ranks: readonly (readonly (readonly DeviceSlice[])[])[],
  traces: readonly ProfilerTrace[],
): {
  readonly waits: Waits;
  readonly late: readonly (readonly [rank: number, milliseconds: number])[];
  readonly notes: readonly string[];
} {
  const { matched, notes } = match(ranks);
  const offsets = clockOffsets(matched, ranks.length);
  const waits = new Map<DeviceSlice, number>();
  const waitedFor = new Map<number, Map<number, Interval[]>>();
  for (const each of matched) {
    const arrivals = [...each].map(([position, slice]) => ({
      position,
      slice,
      at: slice.start + at(offsets, position),
    }));
    const last = arrivals.reduce((latest, arrival) => (arrival.at > latest.at ? arrival : latest));
    for (const { position, slice, at: time } of arrivals) {
      const wait = Math.min(last.at - time, slice.end - slice.start);
      waits.set(slice, wait);
      const others = getOrMake(waitedFor, last.position, () => new Map<number, Interval[]>());
      pushTo(others, position, { start: slice.start, end: slice.start + wait });
    }
  }
  const late = [...waitedFor].map(([position, others]): readonly [number, number] => {
    const { rank } = at(traces, position);
    return [rank, [...others.values()].reduce((sum, intervals) => sum + lengthOf(unionOf(intervals)), 0)];
  });
  return { waits, late, notes };
}

/** Collectives of a group are matched in order, step by step, where all its traces have as many. */
function match(ranks: readonly (readonly (readonly DeviceSlice[])[])[]): {
  readonly matched: readonly Matched[];
  readonly notes: readonly string[];
} {
  const lists = new Map<string, Map<number, DeviceSlice[]>>();
  for (const [position, steps] of ranks.entries()) {
    for (const [step, slices] of steps.entries()) {
      for (const slice of slices) {
        const { group = null, isPointToPoint = true } = slice.collective ?? {};
        if (group === null || isPointToPoint) continue;
        const key = JSON.stringify([step, group]);
        const byTrace = getOrMake(lists, key, () => new Map<number, DeviceSlice[]>());
        pushTo(byTrace, position, slice);
      }
    }
  }
  let unmatched = 0;
  const matched = [...lists.values()].flatMap((byTrace): readonly Matched[] => {
    const [first = [], ...others] = [...byTrace.values()];
    if (others.length === 0) return [];
    const agree = others.every(
      (list) => list.length === first.length && list.every((slice, i) => sameOp(slice, at(first, i))),
    );
    if (!agree) {
      unmatched += first.length;
      return [];
    }
    return first.map((_, i) => new Map([...byTrace].map(([position, list]) => [position, at(list, i)])));
  });
  const note = `${unmatched} collectives differ in number or order between ranks, so nothing says who waits for whom there`;
  return { matched, notes: unmatched === 0 ? [] : [note] };
}

function sameOp(a: DeviceSlice, b: DeviceSlice): boolean {
  return a.collective?.op === b.collective?.op;
}

/** What to add to times of each trace, for those of the first trace of its connected part: medians of ends. */
function clockOffsets(matched: readonly Matched[], count: number): readonly number[] {
  const offsets = Array.from({ length: count }, (): number | undefined => undefined);
  for (let seed = 0; seed < count; seed++) {
    offsets[seed] ??= 0;
    for (let isNew = true; isNew;) {
      const differences = new Map<number, number[]>();
      for (const each of matched) {
        for (const [known, from] of each) {
          const offset = offsets[known];
          if (offset === undefined) continue;
          for (const [position, slice] of each) {
            if (offsets[position] !== undefined) continue;
            pushTo(differences, position, from.end + offset - slice.end);
          }
          break;
        }
      }
      for (const [position, all] of differences) offsets[position] = medianOf(all);
      isNew = differences.size > 0;
    }
  }
  return offsets.map((offset) => offset ?? 0);
}

function medianOf(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (at(sorted, (sorted.length - 1) >> 1) + at(sorted, sorted.length >> 1)) / 2;
}

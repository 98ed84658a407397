/**
 * Times the contenders for a size: warm-up, then rounds of turns of a few iterations. Clock speed, temperature and
 * other load affect all contenders equally. At the end each contender issues runs in a row, for the host's time. All
 * times are those of the slowest rank.
 */
import { at } from "../../src/support/invariant.ts";
import type { Contender, Timing } from "./contender.ts";
import type { Exchange, Outcome } from "../../src/launch/exchange.ts";
import type { Implementation } from "./implementation.ts";
import type { Traced } from "./traced-run.ts";

export interface MeasureOptions {
  readonly iterations: number;
  readonly warmup: number;
  readonly validate: boolean;
  /** Called before each round with the number of finished iterations. */
  readonly onRound?: (iterations: number) => void;
}

export interface Measured {
  readonly implementation: Implementation;
  /** The contender's note; null if it failed before it had one. */
  readonly note: string | null;
  readonly result: Outcome<Times>;
}

export interface Times {
  /** The time of each iteration on its slowest rank. */
  readonly milliseconds: readonly number[];
  /** The host's time of each iteration on its slowest rank; null if it is not measured. */
  readonly hostMicroseconds: readonly number[] | null;
  /** For each row of runs, the time per run; null if it is not measured. */
  readonly hostInRowMicroseconds: readonly number[] | null;
  /** The largest error of all ranks over its bound; null if not requested. */
  readonly partOfBound: number | null;
  /** Null for contenders whose runs are not traced. */
  readonly traced: Traced | null;
}

/**
 * Counted iterations of a turn. One uncounted iteration runs first, because another contender used the device before.
 */
const runsPerTurn = 5;

/**
 * Rows of runs are timed as well: after a barrier the host has cold caches and an idle driver, which a program that
 * issues run after run does not have.
 */
const rowsOfRuns = 3;
const runsPerRow = 20;

/** Collective: all ranks call it together, with the same contenders. A failed contender is left out from then on. */
export async function measure(
  contenders: readonly Contender[],
  exchange: Exchange,
  { iterations, warmup, validate, onRound }: MeasureOptions,
): Promise<readonly Measured[]> {
  const entries = contenders.map((contender): Entry => ({
    contender,
    timings: [],
    hostInRow: null,
    partOfBound: null,
    traced: null,
    failure: null,
  }));
  for (const entry of entries) {
    // A result is checked after at least one run.
    const before = validate ? Math.max(1, warmup) : warmup;
    if (before > 0) await takeTurn(entry, before, exchange);
    entry.timings = [];
    if (validate) await validateEntry(entry, exchange);
  }
  for (let done = 0, round = 0; done < iterations; done += runsPerTurn, round++) {
    onRound?.(done);
    const runs = Math.min(runsPerTurn, iterations - done);
    for (const turn of roundOrder(entries.length, round)) await takeTurn(at(entries, turn), runs + 1, exchange);
  }
  for (const entry of entries) await timeRows(entry, exchange);
  for (const entry of entries) await traceEntry(entry, exchange);
  return entries.map((entry) => {
    const { implementation, note } = entry.contender;
    return { implementation, note, result: resultOf(entry) };
  });
}

/**
 * Each round begins with a different contender and takes another step from one to the next, so that none always follows
 * the same one.
 */
export function roundOrder(count: number, round: number): readonly number[] {
  const steps = Array.from({ length: count }, (_, step) => step).filter((step) => gcd(step, count) === 1);
  const step = steps[round % Math.max(1, steps.length)] ?? 1;
  return Array.from({ length: count }, (_, i) => (round + i * step) % count);
}

function gcd(a: number, b: number): number {
  return b === 0 ? a : gcd(b, a % b);
}

interface Entry {
  readonly contender: Contender;
  timings: readonly Timing[];
  hostInRow: readonly number[] | null;
  partOfBound: number | null;
  traced: Traced | null;
  failure: string | null;
}

/** The first run of a turn does not count. */
async function takeTurn(entry: Entry, runs: number, exchange: Exchange): Promise<void> {
  if (entry.failure !== null) return;
  const own = await entry.contender.turn(runs);
  const all = await exchange(own.kind === "failed" ? own : { kind: "done", value: own.value.flatMap(numbersOf) });
  if (all.kind === "failed") entry.failure = all.why;
  else {
    const timings = Array.from({ length: runs }, (_, run): Timing => {
      const slowest = (place: number): number => Math.max(...all.value.map((rank) => rank[2 * run + place] ?? NaN));
      const host = slowest(1);
      return { milliseconds: slowest(0), hostMicroseconds: Number.isNaN(host) ? null : host };
    });
    entry.timings = [...entry.timings, ...timings.slice(1)];
  }
}

function numbersOf({ milliseconds, hostMicroseconds }: Timing): readonly number[] {
  return [milliseconds, hostMicroseconds ?? NaN];
}

/** Only for contenders whose turns report the host's time. */
async function timeRows(entry: Entry, exchange: Exchange): Promise<void> {
  if (entry.timings.some(({ hostMicroseconds }) => hostMicroseconds === null)) return;
  const rows: number[] = [];
  for (let row = 0; row < rowsOfRuns && entry.failure === null; row++) {
    const own = await entry.contender.row(runsPerRow);
    const all = await exchange(own.kind === "failed" ? own : { kind: "done", value: [own.value ?? NaN] });
    if (all.kind === "failed") entry.failure = all.why;
    else rows.push(Math.max(...all.value.flat()));
  }
  entry.hostInRow = rows.some(Number.isNaN) ? null : rows;
}

/** No error is below 0. */
const unchecked = -1;

async function validateEntry(entry: Entry, exchange: Exchange): Promise<void> {
  if (entry.failure !== null) return;
  const own = await entry.contender.check();
  const all = await exchange(own.kind === "failed" ? own : { kind: "done", value: [own.value ?? unchecked] });
  if (all.kind === "failed") entry.failure = all.why;
  else if (!all.value.flat().includes(unchecked)) entry.partOfBound = Math.max(...all.value.flat());
}

async function traceEntry(entry: Entry, exchange: Exchange): Promise<void> {
  if (entry.failure !== null) return;
  const traced = await entry.contender.trace(exchange);
  // The times stand without it.
  if (traced.kind === "done") entry.traced = traced.value;
}

function resultOf({ timings, hostInRow, partOfBound, traced, failure }: Entry): Outcome<Times> {
  if (failure !== null) return { kind: "failed", why: failure };
  const host = timings.map(({ hostMicroseconds }) => hostMicroseconds).filter((each) => each !== null);
  return {
    kind: "done",
    value: {
      milliseconds: timings.map(({ milliseconds }) => milliseconds),
      hostMicroseconds: host.length === timings.length ? host : null,
      hostInRowMicroseconds: hostInRow,
      partOfBound,
      traced,
    },
  };
}

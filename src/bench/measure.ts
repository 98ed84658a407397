/**
 * Times contenders at one size: warm-up, then rounds in which every contender has a turn of a few iterations, so that what changes over time (clocks, temperature, other users
 * of the machine) meets all of them alike; at the end each issues runs in a row, for the host's time alone. A time is that of the slowest rank.
 */
import { at } from "../support/invariant.ts";
import type { Contender, Outcome, Timing } from "./contender.ts";
import type { Exchange } from "./exchange.ts";
import type { Implementation } from "./implementation.ts";

export interface MeasureOptions {
  readonly iterations: number;
  readonly warmup: number;
  readonly validate: boolean;
  /** Called before each round with the number of iterations that are done. */
  readonly onRound?: (iterations: number) => void;
}

export interface Measured {
  readonly implementation: Implementation;
  /** As the contender has it; null for one that did not get so far. */
  readonly note: string | null;
  readonly result: Outcome<Times>;
}

export interface Times {
  /** Of each iteration, on its slowest rank. */
  readonly milliseconds: readonly number[];
  /** Likewise; null where it is not told. */
  readonly hostMicroseconds: readonly number[] | null;
  /** Of each row of runs, for one of them; null where it is not told. */
  readonly hostInRowMicroseconds: readonly number[] | null;
  /** The largest error of all ranks over its bound; null if not asked for. */
  readonly partOfBound: number | null;
}

/** Iterations of a turn that count. One more goes before them: the device comes from another contender, perhaps of another process. */
const runsPerTurn = 5;

/** A host that has waited for others at a barrier has cold caches and a driver at rest, which a program that hands run after run over has not: hence rows of runs besides turns. */
const rowsOfRuns = 3;
const runsPerRow = 20;

/** All ranks call it together, with the same contenders. One that fails is left out from then on. */
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
    failure: null,
  }));
  for (const entry of entries) {
    if (warmup > 0) await takeTurn(entry, warmup, exchange);
    entry.timings = [];
    if (validate) await validateEntry(entry, exchange);
  }
  for (let done = 0, round = 0; done < iterations; done += runsPerTurn, round++) {
    onRound?.(done);
    const runs = Math.min(runsPerTurn, iterations - done);
    for (let i = 0; i < entries.length; i++) {
      // Each round begins with another one, so that none always runs behind the same neighbour.
      await takeTurn(at(entries, (i + round) % entries.length), runs + 1, exchange);
    }
  }
  for (const entry of entries) await timeRows(entry, exchange);
  return entries.map((entry) => {
    const { implementation, note } = entry.contender;
    return { implementation, note, result: resultOf(entry) };
  });
}

interface Entry {
  readonly contender: Contender;
  timings: readonly Timing[];
  hostInRow: readonly number[] | null;
  partOfBound: number | null;
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

/** For one whose turns have told the host's time. */
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

async function validateEntry(entry: Entry, exchange: Exchange): Promise<void> {
  if (entry.failure !== null) return;
  const own = await entry.contender.check();
  const all = await exchange(own.kind === "failed" ? own : { kind: "done", value: [own.value] });
  if (all.kind === "failed") entry.failure = all.why;
  else entry.partOfBound = Math.max(...all.value.flat());
}

function resultOf({ timings, hostInRow, partOfBound, failure }: Entry): Outcome<Times> {
  if (failure !== null) return { kind: "failed", why: failure };
  const host = timings.map(({ hostMicroseconds }) => hostMicroseconds).filter((each) => each !== null);
  return {
    kind: "done",
    value: {
      milliseconds: timings.map(({ milliseconds }) => milliseconds),
      hostMicroseconds: host.length === timings.length ? host : null,
      hostInRowMicroseconds: hostInRow,
      partOfBound,
    },
  };
}

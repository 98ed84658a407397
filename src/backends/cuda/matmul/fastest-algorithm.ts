/**
 * Chooses among a library's algorithms for one GEMM. Only algorithms with the bits of the first one take part, so that
 * the choice, which follows from clocks, never changes a result.
 */
import { at } from "../../../support/invariant.ts";

/** Runs of algorithms 0 .. count - 1, on operands that stay the same. */
export interface Trial {
  readonly count: number;
  /** The result's bytes; null if the algorithm does not run. */
  readonly resultOf: (algorithm: number) => Uint8Array | null;
  /** Milliseconds of `runs` runs in a row. */
  readonly time: (algorithm: number, runs: number) => number;
}

const rounds = 3;
/** Milliseconds of runs in a row: long beside the time of waiting for them. */
const batch = 1;
const mostRuns = 32;
/** What is faster by less may be so by chance. */
const leastGain = 1.01;

export function fastestAlgorithm({ count, resultOf, time }: Trial): number {
  const expected = resultOf(0);
  if (expected === null) return 0;
  const candidates = [0];
  for (let algorithm = 1; algorithm < count; algorithm++) {
    const result = resultOf(algorithm);
    if (result !== null && Buffer.compare(expected, result) === 0) candidates.push(algorithm);
  }
  if (candidates.length === 1) return 0;
  const runs = Math.min(mostRuns, Math.max(1, Math.round(batch / time(0, 1))));
  const times = candidates.map((): number[] => []);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < candidates.length; turn++) {
      const place = (turn + round) % candidates.length;
      at(times, place).push(time(at(candidates, place), runs));
    }
  }
  const medians = times.map((each) =>
    at(
      each.toSorted((a, b) => a - b),
      rounds >> 1,
    ),
  );
  const best = medians.indexOf(Math.min(...medians));
  return at(medians, 0) >= leastGain * at(medians, best) ? at(candidates, best) : 0;
}

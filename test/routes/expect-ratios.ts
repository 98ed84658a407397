/** Bounds on how many bytes reshardings move for each that the busiest device lacks. */
import { expect } from "vitest";
import { type Figure, geometricMean, ratioOf } from "./reshard-program.ts";
import type { Reshard } from "./shardy-reshards.ts";

/** A ratio above this is worth a look. */
const much = 1.5;

export interface RatioBounds {
  /** Geometric, over the cases where bytes are lacking. */
  readonly mean: number;
  readonly worst: number;
  /** How many ratios are above 1.5. */
  readonly above: number;
  /** How many cases move bytes where none are lacking. */
  readonly needless: number;
}

export interface Measured extends Figure {
  readonly move: Reshard;
}

/** Fails with a table of the cases above 1.5, worst first. */
export function expectRatios(measured: readonly Measured[], bounds: RatioBounds): void {
  const rows = measured.map((row) => ({ ...row, ratio: ratioOf(row) })).sort((a, b) => b.ratio - a.ratio);
  const ratios = rows.flatMap(({ lacks, ratio }) => (lacks > 0 ? [ratio] : []));
  const found: RatioBounds = {
    mean: geometricMean(ratios),
    worst: Math.max(...ratios),
    above: ratios.filter((ratio) => ratio > much).length,
    needless: rows.filter(({ ratio }) => ratio === Infinity).length,
  };
  const table = rows
    .filter(({ ratio }) => ratio > much)
    .map(({ ratio, bytes, lacks, move }) => `${ratio.toFixed(2)}  ${bytes} / ${lacks}  ${move.name}`);
  const text = [JSON.stringify(found), ...table].join("\n");
  expect(found.mean, text).toBeLessThanOrEqual(bounds.mean);
  expect(found.worst, text).toBeLessThanOrEqual(bounds.worst);
  expect(found.above, text).toBeLessThanOrEqual(bounds.above);
  expect(found.needless, text).toBeLessThanOrEqual(bounds.needless);
  // A count below what is lacking would be wrong.
  expect(ratios.filter((ratio) => ratio < 1 - 1e-9)).toEqual([]);
}

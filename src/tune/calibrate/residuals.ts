/**
 * How far off the profile is between the sizes that it has: the same measurements at sizes in the middle, against what
 * the profile interpolates there. The means are the profile's `residuals`, which widen intervals (docs/simulation.md).
 */
import type { CommandClass } from "../../simulate/command-class.ts";
import { gemmTime, interpolatedTime } from "../../simulate/interpolate.ts";
import type { GemmGrid, MachineProfile, Residuals, Timing } from "../../simulate/machine-profile.ts";
import { committedErrors } from "../../simulate/mean-errors.ts";
import { at } from "../../support/invariant.ts";
import type { CalibrationSizes } from "./calibration-host.ts";

/** The parts of a profile that are interpolated between sizes. */
export type MeasuredTables = Required<
  Pick<
    MachineProfile,
    "products" | "memory" | "reductions" | "reductionsInPeers" | "localCopies" | "peerCopies" | "transfers"
  >
>;

/** Few: the middle of the second and third and of the last two sizes in bytes, and for GEMMs along each axis. */
export function sizesBetween(sizes: CalibrationSizes): CalibrationSizes {
  return {
    ...sizes,
    dtypes: sizes.dtypes.slice(0, 1),
    m: middles(sizes.m, 16),
    n: middles(sizes.n, 16).slice(-1),
    k: middles(sizes.k, 16).slice(-1),
    bytes: middles(sizes.bytes, 4096),
  };
}

/** Multiples of `unit`, so that all devices have equal parts, and kernels run as for the sizes around them. */
function middles(sizes: readonly number[], unit: number): readonly number[] {
  const middle = (high: number): number => unit * Math.round(Math.sqrt(at(sizes, high - 1) * at(sizes, high)) / unit);
  const last = sizes.length - 1;
  return [...new Set([Math.min(2, last), last])].map(middle);
}

/**
 * `between`: measured at other sizes than the tables. `run`: microseconds of an empty run. What was measured is a run, less
 * that: the ratio of a time of 0.1 to one of 0.01 microseconds means nothing.
 */
export function residualsOf(tables: MeasuredTables, between: MeasuredTables, run: number): Residuals {
  const errorOf = (found: number, expected: number): number => Math.abs(Math.log((run + found) / (run + expected)));
  const errors = (table: readonly Timing[], found: readonly Timing[]): readonly number[] =>
    found.map(({ bytes, microseconds }) => errorOf(microseconds, interpolatedTime(table, bytes)));
  return {
    gemms: meanError(
      "gemms",
      between.products.flatMap((grid) => gemmErrors(tables.products, grid, errorOf)),
    ),
    kernels: meanError("kernels", [
      ...errors(tables.memory, between.memory),
      ...tables.reductions.flatMap(({ timings }, i) => errors(timings, at(between.reductions, i).timings)),
    ]),
    copies: meanError("copies", [
      ...errors(tables.localCopies, between.localCopies),
      ...errors(tables.peerCopies, between.peerCopies),
    ]),
    transfers: meanError(
      "transfers",
      tables.transfers.flatMap(({ timings }, i) => errors(timings, at(between.transfers, i).timings)),
    ),
    reductionsInPeers: meanError("reductionsInPeers", errors(tables.reductionsInPeers, between.reductionsInPeers)),
  };
}

function gemmErrors(
  products: readonly GemmGrid[],
  found: GemmGrid,
  errorOf: (found: number, expected: number) => number,
): readonly number[] {
  const grid = products.find(({ dtype }) => dtype === found.dtype) ?? at(products, 0);
  const shapes = found.m.flatMap((m) => found.n.flatMap((n) => found.k.map((k) => ({ m, n, k }))));
  return shapes.map((shape, i) => {
    const measured = (2 * shape.m * shape.n * shape.k) / at(found.teraflops, i) / 1e6;
    return errorOf(measured, gemmTime(grid, shape));
  });
}

/** A few sizes say little: the error that the class had on other machines counts as much as so many of them. */
const usualSizes = 4;

/** In three digits: more would differ from one calibration to the next. */
function meanError(of: CommandClass, errors: readonly number[]): number {
  const sum = errors.reduce((total, each) => total + each, usualSizes * committedErrors.classes[of]);
  return Number((sum / (errors.length + usualSizes)).toPrecision(3));
}

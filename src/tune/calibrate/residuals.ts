/**
 * How far off the profile is between the sizes that it has: the same measurements at sizes in the middle, against what
 * the profile interpolates there. The means are the profile's `residuals`, which widen intervals (docs/interval.md).
 */
import { gemmTime, timeOf } from "../../simulate/interpolate.ts";
import type { GemmGrid, MachineProfile, Residuals, Timing } from "../../simulate/machine-profile.ts";
import { at } from "../../support/invariant.ts";
import type { CalibrationSizes } from "./calibration-sizes.ts";

/** The parts of a profile that are interpolated between sizes. */
export type MeasuredTables = Required<
  Pick<
    MachineProfile,
    | "products"
    | "memory"
    | "reductions"
    | "reductionsInPeers"
    | "localCopies"
    | "peerCopies"
    | "kernelCopies"
    | "transfers"
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

/** `between`: measured at other sizes than the tables. */
export function residualsOf(tables: MeasuredTables, between: MeasuredTables): Residuals {
  return {
    gemms: meanError(between.products.flatMap((grid) => gemmErrors(tables.products, grid))),
    kernels: meanError([
      ...errors(tables.memory, between.memory),
      ...tables.reductions.flatMap(({ timings }, i) => errors(timings, at(between.reductions, i).timings)),
    ]),
    copies: meanError([
      ...errors(tables.localCopies, between.localCopies),
      ...errors(tables.peerCopies, between.peerCopies),
      ...errors(tables.kernelCopies, between.kernelCopies),
    ]),
    transfers: meanError(
      tables.transfers.flatMap(({ timings }, i) => errors(timings, at(between.transfers, i).timings)),
    ),
    reductionsInPeers: meanError(errors(tables.reductionsInPeers, between.reductionsInPeers)),
  };
}

function errors(table: readonly Timing[], found: readonly Timing[]): readonly number[] {
  return found.map(({ bytes, microseconds }) => Math.log(microseconds / timeOf(table, bytes)));
}

function gemmErrors(products: readonly GemmGrid[], found: GemmGrid): readonly number[] {
  const grid = products.find(({ dtype }) => dtype === found.dtype) ?? at(products, 0);
  const shapes = found.m.flatMap((m) => found.n.flatMap((n) => found.k.map((k) => ({ m, n, k }))));
  return shapes.map((shape, i) => {
    const measured = (2 * shape.m * shape.n * shape.k) / at(found.teraflops, i) / 1e6;
    return Math.log(measured / gemmTime(grid, shape));
  });
}

/** Of logarithms, in three digits: more would differ from one calibration to the next. */
function meanError(logarithms: readonly number[]): number {
  const mean = logarithms.reduce((sum, each) => sum + Math.abs(each), 0) / logarithms.length;
  return Number(mean.toPrecision(3));
}

/** Interpolates between measurements: times by bytes, rates of GEMMs by shape. */
import { type DType, dtypes } from "../numerics/dtype.ts";
import { at, invariant } from "../support/invariant.ts";
import { type Assume, assumedErrors, doublings } from "./assumption.ts";
import type { CommandClass } from "./command-class.ts";
import type { GemmGrid, MarginGrid, Sustained, Timing } from "./machine-profile.ts";

/**
 * Microseconds for this many bytes, linear between neighbours. Below the smallest measurement the time is constant.
 * Above the largest, the slope of the last two continues.
 */
export function interpolatedTime(timings: readonly Timing[], bytes: number): number {
  const above = timings.findIndex((timing) => timing.bytes >= bytes);
  const next = above === -1 ? timings.length - 1 : above;
  const high = at(timings, next);
  const low = timings[next - 1];
  if (above === 0 || low === undefined) {
    return above === -1 ? (high.microseconds * bytes) / high.bytes : high.microseconds;
  }
  const slope = (high.microseconds - low.microseconds) / (high.bytes - low.bytes);
  return high.microseconds + slope * (bytes - high.bytes);
}

/** How many times longer GEMMs take in a run with this many microseconds of them than in the shortest run. */
export function loadFactor(sustained: readonly Sustained[], microseconds: number): number {
  const above = sustained.findIndex((each) => each.microseconds >= microseconds);
  if (above === -1) return sustained.at(-1)?.factor ?? 1;
  const high = at(sustained, above);
  const low = sustained[above - 1];
  if (low === undefined) return high.factor;
  const weight = Math.log(microseconds / low.microseconds) / Math.log(high.microseconds / low.microseconds);
  return low.factor + weight * (high.factor - low.factor);
}

export interface GemmShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/**
 * Microseconds of a GEMM. Inside the grid the rate is interpolated in the logarithms of m, n and k. A GEMM smaller
 * along an axis than the grid takes as long as at the grid's edge, because a tile is computed whole. A larger one has
 * the rate of the edge.
 */
export function gemmTime(grid: GemmGrid, shape: GemmShape): number {
  const padded = {
    m: Math.max(shape.m, at(grid.m, 0)),
    n: Math.max(shape.n, at(grid.n, 0)),
    k: Math.max(shape.k, at(grid.k, 0)),
  };
  return (2 * padded.m * padded.n * padded.k) / (rateOf(grid, padded) * 1e6);
}

function rateOf(grid: GemmGrid, shape: GemmShape): number {
  return Math.exp(between(grid, shape, (point) => Math.log(at(grid.teraflops, point))));
}

/** For a GEMM of the shape: interpolated in the logarithms of m, n and k; outside the grid the value of its edge. */
export function marginOf(grid: MarginGrid, shape: GemmShape): { readonly factor: number; readonly room: number } {
  return {
    factor: between(grid, shape, (point) => at(grid.factors, point)),
    room: between(grid, shape, (point) => at(grid.room, point)),
  };
}

/** `valueAt`: the value of a point, by its position in row-major order of m, n, k. */
function between(
  { m, n, k }: Pick<GemmGrid, "m" | "n" | "k">,
  shape: GemmShape,
  valueAt: (point: number) => number,
): number {
  const [alongM, alongN, alongK] = [cornersOf(m, shape.m), cornersOf(n, shape.n), cornersOf(k, shape.k)];
  let value = 0;
  for (const i of alongM) {
    for (const j of alongN) {
      for (const l of alongK) {
        value += i.weight * j.weight * l.weight * valueAt((i.index * n.length + j.index) * k.length + l.index);
      }
    }
  }
  return value;
}

/** Interpolated in the logarithms of `axis`, which ascends; outside of it the rate of its edge. */
export function rateAlong(axis: readonly number[], rates: readonly number[], value: number): number {
  return cornersOf(axis, value).reduce((sum, { index, weight }) => sum + weight * at(rates, index), 0);
}

interface Corner {
  readonly index: number;
  readonly weight: number;
}

/** The grid's values on both sides of `value`, with weights of sum 1. */
function cornersOf(axis: readonly number[], value: number): readonly Corner[] {
  invariant(axis.length > 0, "a grid has points along every axis");
  const above = axis.findIndex((each) => each >= value);
  if (above === -1) return [{ index: axis.length - 1, weight: 1 }];
  const low = axis[above - 1];
  if (low === undefined || at(axis, above) === value) return [{ index: above, weight: 1 }];
  const weight = Math.log(value / low) / Math.log(at(axis, above) / low);
  return [
    { index: above - 1, weight: 1 - weight },
    { index: above, weight },
  ];
}

/** A dtype that was not measured uses the figures of the one whose elements are nearest in size. */
export function nearestTo<T extends { readonly dtype: DType }>(dtype: DType, measured: readonly T[]): T | undefined {
  const distance = (other: DType): number =>
    other === dtype ? -1 : Math.abs(dtypes[other].bytes - dtypes[dtype].bytes);
  return measured.toSorted((a, b) => distance(a.dtype) - distance(b.dtype))[0];
}

// The time of a command by its bytes, and what is assumed where the profile has too few of them.

/**
 * Microseconds for the bytes. Above the largest that were timed, the time is an assumption, unless the profile gives a
 * line by its one or two points.
 */
export function timed(timings: readonly Timing[], bytes: number, of: CommandClass, assume: Assume): number {
  const most = timings.at(-1)?.bytes ?? 0;
  if (timings.length > 2 && bytes > most) {
    const text = `${commandsOf[of]} of more than ${most} bytes are timed at the rate of the largest that were measured`;
    assume({ text, of, error: assumedErrors.moreBytes * doublings(bytes, most) });
  }
  return interpolatedTime(timings, bytes);
}

/** The commands of a class, in a sentence. */
export const commandsOf: { readonly [C in CommandClass]: string } = {
  gemms: "GEMMs",
  kernels: "kernels",
  copies: "copies",
  transfers: "transfers",
  reductionsInPeers: "kernels in peers' memory",
  host: "commands",
};

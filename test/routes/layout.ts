/**
 * Layouts in the notation of this folder, and what a device lacks of one: code of its own, which shares nothing with the
 * compiler that it measures.
 *
 *   mesh "x4 y2"            dimensions, outermost first
 *   cuts "[y][x(1)2 x(2)2]" one list for each axis of the tensor, outermost part first; x(2)2 is the part of x with
 *                           2 indices inside of the first 2 parts, as in Shardy
 */
import { at } from "../../src/support/invariant.ts";

export interface Dimension {
  readonly name: string;
  readonly size: number;
}

/** `size` indices of a mesh dimension, inside of `before` outer parts. */
export interface Part {
  readonly name: string;
  readonly before: number;
  readonly size: number;
}

export interface Layout {
  readonly mesh: readonly Dimension[];
  /** Row by row. */
  readonly devices: readonly number[];
  /** For each axis of the tensor, outermost part first. */
  readonly cuts: readonly (readonly Part[])[];
  /** Dimensions along which each device holds a summand. */
  readonly pending: readonly string[];
}

export function product(numbers: readonly number[]): number {
  return numbers.reduce((result, each) => result * each, 1);
}

/** Devices are 0 .. n-1 if not given. */
export function layout(
  meshText: string,
  cutsText: string,
  given: Partial<Pick<Layout, "devices" | "pending">> = {},
): Layout {
  const mesh = [...meshText.matchAll(/([a-z])(\d+)/gu)].map(([, name = "", size]) => ({ name, size: Number(size) }));
  const count = product(mesh.map(({ size }) => size));
  const sizeOf = (name: string): number => mesh.find((each) => each.name === name)?.size ?? Number.NaN;
  const cuts = [...cutsText.matchAll(/\[(.*?)\]/gu)].map(([, parts = ""]) =>
    [...parts.matchAll(/([a-z])(?:\((\d+)\)(\d+))?/gu)].map(([, name = "", before, size]) => ({
      name,
      before: Number(before ?? 1),
      size: size === undefined ? sizeOf(name) : Number(size),
    })),
  );
  return { mesh, devices: Array.from({ length: count }, (_, device) => device), pending: [], ...given, cuts };
}

/** A box of elements: [from, to) of each axis. */
type Box = readonly { readonly from: number; readonly to: number }[];

/** The elements of each device that has any. Parts round up, one after the other. */
function boxes({ mesh, devices, cuts }: Layout, shape: readonly number[]): ReadonlyMap<number, Box> {
  return new Map(
    devices.map((device, position): [number, Box] => {
      const coordinates = new Map<string, number>();
      let rest = position;
      for (const { name, size } of mesh.toReversed()) {
        coordinates.set(name, rest % size);
        rest = Math.floor(rest / size);
      }
      const box = cuts.map((parts, axis) => {
        const extent = at(shape, axis);
        let [from, to, length] = [0, extent, extent];
        for (const { name, before, size } of parts) {
          const inside = (mesh.find((each) => each.name === name)?.size ?? 1) / (before * size);
          length = Math.ceil(length / size);
          from = Math.min(to, from + (Math.floor((coordinates.get(name) ?? 0) / inside) % size) * length);
          to = Math.min(to, from + length);
        }
        return { from, to };
      });
      return [device, box];
    }),
  );
}

function common(a: Box, b: Box): Box {
  return a.map(({ from, to }, axis) => ({
    from: Math.max(from, at(b, axis).from),
    to: Math.min(to, at(b, axis).to),
  }));
}

function elements(box: Box): number {
  return product(box.map(({ from, to }) => Math.max(0, to - from)));
}

/** Elements that the busiest device holds after and not before. */
export function lack(shape: readonly number[], before: Layout, after: Layout): number {
  const held = boxes(before, shape);
  const wanted = [...boxes(after, shape)];
  if (before.pending.length > 0) return lackOfSums(shape, before, wanted);
  return Math.max(
    ...wanted.map(([device, box]) => {
      const own = held.get(device);
      return elements(box) - (own === undefined ? 0 : elements(common(box, own)));
    }),
  );
}

/**
 * The same where n devices hold a summand each of an element: n - 1 of these arrive somewhere, and the sum arrives at
 * every holder but the one that adds last. All devices share that evenly, at best.
 */
function lackOfSums(
  shape: readonly number[],
  { mesh, pending }: Layout,
  wanted: readonly (readonly [number, Box])[],
): number {
  const summands = product(mesh.filter(({ name }) => pending.includes(name)).map(({ size }) => size));
  const copies = wanted.reduce((sum, [, box]) => sum + elements(box), 0);
  return (product(shape) * (summands - 2) + copies) / product(mesh.map(({ size }) => size));
}

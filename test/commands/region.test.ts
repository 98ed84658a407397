/** Canonical regions name exactly the bytes of the box that they were made from, each once. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { canonicalRegion, nests, regionOf, type Region } from "../../src/commands/region.ts";
import { makeId, at } from "../../src/support/invariant.ts";

const buffer = makeId<BufferId>(0);

/** Every byte of a region in the order of its dims, repeated where the region repeats it. */
function bytesOf({ offset, dims, bytes }: Region): readonly number[] {
  const starts = dims.reduce<readonly number[]>(
    (bases, { count, stride }) => bases.flatMap((base) => Array.from({ length: count }, (_, i) => base + i * stride)),
    [offset],
  );
  return starts.flatMap((start) => Array.from({ length: bytes }, (_, i) => start + i));
}

/** The bytes of a strided box, by the definition of strides. */
function bytesOfBox(offset: number, shape: readonly number[], strides: readonly number[], size: number): Set<number> {
  const dims = shape.map((count, axis) => ({ count, stride: at(strides, axis) * size }));
  return new Set(bytesOf({ buffer, offset, dims, bytes: size }));
}

/** A box of a tensor with some axes cut short, broken off, broadcast and permuted: all that a view can be. */
const boxes = fc
  .array(
    fc.record({ full: fc.integer({ min: 1, max: 4 }), kept: fc.integer({ min: 1, max: 4 }), broadcast: fc.boolean() }),
    { maxLength: 4 },
  )
  .chain((axes) =>
    fc.record({ axes: fc.constant(axes), order: fc.shuffledSubarray([...axes.keys()], { minLength: axes.length }) }),
  )
  .map(({ axes, order }) => {
    let stride = 1;
    const strided = axes.map(({ full, kept, broadcast }) => {
      const axis = { extent: Math.min(full, kept), stride: broadcast ? 0 : stride };
      stride *= full;
      return axis;
    });
    const permuted = order.map((i) => at(strided, i));
    return { shape: permuted.map(({ extent }) => extent), strides: permuted.map((axis) => axis.stride) };
  });

describe("canonicalRegion", () => {
  test("names the bytes of the box, each once, in a form with nothing left to merge", () => {
    fc.assert(
      fc.property(
        boxes,
        fc.constantFrom("float" as const, "half" as const),
        fc.nat(64),
        ({ shape, strides }, dtype, offset) => {
          const size = dtype === "float" ? 4 : 2;
          const region = regionOf({ buffer, offset, dtype, shape, strides });
          const bytes = bytesOf(region);
          expect(new Set(bytes)).toEqual(bytesOfBox(offset, shape, strides, size));
          expect(bytes).toHaveLength(new Set(bytes).size);
          region.dims.forEach(({ count, stride }, i) => {
            expect(count).toBeGreaterThan(1);
            const inner = region.dims[i + 1];
            const end = inner === undefined ? region.bytes : inner.count * inner.stride;
            if (inner === undefined) expect(stride).toBeGreaterThan(end);
            else expect(stride).toBeGreaterThan((inner.count - 1) * inner.stride);
            expect(stride).not.toBe(end);
          });
        },
      ),
    );
  });

  test("is one for all ways to cut the same bytes into axes", () => {
    const whole = canonicalRegion(buffer, 8, [], 96);
    expect(regionOf({ buffer, offset: 8, dtype: "float", shape: [2, 3, 4], strides: [12, 4, 1] })).toEqual(whole);
    expect(regionOf({ buffer, offset: 8, dtype: "float", shape: [4, 1, 6], strides: [1, 99, 4] })).toEqual(whole);
    expect(regionOf({ buffer, offset: 8, dtype: "float", shape: [24], strides: [1] })).toEqual(whole);
  });

  test("keeps the gaps of a slice", () => {
    const rows = regionOf({ buffer, offset: 16, dtype: "float", shape: [3, 2], strides: [8, 1] });
    expect(rows).toEqual({ buffer, offset: 16, dims: [{ count: 3, stride: 32 }], bytes: 8 });
  });

  test("names a broadcast element once", () => {
    const row = regionOf({ buffer, offset: 0, dtype: "float", shape: [5, 4], strides: [0, 1] });
    expect(row).toEqual({ buffer, offset: 0, dims: [], bytes: 16 });
  });

  test.each([
    ["runs side by side", [{ count: 2, stride: 8 }], 4, true],
    ["windows", [{ count: 3, stride: 2 }], 4, true],
    [
      "steps into an inner dim, past its end",
      [
        { count: 2, stride: 16 },
        { count: 3, stride: 12 },
      ],
      4,
      false,
    ],
    ["steps into the inner dims together", [{ count: 2, stride: 44 }, { count: 2, stride: 36 }, { count: 2, stride: 8 }], 4, false], // prettier-ignore
  ])("nests: %s", (_, dims, bytes, expected) => {
    expect(nests(dims, bytes)).toBe(expected);
  });
});

/** Shared bytes of strided regions against counting them one by one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { canonicalRegion, regionBytes } from "../../src/commands/region.ts";
import { makeId } from "../../src/support/invariant.ts";
import { type Extent, sharedBytes } from "../../src/verify/check/shared-bytes.ts";
import { draws } from "../support/suite.ts";

/** A box of a padded row-major tensor of up to four axes, so that strides need not divide each other. */
const extent: fc.Arbitrary<Extent> = fc
  .record({
    start: fc.integer({ min: 0, max: 60 }),
    bytes: fc.constantFrom(1, 2, 4, 8),
    axes: fc.array(fc.record({ count: fc.integer({ min: 1, max: 5 }), pad: fc.integer({ min: 0, max: 7 }) }), {
      maxLength: 4,
    }),
  })
  .map(({ start, bytes, axes }) => {
    let span = bytes;
    const dims = axes.map(({ count, pad }) => {
      const stride = span + pad;
      span += (count - 1) * stride;
      return { count, stride };
    });
    const region = canonicalRegion(makeId<BufferId>(0), start, dims.toReversed(), bytes);
    return { start, dims: region.dims, bytes: region.bytes };
  });

function bytesOf({ start, dims, bytes }: Extent): ReadonlySet<number> {
  let places = [start];
  for (const { count, stride } of dims) {
    places = places.flatMap((place) => Array.from({ length: count }, (_, i) => place + i * stride));
  }
  return new Set(places.flatMap((place) => Array.from({ length: bytes }, (_, i) => place + i)));
}

test("counts the bytes that both have", () => {
  fc.assert(
    fc.property(extent, extent, (a, b) => {
      const [one, other] = [bytesOf(a), bytesOf(b)];
      const expected = [...one].filter((byte) => other.has(byte)).length;
      expect(sharedBytes(a, b)).toBe(expected);
      expect(sharedBytes(b, a)).toBe(expected);
      expect(regionBytes(a)).toBe(one.size);
    }),
    draws({ quick: 800, long: 5000 }),
  );
});

test("columns of one tensor share nothing, however many rows they have", () => {
  const columns = (first: number, count: number): Extent => ({
    start: 4 * first,
    dims: [{ count: 50_000_000, stride: 32 }],
    bytes: 4 * count,
  });
  expect(sharedBytes(columns(0, 4), columns(4, 4))).toBe(0);
  expect(sharedBytes(columns(0, 5), columns(4, 4))).toBe(4 * 50_000_000);
});

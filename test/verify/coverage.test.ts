/** Which bytes of a read no write covers, against counting them one by one, and for regions of many runs. */
import process from "node:process";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { canonicalRegion, type Region } from "../../src/commands/region.ts";
import { makeId } from "../../src/support/invariant.ts";
import { findGap, type Gap } from "../../src/verify/check/coverage.ts";
import { sizeOf } from "../../src/verify/check/shared-bytes.ts";
import { overlapsOf } from "../../src/verify/check/region-table.ts";

const buffer = makeId<BufferId>(0);

/** A box of a padded row-major tensor of up to three axes. */
const region: fc.Arbitrary<Region> = fc
  .record({
    offset: fc.integer({ min: 0, max: 40 }),
    bytes: fc.constantFrom(1, 2, 4),
    axes: fc.array(fc.record({ count: fc.integer({ min: 1, max: 4 }), pad: fc.integer({ min: 0, max: 5 }) }), {
      maxLength: 3,
    }),
  })
  .map(({ offset, bytes, axes }) => {
    let span = bytes;
    const dims = axes.map(({ count, pad }) => {
      const stride = span + pad;
      span += (count - 1) * stride;
      return { count, stride };
    });
    return canonicalRegion(buffer, offset, dims.toReversed(), bytes);
  });

/** The first of the regions is read, the others have been written. */
function gapOf(regions: readonly Region[]): Gap | null {
  const table = { regions, sizes: Float64Array.from(regions, sizeOf), ...overlapsOf(regions) };
  return findGap(table, 0, (other) => other > 0);
}

function bytesOf({ offset, dims, bytes }: Region): readonly number[] {
  let places = [offset];
  for (const { count, stride } of dims) {
    places = places.flatMap((place) => Array.from({ length: count }, (_, i) => place + i * stride));
  }
  return places.flatMap((place) => Array.from({ length: bytes }, (_, i) => place + i)).toSorted((a, b) => a - b);
}

it("counts the bytes that no write has, and finds the first", () => {
  fc.assert(
    fc.property(region, fc.array(region, { maxLength: 5 }), (read, written) => {
      const covered = new Set(written.flatMap(bytesOf));
      const wanted = bytesOf(read);
      const missing = wanted.filter((byte) => !covered.has(byte));
      const gap = gapOf([read, ...written]);
      if (gap === null) {
        expect(missing).toEqual([]);
        return;
      }
      const { start, end } = gap;
      expect(gap).toMatchObject({ missing: missing.length, size: wanted.length });
      expect(start).toBe(missing[0]);
      expect(missing.slice(0, end - start)).toEqual(Array.from({ length: end - start }, (_, i) => start + i));
    }),
    { numRuns: 3000 },
  );
});

it("keeps nothing for each run: a column of a million rows", () => {
  const rows = 1_000_000;
  const column = (first: number, count: number): Region =>
    canonicalRegion(buffer, 4 * first, [{ count: rows, stride: 16 }], 4 * count);
  const regions = [canonicalRegion(buffer, 0, [], 16 * rows), column(0, 2), column(1, 2)];
  gapOf(regions);
  const before = process.memoryUsage().heapUsed;
  expect(gapOf(regions)).toEqual({ start: 12, end: 16, missing: 4 * rows, size: 16 * rows });
  // An object for each run took 100 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
});

/** Which bytes of a read no write covers, against counting them one by one, and for regions of many runs. */
import { spawnSync } from "node:child_process";
import process from "node:process";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { canonicalRegion, type Region } from "../../src/commands/region.ts";
import { makeId } from "../../src/support/invariant.ts";
import { nodeScript } from "../support/node-script.ts";
import { gapOf } from "./gap-of.ts";

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

it("keeps nothing for each run: a column of a million rows", async () => {
  // An object for each run took 100 MB.
  const heap = ["--max-old-space-size=40", "--max-semi-space-size=1"];
  const { status, stdout } = spawnSync(process.execPath, [
    ...heap,
    await nodeScript("test/verify/coverage-process.ts"),
  ]);
  const rows = 1_000_000;
  expect([status, JSON.parse(stdout.toString())]).toEqual([
    0,
    { start: 12, end: 16, missing: 4 * rows, size: 16 * rows },
  ]);
});

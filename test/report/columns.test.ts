/** Columns come back as they were written. */
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeColumns, encodeColumns } from "../../src/support/columns.ts";

it("keeps integers exactly, times to the nanosecond, and everything else as JSON does", () => {
  const value = {
    name: "a run",
    nothing: null,
    rows: [{ ok: true, index: 3 }],
    whole: Int32Array.of(0, -5, 2 ** 31 - 1, -(2 ** 31), 7),
    bytes: Float64Array.of(0, 9e12, 12, -1),
    times: Float64Array.of(0, 1e-6, 0.139_327, 123_456.789_012, 0.5),
    empty: new Float64Array(),
  };
  expect(decodeColumns(encodeColumns(value))).toEqual(value);
});

it("keeps any integers", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.array(fc.integer({ min: -(2 ** 50), max: 2 ** 50 })), (a, b) => {
      const value = { nested: [{ a: Int32Array.from(a) }, Float64Array.from(b)] };
      expect(decodeColumns(encodeColumns(value))).toEqual(value);
    }),
  );
});

it("compresses many times of equal distance", () => {
  const times = Float64Array.from({ length: 10_000 }, (_, i) => i * 0.000_05);
  expect(deflateRawSync(encodeColumns({ times })).length).toBeLessThan(500);
});

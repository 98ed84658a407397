/** Slices on the grid: lengths, tracks, dependencies, and no slice later than it has to be. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InvariantError } from "../../src/support/invariant.ts";
import { placeSlices, type TrackSlice } from "../../src/trace/chrome/slices.ts";

/** A slice in nanoseconds. */
const slice = (track: number, start: number, end: number): TrackSlice => ({
  track,
  start: start / 1e6,
  end: end / 1e6,
});

function placed(slices: readonly TrackSlice[], pairs: readonly { from: number; to: number }[] = []): number[][] {
  const { starts, ends } = placeSlices(slices, pairs);
  return slices.map((_, i) => [starts[i] ?? Number.NaN, ends[i] ?? Number.NaN]);
}

describe("placeSlices", () => {
  it("keeps what needs no change, rounded to nanoseconds", () => {
    expect(placed([slice(0, 5, 9), slice(0, 9, 12.4), slice(1, 2, 30)], [{ from: 0, to: 1 }])).toEqual([
      [5, 9],
      [9, 12],
      [2, 30],
    ]);
  });

  it("gives slices of no length one nanosecond, one after the other", () => {
    expect(placed([slice(0, 5, 5), slice(0, 5, 5), slice(0, 5, 5)])).toEqual([
      [5, 6],
      [6, 7],
      [7, 8],
    ]);
  });

  it("moves a slice to the start of its latest cause, and later ones only if they are in the way", () => {
    const slices = [slice(0, 20, 30), slice(1, 25, 26), slice(2, 18, 22), slice(2, 23, 40), slice(2, 50, 60)];
    const pairs = [
      { from: 0, to: 2 },
      { from: 1, to: 2 },
    ];
    expect(placed(slices, pairs).slice(2)).toEqual([
      [25, 26],
      [26, 40],
      [50, 60],
    ]);
  });

  it("starts no run before 0", () => {
    expect(placed([slice(0, -7, -3), slice(0, -2, 4)])).toEqual([
      [0, 1],
      [1, 4],
    ]);
  });

  it("gives each slice the earliest start that its own time, its track and its causes allow", () => {
    const slices = fc.array(fc.tuple(fc.nat(3), fc.nat(50), fc.nat(10)), { minLength: 1, maxLength: 20 });
    const links = fc.array(fc.tuple(fc.nat(19), fc.nat(19)), { maxLength: 30 });
    fc.assert(
      fc.property(slices, links, (shapes, drawn) => {
        const input = shapes.map(([track, start, length]) => slice(track, start, start + length));
        const pairs = drawn
          .map(([a, b]) => ({ from: Math.min(a, b), to: Math.max(a, b) }))
          .filter(({ from, to }) => from < to && to < input.length);
        const result = placed(input, pairs);
        for (const [i, [track, start, length]] of shapes.entries()) {
          const before = result.filter((_, j) => j < i && shapes[j]?.[0] === track).map(([, end = 0]) => end);
          const causes = pairs.filter(({ to }) => to === i).map(({ from }) => result[from]?.[0] ?? 0);
          const expected = Math.max(start, ...before, ...causes);
          expect(result[i]).toEqual([expected, Math.max(start + length, expected + 1)]);
        }
      }),
    );
  });

  it("refuses causes that go in a circle", () => {
    const pairs = [
      { from: 0, to: 1 },
      { from: 1, to: 0 },
    ];
    expect(() => placed([slice(0, 0, 1), slice(1, 0, 1)], pairs)).toThrow(InvariantError);
  });
});

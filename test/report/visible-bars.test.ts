/** What is drawn of a track: every slice of a pixel or more, and at most two bars a pixel for the rest. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SliceColumns, Track, SliceWork } from "../../src/report/data/timeline-data.ts";
import { firstAfter, sliceAt } from "../../src/report/view/find.ts";
import { chosenBars, createCoverage, visibleBars } from "../../src/report/view/visible-bars.ts";

/** Slices one after the other, each after a gap. */
function trackOf(parts: readonly { readonly gap: number; readonly length: number }[]): {
  readonly slices: SliceColumns;
  readonly track: Track;
} {
  let time = 0;
  const start: number[] = [];
  for (const { gap, length } of parts) {
    start.push(time + gap);
    time += gap + length;
  }
  const count = parts.length;
  const slices: SliceColumns = {
    start: Float64Array.from(start),
    duration: Float64Array.from(parts, ({ length }) => length),
    command: Int32Array.from({ length: count }, (_, i) => i),
    work: Int32Array.from({ length: count }, (_, i) => i % 3),
    iteration: new Int32Array(count),
    edgeStart: new Int32Array(count + 1),
    edges: new Int32Array(),
    reasons: new Int32Array(),
  };
  return { slices, track: { rank: 0, stream: 0, first: 0, count } };
}

const parts = fc.array(fc.record({ gap: fc.nat(20), length: fc.nat(60) }), { minLength: 1, maxLength: 400 });
const works = (["gemm", "wait", "copy"] as const).map((kind): SliceWork => ({
  kind,
  label: "",
  details: "",
  statement: 0,
  bytes: null,
  flops: 0,
}));

describe("visibleBars", () => {
  it("covers each slice in view once, and costs at most two bars a pixel", () => {
    fc.assert(
      fc.property(parts, fc.nat(2000), fc.integer({ min: 1, max: 400 }), (list, from, range) => {
        const { slices, track } = trackOf(list);
        const pixels = { from, scale: 100 / range, width: 100 };
        const seen: number[] = [];
        let bars = 0;
        visibleBars(slices, track, pixels, {
          slice: (slice) => {
            bars++;
            seen.push(slice);
          },
          many: (first, last) => {
            bars++;
            for (let i = first; i < last; i++) seen.push(i);
          },
        });
        const inView = list.flatMap((_, i) => {
          const [start = 0, length = 0] = [slices.start[i], slices.duration[i]];
          return start < from + range && (start + length > from || start >= from) ? [i] : [];
        });
        expect(seen).toEqual(inView);
        expect(bars).toBeLessThanOrEqual(2 * pixels.width + 2);
      }),
    );
  });

  it("joins slices of less than a pixel", () => {
    const { slices, track } = trackOf(Array.from({ length: 1000 }, () => ({ gap: 0, length: 1 })));
    const joined: (readonly [number, number, number])[] = [];
    visibleBars(
      slices,
      track,
      { from: 0, scale: 0.1, width: 100 },
      {
        slice: () => expect.unreachable("no slice is a pixel wide"),
        many: (first, last, x) => joined.push([first, last, x]),
      },
    );
    expect(joined.length).toBe(100);
    expect(joined[3]).toEqual([30, 40, 3]);
  });
});

describe("chosenBars", () => {
  it("draws the chosen slices in view, one for those within a pixel", () => {
    const { slices, track } = trackOf(Array.from({ length: 100 }, () => ({ gap: 5, length: 5 })));
    const chosen = Int32Array.of(2, 30, 31, 90);
    const drawn = (scale: number): readonly number[] => {
      const found: number[] = [];
      chosenBars(slices, track, { from: 100, scale, width: 100 }, chosen, (slice) => found.push(slice));
      return found;
    };
    expect(drawn(0.1)).toEqual([30, 31, 90]);
    expect(drawn(0.01)).toEqual([30, 90]);
  });
});

it("sums over blocks are the sums over slices", () => {
  fc.assert(
    fc.property(parts, fc.nat(399), fc.nat(399), (list, a, b) => {
      const { slices } = trackOf(list);
      const [from, to] = [Math.min(a, b), Math.min(Math.max(a, b) + 1, list.length)];
      fc.pre(from < to);
      const sums = [0, 0, 0];
      for (let i = from; i < to; i++) sums[i % 3] = (sums[i % 3] ?? 0) + (slices.duration[i] ?? 0);
      const { kind, busy } = createCoverage(slices, works).between(from, to);
      expect(busy).toBeCloseTo((sums[0] ?? 0) + (sums[2] ?? 0), 6);
      const index = ["gemm", "wait", "copy"].indexOf(kind);
      expect(sums[index]).toBe(Math.max(...sums));
    }),
  );
});

it("finds the slice at a time, or the nearest one within reach", () => {
  const { slices, track } = trackOf([
    { gap: 10, length: 10 },
    { gap: 10, length: 10 },
    { gap: 0, length: 10 },
  ]);
  expect(firstAfter(slices, track, 15)).toBe(0);
  expect(firstAfter(slices, track, 20)).toBe(1);
  expect(sliceAt(slices, track, 15, 0)).toBe(0);
  expect(sliceAt(slices, track, 25, 2)).toBe(-1);
  expect(sliceAt(slices, track, 29, 2)).toBe(1);
  expect(sliceAt(slices, track, 40, 2)).toBe(2);
  expect(sliceAt(slices, track, 99, 2)).toBe(-1);
});

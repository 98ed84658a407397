/** Views of views against the plain definition: the list of element addresses in row-major order. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { narrowView, type View } from "../../src/commands/view.ts";
import {
  insertAxis,
  mayOverlap,
  permuteView,
  reshapeView,
  sameElements,
  selectView,
  splitView,
  squeezeView,
  stretchView,
} from "../../src/record/views.ts";
import { makeId } from "../../src/support/invariant.ts";

const elementBytes = 4;

/** Byte addresses of the elements, the last axis fastest. */
function addresses({ offset, shape, strides }: Pick<View, "offset" | "shape" | "strides">): number[] {
  return shape.reduce(
    (starts, extent, axis) =>
      starts.flatMap((start) =>
        Array.from({ length: extent }, (_, i) => start + i * (strides[axis] ?? 0) * elementBytes),
      ),
    [offset],
  );
}

const axisOrder = (rank: number): fc.Arbitrary<number[]> =>
  fc.shuffledSubarray(
    Array.from({ length: rank }, (_, i) => i),
    { minLength: rank },
  );

/** A view that slices and permutations of a row-major tensor can make. */
const anyView: fc.Arbitrary<View> = fc
  .array(fc.record({ extent: fc.integer({ min: 1, max: 4 }), padding: fc.integer({ min: 0, max: 2 }) }), {
    maxLength: 4,
  })
  .chain((axes) => fc.tuple(fc.constant(axes), axisOrder(axes.length), fc.integer({ min: 0, max: 8 })))
  .map(([axes, order, start]) => {
    let stride = 1;
    const strides = axes.map(() => 1);
    for (const [axis, { extent, padding }] of [...axes.entries()].reverse()) {
      strides[axis] = stride;
      stride *= extent + padding;
    }
    const shape = axes.map(({ extent }) => extent);
    return permuteView(viewOf(shape, strides, start * elementBytes), order);
  });

function viewOf(shape: readonly number[], strides: readonly number[], offset = 0): View {
  return { buffer: makeId<BufferId>(0), dtype: "float", offset, shape, strides };
}

function withAxis(test: (view: View, axis: number) => void): void {
  fc.assert(
    fc.property(anyView, fc.nat(), (view, number) => {
      fc.pre(view.shape.length > 0);
      test(view, number % view.shape.length);
    }),
  );
}

/** The addresses where `axis` has an index in [start, stop). */
function within(view: View, axis: number, start: number, stop: number): number[] {
  const inner = view.shape.slice(axis + 1).reduce((product, extent) => product * extent, 1);
  const extent = view.shape[axis] ?? 1;
  return addresses(view).filter((_, i) => {
    const index = Math.floor(i / inner) % extent;
    return index >= start && index < stop;
  });
}

describe("views", () => {
  it("selectView fixes an index", () => {
    withAxis((view, axis) => {
      const index = (view.shape[axis] ?? 1) - 1;
      const selected = selectView(view, axis, index);
      expect(selected.shape).toEqual(view.shape.toSpliced(axis, 1));
      expect(addresses(selected)).toEqual(within(view, axis, index, index + 1));
    });
  });

  it("narrowView keeps a range", () => {
    withAxis((view, axis) => {
      const extent = view.shape[axis] ?? 1;
      const start = Math.floor(extent / 2);
      expect(addresses(narrowView(view, axis, start, extent - start))).toEqual(within(view, axis, start, extent));
    });
  });

  it("insertAxis and squeezeView keep the elements in order", () => {
    withAxis((view, axis) => {
      const wider = insertAxis(view, axis);
      expect(wider.shape).toEqual(view.shape.toSpliced(axis, 0, 1));
      expect(addresses(wider)).toEqual(addresses(view));
      const squeezed = squeezeView(wider);
      expect(squeezed.shape).toEqual(view.shape.filter((extent) => extent !== 1));
      expect(addresses(squeezed)).toEqual(addresses(view));
    });
  });

  it("splitView leads with its axis, one part after the other", () => {
    withAxis((view, axis) => {
      const extent = view.shape[axis] ?? 1;
      const split = splitView(view, axis);
      expect(split.shape).toEqual([extent, ...view.shape.toSpliced(axis, 1).filter((other) => other !== 1)]);
      const parts = Array.from({ length: extent }, (_, i) => within(view, axis, i, i + 1)).flat();
      expect(addresses(split)).toEqual(parts);
    });
  });

  it("stretchView repeats axes of one element and adds leading ones", () => {
    fc.assert(
      fc.property(anyView, fc.integer({ min: 1, max: 3 }), (view, count) => {
        const shape = [count, ...view.shape.map((extent) => (extent === 1 ? count : extent))];
        const stretched = stretchView(view, shape);
        expect(stretched?.shape).toEqual(shape);
        const [first, second] = [0, 1].map(
          (i) => stretched && addresses(selectView(stretched, 0, Math.min(i, count - 1))),
        );
        expect(second).toEqual(first);
        expect(new Set(first)).toEqual(new Set(addresses(view)));
      }),
    );
    expect(stretchView(viewOf([2, 3], [3, 1]), [2, 4])).toBeNull();
    expect(stretchView(viewOf([2, 3], [3, 1]), [3])).toBeNull();
  });

  it("reshapeView keeps the elements in order, and refuses only what has no strides", () => {
    fc.assert(
      fc.property(anyView, fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }), (view, factors) => {
        const count = view.shape.reduce((product, extent) => product * extent, 1);
        const shape: number[] = [];
        let left = count;
        for (const factor of factors) {
          const extent = left % factor === 0 ? factor : 1;
          shape.push(extent);
          left /= extent;
        }
        shape.push(left);
        const reshaped = reshapeView(view, shape);
        if (reshaped !== null) {
          expect(reshaped.shape).toEqual(shape);
          expect(addresses(reshaped)).toEqual(addresses(view));
          return;
        }
        // A strided form would have these strides.
        const all = addresses(view);
        let run = count;
        const strides = shape.map((extent) => {
          run /= extent;
          return extent === 1 ? 0 : ((all[run] ?? 0) - (all[0] ?? 0)) / elementBytes;
        });
        expect(addresses({ offset: view.offset, shape, strides })).not.toEqual(all);
      }),
      { numRuns: 1000 },
    );
  });

  it("reshapeView of a contiguous view always succeeds, a scalar's too", () => {
    expect(reshapeView(viewOf([], []), [1, 1])?.shape).toEqual([1, 1]);
    expect(reshapeView(viewOf([1, 1], [1, 1]), [])?.shape).toEqual([]);
    expect(reshapeView(viewOf([4, 6], [6, 1]), [3, 8])?.strides).toEqual([8, 1]);
  });

  it("mayOverlap never misses a shared byte", () => {
    fc.assert(
      fc.property(anyView, anyView, (a, b) => {
        const own = new Set(addresses(a));
        if (addresses(b).some((address) => own.has(address))) expect(mayOverlap(a, b)).toBe(true);
      }),
    );
    const [low, high] = [viewOf([2], [1]), viewOf([2], [1], 2 * elementBytes)];
    expect(mayOverlap(low, high)).toBe(false);
    expect(mayOverlap(low, { ...low, buffer: makeId<BufferId>(1) })).toBe(false);
  });

  it("sameElements ignores the strides of axes of one element", () => {
    expect(sameElements(viewOf([1, 3], [7, 1]), viewOf([1, 3], [3, 1]))).toBe(true);
    expect(sameElements(viewOf([2, 3], [7, 1]), viewOf([2, 3], [3, 1]))).toBe(false);
    expect(sameElements(viewOf([3], [1]), viewOf([3], [1], elementBytes))).toBe(false);
  });
});

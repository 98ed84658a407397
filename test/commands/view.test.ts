/** The common box of views: one shape that walks all of them in their own row-major order. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { commonBox, contiguousStrides, repeatsElements } from "../../src/commands/view.ts";
import { at } from "../../src/support/invariant.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

/** Positions of the elements in row-major order. */
function walk(shape: readonly number[], strides: readonly number[]): readonly number[] {
  return shape.reduce<readonly number[]>(
    (bases, extent, axis) =>
      bases.flatMap((base) => Array.from({ length: extent }, (_, i) => base + i * at(strides, axis))),
    [0],
  );
}

const contiguous = (shape: readonly number[]) => ({ shape, strides: contiguousStrides(shape) });

describe("commonBox", () => {
  test("walks every view in its own order", () => {
    const views = fc
      .array(fc.record({ extent: fc.integer({ min: 1, max: 4 }), pad: fc.integer({ min: 0, max: 2 }) }), {
        maxLength: 4,
      })
      .map((axes) => {
        const shape = axes.map(({ extent }) => extent);
        const strides = contiguousStrides(axes.map(({ extent, pad }) => extent + pad));
        return { shape, strides };
      });
    fc.assert(
      fc.property(fc.array(views, { minLength: 1, maxLength: 3 }), (list) => {
        const box = commonBox(list);
        fc.pre(box !== null);
        list.forEach(({ shape, strides }, i) => {
          expect(walk(box.shape, at(box.strides, i))).toEqual(walk(shape, strides));
        });
      }),
    );
  });

  test("exists for contiguous views exactly if they have equally many elements", () => {
    const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 });
    fc.assert(
      fc.property(shapes, shapes, (a, b) => {
        expect(commonBox([contiguous(a), contiguous(b)]) !== null).toBe(elementCount(a) === elementCount(b));
      }),
    );
  });

  test("has as few axes as the views allow", () => {
    expect(commonBox([contiguous([4, 8]), contiguous([32])])).toEqual({ shape: [32], strides: [[1], [1]] });
    const padded = { shape: [4, 8], strides: [10, 1] };
    expect(commonBox([padded, contiguous([2, 16])])).toEqual({
      shape: [4, 8],
      strides: [
        [10, 1],
        [8, 1],
      ],
    });
    expect(commonBox([contiguous([1]), contiguous([])])).toEqual({ shape: [], strides: [[], []] });
  });

  test("does not exist where rows of different lengths have gaps", () => {
    expect(
      commonBox([
        { shape: [2, 3], strides: [4, 1] },
        { shape: [3, 2], strides: [3, 1] },
      ]),
    ).toBeNull();
  });
});

describe("repeatsElements", () => {
  /** Views of a tensor, some of whose axes repeat. */
  const views = fc
    .array(fc.record({ extent: fc.integer({ min: 0, max: 3 }), repeats: fc.boolean() }), { maxLength: 4 })
    .map((axes) => {
      const shape = axes.map(({ extent }) => extent);
      const strides = contiguousStrides(shape).map((stride, axis) => (at(axes, axis).repeats ? 0 : stride));
      return { shape, strides };
    });

  test("says of views whether two elements have one place", () => {
    fc.assert(
      fc.property(views, (view) => {
        const places = walk(view.shape, view.strides);
        expect(repeatsElements(view)).toBe(new Set(places).size < places.length);
      }),
    );
  });

  test.each([
    ["a transposed tensor", [3, 2], [1, 3], false],
    ["every other column", [3, 2], [8, 2], false],
    ["windows that overlap", [3, 4], [2, 1], true],
    ["windows side by side", [3, 4], [4, 1], false],
    ["axes of one stride", [2, 2], [1, 1], true],
    ["one element, with any strides", [1, 1], [0, 0], false],
    ["no elements", [0, 3], [0, 0], false],
  ])("%s", (_, shape, strides, repeats) => {
    expect(repeatsElements({ shape, strides })).toBe(repeats);
  });
});

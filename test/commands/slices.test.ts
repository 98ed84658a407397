/**
 * Slices of a tensor: every element is in one, boxes under any view that was cut, aligned where there is enough to
 * share.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { BufferId } from "../../src/commands/buffer.ts";
import { cutIntoSlices, positionsWithSlice, sliceOf, viewsToCut } from "../../src/commands/slices.ts";
import { contiguousStrides, stridesInOrder, type View } from "../../src/commands/view.ts";
import { makeId } from "../../src/support/invariant.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

function viewOf(shape: readonly number[], strides = contiguousStrides(shape)): View {
  return { buffer: makeId<BufferId>(0), offset: 0, dtype: "float", shape, strides };
}

/** Byte addresses in row-major order. */
function addresses({ offset, shape, strides }: View): number[] {
  return shape.reduce(
    (starts, extent, axis) =>
      starts.flatMap((start) => Array.from({ length: extent }, (_, i) => start + 4 * i * (strides[axis] ?? 0))),
    [offset],
  );
}

describe("slices", () => {
  it("hold every element once, in any view of the shape", () => {
    const shapes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 });
    const views = shapes.chain((shape) =>
      fc
        .shuffledSubarray([...shape.keys()], { minLength: shape.length })
        .map((order): readonly [View, View] => [viewOf(shape), viewOf(shape, stridesInOrder(shape, order))]),
    );
    fc.assert(
      fc.property(views, fc.integer({ min: 1, max: 9 }), (pair, count) => {
        const [a, b] = viewsToCut(pair) ?? [];
        if (a === undefined || b === undefined) throw new Error("views of one shape share a box");
        const slices = cutIntoSlices(a.shape, 4, count);
        expect(slices.bounds).toHaveLength(count + 1);
        const full = positionsWithSlice(slices);
        for (const view of [a, b]) {
          const parts = Array.from({ length: count }, (_, i) => sliceOf(view, slices, i));
          expect(parts.flatMap(addresses).sort((a, b) => a - b)).toEqual(addresses(view).sort((a, b) => a - b));
          expect(parts.flatMap((part, i) => (elementCount(part.shape) > 0 ? [i] : []))).toEqual(full);
        }
        // Slice i of one view is of the same elements as slice i of the other.
        const place = new Map(addresses(a).map((address, i) => [address, addresses(b)[i]]));
        for (let i = 0; i < count; i++) {
          expect(addresses(sliceOf(a, slices, i)).map((address) => place.get(address))).toEqual(
            addresses(sliceOf(b, slices, i)),
          );
        }
      }),
    );
  });

  it.each([
    [[1000], 4, 4, 0, [0, 248, 500, 748, 1000]],
    [[1000], 2, 4, 0, [0, 248, 496, 744, 1000]],
    // Too few for 16 bytes each.
    [[7], 4, 3, 0, [0, 2, 4, 7]],
    [[3], 4, 4, 0, [0, 0, 1, 2, 3]],
    [[1], 4, 2, 0, [0, 0, 1]],
    // The first axis that has something for each.
    [[2, 9, 5], 4, 3, 1, [0, 3, 6, 9]],
    [[2, 3], 4, 8, 1, [0, 0, 0, 1, 1, 1, 2, 2, 3]],
  ] as const)("%j with %i bytes an element for %i ranks", (shape, elementBytes, count, axis, bounds) => {
    expect(cutIntoSlices(shape, elementBytes, count)).toEqual({ axis, bounds });
  });

  it("cut a scalar as one element", () => {
    const views = viewsToCut([viewOf([]), viewOf([1, 1])]);
    expect(views?.map(({ shape, strides }) => [shape, strides])).toEqual([
      [[1], [1]],
      [[1], [1]],
    ]);
  });

  it("do not cut views without a common box", () => {
    expect(viewsToCut([viewOf([2, 3], [4, 1]), viewOf([3, 2], [4, 1])])).toBeNull();
  });
});

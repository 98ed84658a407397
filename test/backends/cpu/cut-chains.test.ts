/**
 * Cutting moves into parts: every element is moved once, with the same elements of all views, in parts of about equal
 * size.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutChains } from "../../../src/backends/cpu/threads/shared-works.ts";
import type { BufferId } from "../../../src/commands/buffer.ts";
import { stridesInOrder, type View } from "../../../src/commands/view.ts";
import type { MoveChain } from "../../../src/machine/transfers/moves.ts";
import { dtypes } from "../../../src/numerics/dtype.ts";
import { at, makeId } from "../../../src/support/invariant.ts";
import { elementCount } from "../../../src/numerics/tensor/host-tensor.ts";

const extents = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 });

/** A chain of a combination of two views and a copy of the result, each with axes in an order of its own. */
const chains = fc.array(
  extents.chain((shape) =>
    fc
      .tuple(...[0, 1, 2, 3].map(() => fc.shuffledSubarray([...shape.keys()], { minLength: shape.length })))
      .map((orders): { readonly shape: readonly number[]; readonly orders: readonly (readonly number[])[] } => ({
        shape,
        orders,
      })),
  ),
  { minLength: 1, maxLength: 5 },
);

function chainOf(shape: readonly number[], orders: readonly (readonly number[])[], firstBuffer: number): MoveChain {
  const [a, b, sum, copy] = orders.map((order, i): View => ({
    buffer: makeId<BufferId>(firstBuffer + i),
    offset: 0,
    dtype: "half",
    shape,
    strides: stridesInOrder(shape, order),
  }));
  if (a === undefined || b === undefined || sum === undefined || copy === undefined) throw new Error("four orders");
  return [
    {
      op: "sum",
      sources: [
        { from: 0, view: a },
        { from: 1, view: b },
      ],
      destination: sum,
    },
    { op: null, sources: [{ from: 0, view: sum }], destination: copy },
  ];
}

/** Byte addresses of a view's elements in row-major order. */
function addresses({ offset, shape, strides, dtype }: View): readonly number[] {
  return shape.reduce<readonly number[]>(
    (bases, extent, axis) =>
      bases.flatMap((base) =>
        Array.from({ length: extent }, (_, i) => base + i * at(strides, axis) * dtypes[dtype].bytes),
      ),
    [offset],
  );
}

/** What a chain does to each element: its moves' operations with the places that they read and write. */
function elements(chain: MoveChain): readonly string[] {
  const moves = chain.map(({ op, sources, destination }) => {
    const [target, ...read] = [destination, ...sources.map(({ view }) => view)].map((view) =>
      addresses(view).map((address) => `${view.buffer}:${address}`),
    );
    return (target ?? []).map((place, n) => `${place} = ${op}(${read.map((places) => places[n]).join(", ")})`);
  });
  return at(moves, 0).map((_, n) => moves.map((texts) => texts[n]).join("; "));
}

describe("cutChains", () => {
  it("does to every element what the whole does, once", () => {
    fc.assert(
      fc.property(chains, fc.integer({ min: 1, max: 12 }), (shapes, count) => {
        const whole = shapes.map(({ shape, orders }, i) => chainOf(shape, orders, 4 * i));
        const parts = cutChains(whole, count);
        expect(parts.length).toBeLessThanOrEqual(count);
        expect(parts.flat().flatMap(elements).toSorted()).toEqual(whole.flatMap(elements).toSorted());
      }),
    );
  });

  const row = (buffer: number, shape: readonly number[]): View => ({
    buffer: makeId<BufferId>(buffer),
    offset: 0,
    dtype: "float",
    shape,
    strides: stridesInOrder(shape, [...shape.keys()]),
  });
  const copy = (shape: readonly number[]): MoveChain => [
    { op: null, sources: [{ from: 0, view: row(0, shape) }], destination: row(1, shape) },
  ];

  it("cuts one large chain into slices of equal size that begin at cache lines", () => {
    const parts = cutChains([copy([1_000_003])], 4);
    expect(parts).toHaveLength(4);
    for (const part of parts) {
      expect(part).toHaveLength(1);
      const { offset, shape } = at(at(part, 0), 0).destination;
      expect(offset % 64).toBe(0);
      expect(Math.abs(elementCount(shape) - 250_000)).toBeLessThan(20);
    }
  });

  it("cuts along the outermost axis that has enough elements", () => {
    const parts = cutChains([copy([2, 100, 10])], 4);
    expect(parts.map((part) => at(at(part, 0), 0).destination.shape)).toEqual(Array(4).fill([2, 25, 10]));
  });

  it("joins small chains to parts of equal size", () => {
    const small = Array.from({ length: 56 }, () => copy([1000]));
    const parts = cutChains(small, 4);
    expect(parts.map(({ length }) => length)).toEqual([14, 14, 14, 14]);
  });
});

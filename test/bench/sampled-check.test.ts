/** `--check` finds errors: a misplaced chunk, a missing summand, an extra rounding. */
import { describe, expect, it } from "vitest";
import { createMatrices } from "../../src/numerics/tensor/random-matrices.ts";
import {
  createInputs,
  expectedElement,
  type Layout,
  outputColumns,
  outputRows,
} from "../../bench/compare/braid/operands.ts";
import { type Form, type Primitive, primitives, type Problem } from "../../bench/compare/primitives.ts";
import { checkSamples } from "../../bench/compare/sampled-check.ts";
import { at } from "../../src/support/invariant.ts";

const matrices = createMatrices("float", 3);
const inputs = createInputs(matrices);
const forms: readonly Form[] = ["compute-only", "communication-only", "serial", "rotated", "collective"];

function layoutOf(primitive: Primitive, form: Form): Layout {
  const problem: Problem = { primitive, m: 24, n: 10, k: 12, dtype: "float", devices: 3 };
  return { problem, form, chunks: 2, outputs: 1 };
}

/** The right result of one rank. */
function resultOf(layout: Layout, rank: number): Float32Array {
  const columns = outputColumns(layout);
  return Float32Array.from(
    outputRows(layout, 0, rank).flatMap(({ first, count }) =>
      Array.from({ length: count * columns }, (_, i) => {
        const row = first + Math.floor(i / columns);
        return expectedElement(layout, rank, row, i % columns, matrices).value;
      }),
    ),
  );
}

function checked(layout: Layout, rank: number, result: Float32Array): number {
  return checkSamples(layout, rank, 0, new Uint8Array(result.buffer), matrices).partOfBound;
}

describe.each(primitives.flatMap((primitive) => forms.map((form) => ({ primitive, form }))))(
  "$primitive, $form",
  ({ primitive, form }) => {
    const layout = layoutOf(primitive, form);

    it("passes a right result and refuses one with rows of another place, or another rank's", () => {
      const right = resultOf(layout, 1);
      expect(checked(layout, 1, right)).toBeLessThanOrEqual(1);
      const columns = outputColumns(layout);
      const moved = right.slice();
      moved.copyWithin(0, 3 * columns, 4 * columns);
      expect(checked(layout, 1, moved)).toBeGreaterThan(1);
      const nothing = right.slice().fill(0, right.length - columns);
      expect(checked(layout, 1, nothing)).toBeGreaterThan(1);
      expect(checked(layout, 1, right.slice().fill(NaN, 0, 4))).toBe(Infinity);
    });

    it("refuses a result without one rank's summand, and another rank's", () => {
      if (primitive !== "tp-columnwise" && form !== "compute-only") {
        const fewer: Layout = { ...layout, problem: { ...layout.problem, primitive: "tp-allreduce", devices: 2 } };
        const rows = outputRows(layout, 0, 1);
        const columns = outputColumns(layout);
        const two = Float32Array.from(
          rows.flatMap(({ first, count }) =>
            Array.from({ length: count * columns }, (_, i) => {
              const row = first + Math.floor(i / columns);
              return expectedElement(fewer, 1, row, i % columns, matrices).value;
            }),
          ),
        );
        expect(checked(layout, 1, two)).toBeGreaterThan(1);
      }
      const same = outputRows(layout, 0, 0).every(({ first }, i) => first === at(outputRows(layout, 0, 1), i).first);
      const shared = same && (primitive === "tp-allreduce" || form === "communication-only") && form !== "compute-only";
      if (!shared) expect(checked(layout, 1, resultOf(layout, 0))).toBeGreaterThan(1);
    });
  },
);

describe("operands", () => {
  it("are one matrix in all forms, in the order of its rows", () => {
    const serial = [0, 1, 2].map((rank) => inputs(layoutOf("tp-columnwise", "serial"), 0, rank));
    const whole = inputs(layoutOf("tp-columnwise", "compute-only"), 0, 0);
    expect(Buffer.concat(serial).equals(whole)).toBe(true);
    const chunks = [0, 1, 2].map((rank) => inputs(layoutOf("tp-columnwise", "collective"), 0, rank));
    const [first, second] = [0, 1].map((half) =>
      chunks.map((bytes) => bytes.subarray((half * bytes.length) / 2, ((half + 1) * bytes.length) / 2)),
    );
    expect(Buffer.concat([...(first ?? []), ...(second ?? [])]).equals(whole)).toBe(true);
  });

  it("differ from rank to rank where they are the rank's own, and from row to row", () => {
    const weights = [0, 1].map((rank) => inputs(layoutOf("tp-columnwise", "serial"), 1, rank));
    expect(Buffer.compare(at(weights, 0), at(weights, 1))).not.toBe(0);
    const rows = at(weights, 0);
    const length = 12 * 4;
    expect(Buffer.compare(rows.subarray(0, length), rows.subarray(length, 2 * length))).not.toBe(0);
  });

  it("make results of which each output has the next rows", () => {
    const rows = (primitive: Primitive, position: number): unknown => {
      const layout: Layout = { ...layoutOf(primitive, "rotated"), outputs: 2 };
      return outputRows(layout, position, 1);
    };
    expect([0, 1].map((position) => rows("tp-allreduce", position))).toEqual([
      [{ first: 0, count: 12 }],
      [{ first: 12, count: 12 }],
    ]);
    expect([0, 1].map((position) => rows("tp-rowwise", position))).toEqual([
      [{ first: 4, count: 4 }],
      [{ first: 16, count: 4 }],
    ]);
  });

  it("are what the reader says, beyond the end of the random piece too", () => {
    const bytes = new Uint8Array(4 * 10);
    matrices.fill("A", 2_000_001, 10, bytes, 0);
    const read = matrices.reader("A");
    expect([...new Float32Array(bytes.buffer)]).toEqual(Array.from({ length: 10 }, (_, i) => read(2_000_001 + i)));
  });
});

/** Units that run in blocks of rows, against whole rows; and which units do. */
import { describe, expect, it } from "vitest";
import type { UnitKernel } from "../../src/commands/kernel.ts";
import { planKernel } from "../../src/kernels/kernel-plan.ts";
import { scratchBytes, rowBlocks } from "../../src/kernels/kernel-library.ts";
import { usesLanes } from "../../src/kernels/simd/compile-lane-nests.ts";
import { createRandom } from "../../src/support/random.ts";
import { count, runKernel } from "./run-kernel.ts";
import { buildUnit } from "./unit-builder.ts";
import { evaluateUnit } from "./unit-reference.ts";
import { firstDifference, randomValues } from "./values.ts";
import { at } from "../../src/support/invariant.ts";

/** The distance of each element to the mean, and its sum of squares. */
function norm(shape: readonly number[], axis = shape.length - 1): UnitKernel {
  return buildUnit([shape], (u, x) => {
    const distance = u.binary("sub", x, u.broadcast(u.reduce("sum", x, [axis]), axis));
    const squares = u.reduce("sum", u.binary("mul", distance, distance), [axis]);
    return [u.binary("mul", distance, u.broadcast(squares, axis)), squares];
  });
}

function lengths(unit: UnitKernel): readonly number[] {
  return rowBlocks(unit).map(({ kernel }) => count(at(kernel.outputs, 1).shape));
}

describe("a unit that normalizes rows", () => {
  it("runs in blocks that stay in the cache, with the scratch of one", () => {
    const unit = norm([2048, 4096]);
    expect(new Set(lengths(unit))).toEqual(new Set([8]));
    expect(scratchBytes(unit)).toBeLessThan(2 ** 18);
    // A value of each row: the distances are not stored.
    expect(planKernel(unit).valueBytes).toBe(2048 * 4);
    // The rows of all four batches, of which the last block has fewer.
    expect(new Set(lengths(norm([4, 2048, 256])))).toEqual(new Set([224, 128]));
  });

  it("runs whole if it is small, if its rows are too long, or if it reduces columns", () => {
    for (const unit of [norm([64, 256]), norm([64, 2 ** 20]), norm([4096, 2048], 0)]) {
      expect(rowBlocks(unit)).toHaveLength(1);
    }
  });

  it("reads a weight for all rows in its own dtype", () => {
    const unit = buildUnit(
      [[2048, 4096], [4096]],
      (u, x, w) => {
        const wide = u.cast(x, "float");
        const distance = u.binary("sub", wide, u.broadcast(u.reduce("sum", wide, [1]), 1));
        return [u.cast(u.binary("mul", distance, u.broadcast(u.cast(w, "float"), 0)), "bfloat16")];
      },
      "bfloat16",
    );
    expect(rowBlocks(unit).length).toBeGreaterThan(1);
    expect(planKernel(unit).phases).toHaveLength(2);
  });

  it("computes exp with what it reads, once, in WebAssembly", () => {
    const unit = buildUnit([[2048, 4096]], (u, x) => {
      const powers = u.unary("exp", u.binary("sub", x, u.broadcast(u.reduce("amax", x, [1]), 1)));
      return [u.binary("div", powers, u.broadcast(u.reduce("sum", powers, [1]), 1))];
    });
    const blocks = rowBlocks(unit);
    const nests = planKernel(at(blocks, 0).kernel).phases.flatMap((phase) =>
      phase.kind === "nest" ? [phase.nest] : [],
    );
    // amax, exp of the difference, sum, the quotient
    expect(nests.map(({ body }) => body.filter(({ kind }) => kind === "apply").length)).toEqual([0, 2, 0, 1]);
    expect(nests.map((nest) => usesLanes(nest, "always"))).toEqual([true, true, true, true]);
    expect(planKernel(unit).phases).toHaveLength(4);
  });

  it("has the same bits as one row after the other, also in a last block of fewer rows", () => {
    const unit = norm([61, 2048]);
    expect(lengths(unit)).toEqual([24, 24, 13]);
    const values = randomValues("float", 61 * 2048, createRandom(3));
    const found = runKernel(unit, [values]);
    for (const [i, expected] of evaluateUnit(unit, [values]).entries()) {
      expect(firstDifference(at(found, i), expected)).toBeNull();
    }
  });
});

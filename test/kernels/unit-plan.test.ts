/** The plan of a unit: its loop nests, their computations, and the values in the scratch. */
import { describe, expect, it } from "vitest";
import type { UnitKernel } from "../../src/commands/kernel.ts";
import type { Nest } from "../../src/kernels/nests/nest.ts";
import { planUnit } from "../../src/kernels/unit-plan.ts";
import { at } from "../../src/support/invariant.ts";
import { checkUnit } from "./check-unit.ts";
import { buildUnit, type UnitBuilder } from "./unit-builder.ts";

function phasesOf(unit: UnitKernel): readonly string[] {
  return planUnit(unit).phases.map(({ kind }) => kind);
}

function nestsOf(unit: UnitKernel): readonly Nest[] {
  return planUnit(unit).phases.flatMap((phase) => (phase.kind === "nest" ? [phase.nest] : []));
}

/** Computations in each nest. */
function computations(unit: UnitKernel): readonly number[] {
  return nestsOf(unit).map(({ body }) => body.filter(({ kind }) => kind === "apply").length);
}

function loads(unit: UnitKernel): readonly number[] {
  return nestsOf(unit).map(({ body }) => body.filter(({ kind }) => kind === "load").length);
}

/** Extents of the loops of each nest, outermost first. */
function loops(unit: UnitKernel): readonly (readonly number[])[] {
  return nestsOf(unit).map((nest) => [...nest.loops, ...nest.reducedLoops].map(({ extent }) => extent));
}

function divides(unit: UnitKernel): boolean {
  return nestsOf(unit).some(({ atoms }) => atoms.some(({ kind }) => kind !== "loop"));
}

describe("joined values", () => {
  const parts = [
    [4, 3],
    [4, 3],
    [2, 6],
  ];

  it("are written to where they are permuted, cast and joined again, a nest for each part", () => {
    const unit = buildUnit(parts, (u, a, b, c) => {
      const rows = u.unary("abs", u.cat(1, u.unary("neg", a), b));
      return [u.cast(u.permute(u.cat(0, rows, c), [1, 0]), "half")];
    });
    expect(planUnit(unit)).toMatchObject({ valueBytes: 0 });
    expect(loads(unit)).toEqual([1, 1, 1]);
    checkUnit(unit, 1);
  });

  it("are written through reshapes that merge axes, as in rotary embeddings", () => {
    const halves = [
      [4, 2, 3, 1],
      [4, 2, 3, 1],
    ];
    const unit = buildUnit(halves, (u, a, b) => {
      const pairs = u.reshape(u.cat(3, u.unary("neg", a), b), [4, 2, 6]);
      return [u.reshape(u.permute(pairs, [1, 0, 2]), [2, 1, 4, 6])];
    });
    expect(planUnit(unit)).toMatchObject({ valueBytes: 0 });
    expect(loads(unit)).toEqual([1, 1]);
    checkUnit(unit, 3);
  });

  it.each([
    ["two values read", (u: UnitBuilder, joined: number) => [u.unary("neg", joined), u.unary("abs", joined)]],
    ["a reshape follows", (u: UnitBuilder, joined: number) => [u.reshape(joined, [8, 3])]],
    ["other elements are added to", (u: UnitBuilder, joined: number) => [u.binary("add", joined, joined)]],
  ])("are stored where %s", (_, use) => {
    const unit = buildUnit(parts.slice(0, 2), (u, a, b) => use(u, u.cat(1, a, b)));
    expect(planUnit(unit).valueBytes).toBeGreaterThan(0);
    checkUnit(unit, 2);
  });
});

describe("elementwise steps", () => {
  it("become one nest with one loop and no scratch", () => {
    const unit = buildUnit(
      [
        [4, 5],
        [4, 5],
      ],
      (u, x, y) => [u.unary("exp", u.binary("add", x, u.unary("neg", y)))],
    );
    expect(computations(unit)).toEqual([3]);
    expect(loops(unit)).toEqual([[20]]);
    expect(planUnit(unit)).toMatchObject({ valueBytes: 0, workBytes: 0 });
  });

  it("that read a value twice at one index compute it once", () => {
    const unit = buildUnit([[8]], (u, x) => {
      const shared = u.unary("exp", x);
      return [u.binary("mul", u.unary("neg", shared), u.unary("abs", shared))];
    });
    expect(computations(unit)).toEqual([4]);
    expect(loads(unit)).toEqual([1]);
  });

  it("store a value that two nests read", () => {
    const unit = buildUnit([[8]], (u, x) => {
      const shared = u.unary("exp", x);
      return [u.unary("neg", shared), u.unary("abs", shared)];
    });
    expect(computations(unit)).toEqual([1, 1, 1]);
    expect(planUnit(unit).valueBytes).toBe(64);
  });

  it("store a value that one nest reads at two indices", () => {
    const unit = buildUnit([[4, 4]], (u, x) => {
      const shared = u.unary("exp", x);
      return [u.binary("add", shared, u.permute(shared, [1, 0]))];
    });
    expect(computations(unit)).toEqual([1, 1]);
  });

  it("store a computed value that is repeated along an axis, but no view of an input", () => {
    const stretched = (compute: boolean): UnitKernel =>
      buildUnit([[4], [4, 6]], (u, x, y) => [u.binary("add", u.broadcast(compute ? u.unary("exp", x) : x, 1), y)]);
    expect(computations(stretched(true))).toEqual([1, 1]);
    expect(computations(stretched(false))).toEqual([1]);
  });

  it("end a nest before it grows beyond what an engine optimises", () => {
    const unit = buildUnit([[8]], (u, x) => {
      let value = x;
      for (let i = 0; i < 100; i++) value = u.unary("exp", value);
      return [value];
    });
    const counts = computations(unit);
    expect(counts.length).toBe(2);
    expect(Math.max(...counts)).toBeLessThanOrEqual(66);
    expect(counts.reduce((a, b) => a + b)).toBe(100);
  });

  it("that no result needs are dropped", () => {
    const unit = buildUnit([[8]], (u, x) => {
      u.reduce("sum", x, [0]);
      return [u.unary("neg", x)];
    });
    expect(computations(unit)).toEqual([1]);
  });
});

describe("views", () => {
  it("cost nothing: permute, broadcast, slice and even reshapes are strides", () => {
    const unit = buildUnit([[6, 4], [8]], (u, x, y) => {
      const rows = u.broadcast(u.slice(y, [[2, 4]]), 1);
      return [u.binary("add", u.reshape(u.permute(x, [1, 0]), [2, 12]), rows)];
    });
    expect(computations(unit)).toEqual([1]);
    expect(divides(unit)).toBe(false);
  });

  it("split loops where a reshape cuts through them", () => {
    // [4, 6] read sideways as [2, 12]: rows of 12 are two columns of 6.
    const unit = buildUnit([[6, 4]], (u, x) => [u.reshape(u.permute(x, [1, 0]), [2, 12])]);
    expect(divides(unit)).toBe(false);
    expect(at(loops(unit), 0)).toEqual([4, 6]);
  });

  it("divide only where no strides exist", () => {
    const unit = buildUnit([[2, 3]], (u, x) => [
      u.unary("neg", u.reshape(u.slice(u.reshape(u.permute(x, [1, 0]), [6]), [[1, 5]]), [2, 2])),
    ]);
    expect(divides(unit)).toBe(true);
  });
});

describe("reductions", () => {
  it("take in what is computed before them and store their result", () => {
    const unit = buildUnit([[4, 5]], (u, x) => [u.unary("exp", u.reduce("sum", u.unary("abs", x), [1]))]);
    expect(loops(unit)).toEqual([[4, 5], [4]]);
    expect(computations(unit)).toEqual([1, 1]);
    expect(planUnit(unit).valueBytes).toBe(64);
  });

  it("along the slow axis keep a row of accumulators", () => {
    const overAxis = (axis: number): number =>
      planUnit(buildUnit([[64, 100]], (u, x) => [u.reduce("sum", x, [axis])])).workBytes;
    expect([0, 1].map(overAxis)).toEqual([400, 0]);
  });

  it("make softmax four nests over its rows and columns", () => {
    const unit = buildUnit([[4, 5]], (u, x) => {
      const shifted = u.unary("exp", u.binary("sub", x, u.broadcast(u.reduce("amax", x, [1]), 1)));
      return [u.binary("div", shifted, u.broadcast(u.reduce("sum", shifted, [1]), 1))];
    });
    expect(loops(unit)).toEqual([
      [4, 5],
      [4, 5],
      [4, 5],
      [4, 5],
    ]);
    // amax; exp(x - amax), which two nests read; its sum; the quotient.
    expect(computations(unit)).toEqual([0, 2, 0, 1]);
  });
});

describe("matmuls", () => {
  it("read transposed, sliced and reshaped operands in place", () => {
    const unit = buildUnit([[5, 4], [40]], (u, x, y) => [
      u.matmul(
        u.permute(x, [1, 0]),
        u.slice(u.reshape(y, [5, 8]), [
          [0, 5],
          [2, 6],
        ]),
      ),
    ]);
    expect(phasesOf(unit)).toEqual(["contraction"]);
  });

  it("store computed operands", () => {
    const unit = buildUnit(
      [
        [4, 5],
        [5, 6],
      ],
      (u, x, y) => [u.matmul(u.unary("relu", x), y)],
    );
    expect(phasesOf(unit)).toEqual(["nest", "contraction"]);
  });

  it("gather operands that no strides describe", () => {
    const unit = buildUnit(
      [
        [3, 4],
        [4, 5],
      ],
      (u, x, y) => [u.matmul(u.reshape(u.permute(x, [1, 0]), [3, 4]), y)],
    );
    expect(phasesOf(unit)).toEqual(["nest", "contraction"]);
  });

  it("store their result, and what follows is another nest", () => {
    const unit = buildUnit([[4, 5], [6, 5], [6]], (u, x, w, b) => [u.unary("gelu", u.linear(x, w, b))]);
    expect(phasesOf(unit)).toEqual(["contraction", "nest"]);
    expect(planUnit(unit).valueBytes).toBe(128);
  });
});

describe("scratch", () => {
  it("is free again after the last phase that reads a value", () => {
    const layers = (depth: number): number =>
      planUnit(
        buildUnit(
          [
            [16, 16],
            [16, 16],
          ],
          (u, x, w) => {
            let value = x;
            for (let i = 0; i < depth; i++) value = u.unary("relu", u.linear(value, w));
            return [value];
          },
        ),
      ).valueBytes;
    // One GEMM and its relu at a time, the last relu in the output.
    expect([1, 2, 3, 10].map(layers)).toEqual([1024, 2048, 2048, 2048]);
  });

  it("is kept for a value that is read again much later", () => {
    const unit = buildUnit([[16, 16]], (u, x) => {
      const early = u.matmul(x, x);
      const late = u.matmul(u.matmul(u.matmul(early, x), x), x);
      return [u.binary("add", early, late)];
    });
    // early, and two GEMMs in turn.
    expect(planUnit(unit).valueBytes).toBe(3072);
  });

  it("gathers an operand once that is used twice", () => {
    const unit = buildUnit([[4, 3]], (u, x) => {
      const odd = u.reshape(
        u.permute(
          u.slice(x, [
            [1, 4],
            [0, 3],
          ]),
          [1, 0],
        ),
        [9],
      );
      const square = u.reshape(u.slice(u.reshape(u.permute(x, [1, 0]), [12]), [[1, 10]]), [3, 3]);
      return [u.matmul(square, square), odd];
    });
    expect(phasesOf(unit)).toEqual(["nest", "nest", "contraction"]);
  });
});

describe("results", () => {
  it("that are inputs or named twice are copies", () => {
    const unit = buildUnit([[8]], (u, x) => {
      const y = u.unary("neg", x);
      return [y, x, y];
    });
    expect(computations(unit)).toEqual([1, 0, 0]);
    expect(loads(unit)).toEqual([1, 1, 1]);
  });
});

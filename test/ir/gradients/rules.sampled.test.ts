/** Every rule of reverse mode against central differences on the oracle. fast-check prints the seed of a failure. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  add,
  amax,
  gelu,
  layerNorm,
  linear,
  matmul,
  mul,
  permute,
  reshape,
  rmsNorm,
  select,
  softmax,
} from "../../../src/ir/api/ops.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { gradients } from "../../../src/ir/api/gradients.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { apply } from "../../../src/ir/api/ops/apply.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import { binaryVjps, reductionVjps, unaryVjps } from "../../../src/ir/gradients/functions.ts";
import { vjps } from "../../../src/ir/gradients/rules.ts";
import { call } from "../../../src/ir/ops/call.ts";
import { at, keysOf } from "../../../src/support/invariant.ts";
import { draws } from "../../support/suite.ts";
import { differences, type DifferencesCase } from "./finite-differences.ts";
import { kindCases } from "./rule-cases.ts";

/** Away from kinks and poles at 0, 1 and -1. */
const positive = (x: number): number => 0.6 + 0.2 * x;
const negative = (x: number): number => -positive(x);

function check(difference: DifferencesCase, settings = draws({ quick: 1, long: 15 })): void {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const { analytic, numeric, tolerance } = differences(difference, seed);
      expect(Math.abs(analytic - numeric), `${analytic} and ${numeric}`).toBeLessThanOrEqual(tolerance);
    }),
    settings,
  );
}

const place = call("a rule");

describe("unary functions", () => {
  const rows = keysOf(unaryVjps).filter((op) => unaryVjps[op] !== null);
  it.each(rows)("%s", (op) => {
    const build = (x: TensorView): TensorView => apply({ kind: "Unary", op }, [x], place);
    check({ build, shapes: [[3, 2]], element: positive });
    const { numeric } = differences({ build, shapes: [[3, 2]], element: negative }, 1);
    if (!Number.isNaN(numeric)) check({ build, shapes: [[3, 2]], element: negative });
  });
});

describe("binary functions", () => {
  const rows = keysOf(binaryVjps).filter((op) => at(binaryVjps[op], 0) !== null);
  it.each(rows)("%s", (op) => {
    const build = (a: TensorView, b: TensorView): TensorView => apply({ kind: "Binary", op }, [a, b], place);
    check({ build, shapes: [[3, 2], [3, 2]], element: positive }); // prettier-ignore
    check({ build, shapes: [[3, 1], [1, 2]], element: positive }); // prettier-ignore
    for (const position of [0, 1] as const) {
      const scalar = { position, text: "1.5" };
      const withNumber = (x: TensorView): TensorView => apply({ kind: "Binary", op, scalar }, [x], place);
      check({ build: withNumber, shapes: [[3, 2]], element: positive });
    }
  });
});

describe("reductions", () => {
  const rows = keysOf(reductionVjps).filter((op) => reductionVjps[op] !== null);
  it.each(rows)("%s", (op) => {
    for (const axes of [[0], [1, 2], [0, 1, 2]]) {
      const build = (x: TensorView): TensorView => apply({ kind: "Reduction", op, axes }, [x], place);
      check({ build, shapes: [[2, 3, 2]], element: positive });
    }
    const rows = (x: TensorView): TensorView => apply({ kind: "Reduction", op, axes: [1] }, [x], place);
    check({ build: rows, shapes: [[2, 3]], symbolic: true });
  });

  it("shares the gradient of amax among equal elements, infinite ones too", () => {
    const f = new Fusion();
    const [x, g] = [f.input([2, 3], "double"), f.input([2], "double")];
    const [gradient] = gradients(f, { of: [amax(x, [1])], cotangents: [g], wrt: [x] });
    f.output(gradient ?? x);
    const values = [[[Infinity, 0, Infinity], [1, 3, 2]], [4, 6]].map((each) => Tensor.from(each, "double")); // prettier-ignore
    const [result] = evaluateFusion(f.data(), values).outputs;
    expect(result && Tensor.toArray(result)).toEqual([[2, 0, 2], [0, 6, 0]]); // prettier-ignore
  });

  it.each([1, 2, 3])("prod of a row with zeros, each the %ith element or a multiple", (period) => {
    let position = 0;
    const element = (x: number): number => (position++ % 4 < period - 1 ? 0 : x);
    check({ build: (x) => apply({ kind: "Reduction", op: "prod", axes: [1] }, [x], place), shapes: [[3, 4]], element });
  });
});

describe("kinds of ops", () => {
  it.each(keysOf(kindCases).flatMap((kind) => kindCases[kind].map(([build, ...shapes]) => ({ kind, build, shapes }))))(
    "$kind $shapes",
    ({ build, shapes }) => {
      // Squared, so that the cotangent depends on the value.
      const squared = (...inputs: TensorView[]): TensorView => {
        const y = build(...inputs);
        return mul(y, y);
      };
      check({ build: squared, shapes });
      if (!shapes.some((shape) => shape.includes(5))) check({ build, shapes, symbolic: true });
    },
  );

  it("has a case for each kind with a rule", () => {
    const apart = ["Unary", "Binary", "Reduction"];
    const without = keysOf(kindCases).filter((kind) => kindCases[kind].length === 0 && !apart.includes(kind));
    expect(without.filter((kind) => vjps[kind] !== null)).toEqual([]);
  });
});

describe("programs", () => {
  it("adds the contributions of all readers", () => {
    check({
      build: (x, w) => {
        const h = linear(x, w);
        return [add(mul(h, h), h), mul(add(x, x), 2)];
      },
      shapes: [
        [3, 2],
        [2, 2],
      ],
    });
  });

  it("differentiates a block: attention by its definition, a norm and an MLP", () => {
    const block = (x: TensorView, qkv: TensorView, out: TensorView, up: TensorView, down: TensorView): TensorView => {
      const packed = reshape(linear(rmsNorm(x), qkv), [3, 3, 2, 2]);
      const [q, k, v] = [0, 1, 2].map((i) => permute(select(packed, 1, i), [1, 0, 2]));
      const scores = matmul(q ?? x, permute(k ?? x, [0, 2, 1]));
      const attended = permute(matmul(softmax(mul(scores, 0.7), 2), v ?? x), [1, 0, 2]);
      const r = add(x, linear(reshape(attended, [3, 4]), out));
      return add(r, linear(gelu(linear(layerNorm(r), up)), down));
    };
    check({ build: block, shapes: [[3, 4], [12, 4], [4, 4], [8, 4], [4, 8]] }); // prettier-ignore
  });

  it("catches a wrong rule", () => {
    // d(x^2) = 2 x: the sum of x and x without the factor of the other reader.
    const { analytic, numeric, tolerance } = differences({ build: (x) => mul(x, x), shapes: [[3]] }, 1);
    expect(Math.abs(analytic / 2 - numeric)).toBeGreaterThan(tolerance);
  });
});

/** Compositions: their values, and their closed forms against central differences and against the rules of their ops. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import {
  cast,
  crossEntropy,
  layerNorm,
  logSoftmax,
  logsumexp,
  mean,
  mul,
  rmsNorm,
  rope,
  select,
  softmax,
  varMean,
} from "../../../src/ir/api/ops.ts";
import { differentiate } from "../../../src/ir/gradients/differentiate.ts";
import { type NestedValues, Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { draws } from "../../support/suite.ts";
import { diagnosticOf } from "../expect-diagnostic.ts";
import { type Build, compositionCases } from "./composition-cases.ts";
import { differences } from "./finite-differences.ts";

describe.each(compositionCases.map(([name, build, ...shapes]) => ({ name, build, shapes })))(
  "$name",
  ({ build, shapes }) => {
    const squared: Build = (...inputs) => {
      const built = build(...inputs);
      return ("id" in built ? [built] : built).map((y) => mul(y, y));
    };

    it("has the gradients of central differences", () => {
      fc.assert(
        fc.property(fc.integer(), fc.boolean(), (seed, symbolic) => {
          const { analytic, numeric, tolerance } = differences({ build: squared, shapes, symbolic }, seed);
          expect(Math.abs(analytic - numeric), `${analytic} and ${numeric}`).toBeLessThanOrEqual(tolerance);
        }),
        draws({ quick: 2, long: 30 }),
      );
    });

    it("has those of its ops, of which it needs no more", () => {
      const f = new Fusion();
      const inputs = shapes.map((shape) => f.input(shape, "double"));
      const built = build(...inputs);
      const of = "id" in built ? [built] : built;
      const cotangents = of.map((y) => f.input(y.extents, "double").id);
      const { markers = [], ...unmarked } = f.data();
      const results = [f.data(), unmarked].map((data) => {
        const request = {
          partial: [],
          allowUnused: false,
          of: of.map(({ id }) => id),
          cotangents,
          wrt: inputs.map(({ id }) => id),
        };
        const { data: joint, gradients } = differentiate(data, request, { kind: "call", text: "gradients" });
        const outputs = gradients.flatMap((id) => (id === null ? [] : [id]));
        return { ops: joint.ops.length, values: evaluateFusion({ ...joint, outputs }, inputValues(f)) };
      });
      const [closed, chain] = [at(results, 0), at(results, 1)];
      // Computed again: silu(gate), and the mask of a dropout.
      const again = markers.reduce(
        (count, { name }) => count + (name === "swiglu" ? 1 : name === "dropout" ? 4 : 0),
        0,
      );
      if (markers.length > 0) expect(closed.ops).toBeLessThanOrEqual(chain.ops + again);
      closed.values.outputs.forEach(({ data }, i) => {
        const other = at(chain.values.outputs, i).data;
        data.forEach((element: number | bigint, j: number) => {
          expect(Number(element)).toBeCloseTo(Number(other[j]), 12);
        });
      });
    });
  },
);

function inputValues(f: Fusion): readonly Tensor[] {
  const shapes = f.inputs.map(({ extents }) =>
    extents.map((extent) => (extent.kind === "constant" ? extent.value : 0)),
  );
  return randomInputs(
    shapes.map((shape) => ({ dtype: "double", shape })),
    createRandom(7),
    "uniform",
  );
}

describe("values", () => {
  const evaluated = (build: Build, ...inputs: readonly NestedValues[]): NestedValues => {
    const f = new Fusion();
    const tensors = inputs.map((values) => Tensor.from(values, "double"));
    const built = build(...tensors.map(({ shape }) => f.input(shape, "double")));
    f.output("id" in built ? built : at(built, 0));
    return Tensor.toArray(at(evaluateFusion(f.data(), tensors).outputs, 0));
  };

  it("of rows worked out by hand", () => {
    expect(evaluated((x) => mean(x, [1]), [[1, 2, 6]])).toEqual([3]);
    expect(evaluated((x) => varMean(x, [1]).variance, [[1, 2, 6]])).toEqual([7]);
    expect(evaluated((x) => varMean(x, [1], 0).variance, [[1, 1, 4, 4]])).toEqual([2.25]);
    expect(evaluated((x) => softmax(x, -1), [[0, 0, -Infinity, 0]])).toEqual([[1 / 3, 1 / 3, 0, 1 / 3]]);
    expect(evaluated((x) => logSoftmax(x, 1), [[1000, 1000]])).toEqual([[-Math.LN2, -Math.LN2]]);
    const rows: NestedValues = [
      [1000, 1000],
      [-Infinity, -Infinity],
      [Infinity, 0],
      [NaN, 0],
    ];
    expect(evaluated((x) => logsumexp(x, [1]), rows)).toEqual([1000 + Math.LN2, -Infinity, Infinity, NaN]);
    const zeros: NestedValues = [[[0, 5, 0, 0], [3, 0, 0, 0]]]; // prettier-ignore
    const losses = [Math.log(3 + Math.exp(5)), Math.log(3 + Math.exp(3)) - 0];
    expect(evaluated((x) => crossEntropy(x, cast(select(x, 2, 0), "int")), zeros)).toBeCloseTo(
      ((losses[0] ?? 0) + (losses[1] ?? 0)) / 2,
    );
    expect(evaluated((x) => softmax(x, 1), [[1000, 1000]])).toEqual([[0.5, 0.5]]);
    expect(evaluated((x) => softmax(x, 1), [[-Infinity, -Infinity]])).toEqual([[NaN, NaN]]);
    expect(evaluated((x, w, b) => layerNorm(x, w, b, 0), [[1, 3]], [2, 2], [0, 1])).toEqual([[-2, 3]]);
    expect(evaluated((x, w) => rmsNorm(x, w, 0), [[3, 3]], [1, 2])).toEqual([[1, 2]]);
    expect(evaluated((x, c, s) => rope(x, c, s), [[1, 2, 3, 4]], [0, 1], [1, 0])).toEqual([[-3, 2, 1, 4]]);
  });
});

describe("dtypes", () => {
  it("computes 16-bit floats in float and rounds once", () => {
    const f = new Fusion();
    const x = f.input([4, 8], "bfloat16");
    const y = layerNorm(x);
    expect(y.dtype).toBe("bfloat16");
    const narrow = f.data().tensors.filter(({ dtype }) => dtype === "bfloat16");
    expect(narrow.map(({ id }) => id)).toEqual([x.id, y.id]);
  });

  it("refuses integers, and weights of another length", () => {
    const f = new Fusion();
    const x = f.input([4, 8]);
    expect(diagnosticOf(() => softmax(f.input([4], "int"), 0)).code).toBe("dtype-mismatch");
    expect(diagnosticOf(() => layerNorm(x, f.input([4]))).code).toBe("shape-mismatch");
    expect(diagnosticOf(() => rmsNorm(x, f.input([4, 8]))).code).toBe("shape-mismatch");
    expect(diagnosticOf(() => crossEntropy(x, f.input([4]))).code).toBe("dtype-mismatch");
    expect(diagnosticOf(() => crossEntropy(x, f.input([8], "int"))).code).toBe("shape-mismatch");
    expect(diagnosticOf(() => softmax(x, 2)).code).toBe("axis-out-of-range");
    expect(diagnosticOf(() => rope(x, f.input([8]), f.input([8]))).code).toBe("shape-mismatch");
    const odd = f.input([4, 7]);
    expect(diagnosticOf(() => rope(odd, f.input([4]), f.input([4]))).help).toBe("give the heads an even size");
    expect(diagnosticOf(() => rope(x, f.input([4]), f.input([4, 2]))).found).toBe("T0[4, 8], T12[4, 2]");
  });
});

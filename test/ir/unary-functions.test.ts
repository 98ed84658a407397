/**
 * Every row of src/ir/ops/functions/unary.ts, from the API to the text of kernels: values at edges, the oracle's bounds
 * against exact results nearby, and both directions of dumps. Kernels on the CPU run them in
 * test/kernels/elementwise.test.ts.
 */
import { Fusion, HostProgramBuilder, parse, print, Tensor, type TensorView } from "braid";
import { describe, expect, it } from "vitest";
import { expressionText } from "../../src/backends/cuda/kernels/text/expression-text.ts";
import * as api from "../../src/ir/api/ops.ts";
import { compileUnary } from "../kernels/compiled-expressions.ts";
import { unaryExpression } from "../../src/ir/ops/functions/expressions.ts";
import { unaryFunctions } from "../../src/ir/ops/functions/unary.ts";
import type { UnaryOpType } from "../../src/ir/ops/op.ts";
import { hasLaneForm } from "../../src/kernels/simd/lane-expressions.ts";
import { accumulatorOf, dtypes } from "../../src/numerics/dtype.ts";
import { normalCdf } from "../../src/numerics/scalar/normal-cdf.ts";
import { unaryDefinitions } from "../../src/oracle/definitions.ts";
import { fromTensor } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { keysOf } from "../../src/support/keys-of.ts";
import { createRandom } from "../../src/support/random.ts";
import { toDType } from "../kernels/reference.ts";

interface Case {
  /** In double, as exact as JavaScript is. */
  readonly exact: (x: number) => number;
  /** The results for 0, -0, Infinity, -Infinity. */
  readonly edges: readonly [number, number, number, number];
  /** Inputs with exactly known results: where the function saturates, leaves its domain, or is simple. */
  readonly known?: readonly (readonly [x: number, y: number])[];
  /** In CUDA, for float. */
  readonly cuda: string;
  /** Whether it runs in WebAssembly SIMD. */
  readonly lanes: boolean;
}

const cases: { readonly [Op in UnaryOpType]: Case } = {
  neg: { exact: (x) => -x, edges: [-0, 0, -Infinity, Infinity], cuda: "(-x)", lanes: true },
  abs: { exact: Math.abs, edges: [0, 0, Infinity, Infinity], cuda: "(fabsf(x))", lanes: true },
  relu: { exact: (x) => Math.max(x, 0), edges: [0, 0, Infinity, 0], cuda: "(braid_max(x, 0.0f))", lanes: true },
  gelu: {
    exact: (x) => x * normalCdf(x),
    edges: [0, -0, Infinity, NaN],
    known: [[40, 40]],
    cuda: "(x * (normcdff(x)))",
    lanes: false,
  },
  exp: {
    exact: Math.exp,
    edges: [1, 1, Infinity, 0],
    known: [
      [1000, Infinity],
      [-1000, 0],
    ],
    cuda: "(expf(x))",
    lanes: false,
  },
  tanh: {
    exact: Math.tanh,
    edges: [0, -0, 1, -1],
    known: [
      [30, 1],
      [-30, -1],
    ],
    cuda: "(tanhf(x))",
    lanes: false,
  },
  rsqrt: {
    exact: (x) => 1 / Math.sqrt(x),
    edges: [Infinity, -Infinity, 0, NaN],
    known: [
      [4, 0.5],
      [2 ** -24, 4096],
      [-1, NaN],
    ],
    cuda: "(1.0f / (sqrtf(x)))",
    lanes: true,
  },
};

/** Each row is exported by the API under its name. */
const functions: { readonly [Op in UnaryOpType]: (x: TensorView) => TensorView } = api;

describe.each(keysOf(cases))("%s", (op) => {
  const { exact, edges, known = [], cuda, lanes } = cases[op];
  const { operand, alsoRead } = unaryFunctions[op];
  const { error } = unaryDefinitions[op];

  it.each(["double", "float", "half", "bfloat16"] as const)("of edges in %s", (dtype) => {
    const apply = compileUnary(op, dtype);
    expect([0, -0, Infinity, -Infinity].map(apply)).toEqual(edges);
    expect(apply(NaN)).toBeNaN();
    for (const [x, y] of known) expect(apply(x), `of ${x}`).toBe(y);
  });

  it.each(["double", "float", "half", "bfloat16"] as const)("in %s may be off as its row says", (dtype) => {
    const accumulator = dtypes[accumulatorOf[dtype]].epsilon;
    const values = [-3, -0.7, -0.01, 0.02, 0.5, 1.25, 6].map((x) => toDType(dtype, x));
    const f = new Fusion();
    f.output(functions[op](f.input([values.length], dtype)));
    const { outputs, bounds } = evaluateFusion(f.data(), [Tensor.from(values, dtype)]);
    for (const [i, x] of values.entries()) {
      const y = exact(x);
      const bound = at(at(bounds, 0), i);
      if (error.roundings === 0) expect(bound).toBe(0);
      if (!Number.isFinite(y)) continue;
      const expected = Number(fromTensor(at(outputs, 0)).elements[i]);
      const off = error.roundings * accumulator * error.magnitude(x, Math.abs(y));
      for (const near of [y - off, y + off]) {
        // `exact` and the oracle are two statements: each may be off by some units of double.
        expect(Math.abs(toDType(dtype, near) - expected), `of ${x}`).toBeLessThanOrEqual(
          bound + 2 ** -49 * Math.abs(y),
        );
      }
      expect(bound).toBeLessThan(8 * (dtypes[dtype].epsilon * Math.abs(y) + off) + Number.MIN_VALUE);
    }
  });

  it("moves no further than the oracle's bound says", () => {
    const random = createRandom(11);
    for (let i = 0; i < 3000; i++) {
      const x = (random.float() - 0.5) * 2 ** (random.integer(12) - 4);
      const by = Math.abs(x) * 2 ** -random.integer(12) + random.float() * 2 ** -random.integer(20);
      const y = exact(x);
      if (!Number.isFinite(y)) continue;
      const bound = error.spread(by, x, Math.abs(y)) * (1 + 1e-9) + 1e-12;
      for (const near of [x - by, x + by]) {
        const moved = Math.abs(exact(near) - y);
        expect(moved <= bound || bound === Infinity, `from ${x} to ${near}: ${moved}, not ${bound}`).toBe(true);
      }
    }
  });

  it("prints as a statement, and is read back by all of its names", () => {
    const h = new HostProgramBuilder();
    h.output(h.unary(op, h.input([4, 3])));
    const text = print(h.build());
    expect(text).toContain(`= ${op}(T0_g_float[iS0{4}, iS1{3}]);`);
    for (const name of [op, ...alsoRead]) {
      expect(print(parse(text.replace(`= ${op}(`, `= ${name}(`))), name).toBe(text);
    }
  });

  it("casts integers only where it is a function of floats", () => {
    const f = new Fusion();
    expect(functions[op](f.input([2], "int")).dtype).toBe(operand === "float" ? "float" : "int");
    expect(functions[op](f.input([2], "half")).dtype).toBe("half");
    expect(() => functions[op](f.input([2], "bool"))).toThrow("arithmetic on bool");
  });

  it("has its texts in kernels", () => {
    const expression = unaryExpression(op, "float");
    expect(expressionText(expression, ["x"])).toBe(cuda);
    expect(hasLaneForm(expression)).toBe(lanes);
  });
});

/**
 * Every row of src/ir/ops/functions/unary.ts, from the API to the text of kernels: values at edges, the oracle's bounds
 * against exact results nearby, and both directions of dumps. Kernels on the CPU run them in
 * test/kernels/elementwise.test.ts.
 */
import { Fusion, HostProgramBuilder, parse, print, Tensor } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { expressionText } from "../../src/backends/cuda/kernels/text/expression-text.ts";
import { gelu, reciprocal } from "../../src/ir/api/ops.ts";
import { unaryExpression } from "../../src/ir/ops/functions/expressions.ts";
import { unaryFunctions } from "../../src/ir/ops/functions/unary.ts";
import type { UnaryOpType } from "../../src/ir/ops/op.ts";
import { hasLaneForm } from "../../src/kernels/simd/lane-expressions.ts";
import { accumulatorOf, dtypes } from "../../src/numerics/dtype.ts";
import { erf, nearest, normalCdf } from "../../src/numerics/scalar/emit-js.ts";
import { unaryDefinitions } from "../../src/oracle/definitions.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { fromTensor } from "../../src/oracle/value.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { compileUnary } from "../kernels/compiled-expressions.ts";
import { toDType } from "../kernels/reference.ts";
import { unaryCalls as functions } from "../support/unary-calls.ts";

interface Case {
  /** In double, as exact as JavaScript is. */
  readonly exact: (x: number) => number;
  /** The results for 0, -0, Infinity, -Infinity. */
  readonly edges: readonly [number, number, number, number];
  /** Inputs with exactly known results: where the function saturates, leaves its domain, or is simple. */
  readonly known?: readonly (readonly [x: number, y: number])[];
  /** In CUDA, for float. */
  readonly cuda: string;
  /** Whether it runs in WebAssembly SIMD, in float. */
  readonly lanes: boolean;
}

const cases: { readonly [Op in UnaryOpType]: Case } = {
  neg: { exact: (x) => -x, edges: [-0, 0, -Infinity, Infinity], cuda: "(-x)", lanes: true },
  abs: { exact: Math.abs, edges: [0, 0, Infinity, Infinity], cuda: "(fabsf(x))", lanes: true },
  relu: { exact: (x) => Math.max(x, 0), edges: [0, 0, Infinity, 0], cuda: "(braid_max(x, 0.0f))", lanes: true },
  sign: {
    exact: Math.sign,
    edges: [0, 0, 1, -1],
    cuda: "(x > 0.0f ? 1.0f : (x < 0.0f ? (-1.0f) : (x == 0.0f ? 0.0f : x)))",
    lanes: true,
  },
  logicalNot: { exact: (x) => 1 - x, edges: [1, 1, NaN, NaN], cuda: "(1 - x)", lanes: true },
  floor: {
    exact: Math.floor,
    edges: [0, -0, Infinity, -Infinity],
    known: [
      [-0.5, -1],
      [2.5, 2],
    ],
    cuda: "(floorf(x))",
    lanes: true,
  },
  ceil: {
    exact: Math.ceil,
    edges: [0, -0, Infinity, -Infinity],
    known: [
      [-0.5, -0],
      [2.5, 3],
    ],
    cuda: "(ceilf(x))",
    lanes: true,
  },
  trunc: {
    exact: Math.trunc,
    edges: [0, -0, Infinity, -Infinity],
    known: [
      [-0.5, -0],
      [-2.5, -2],
    ],
    cuda: "(truncf(x))",
    lanes: true,
  },
  round: {
    exact: nearest,
    edges: [0, -0, Infinity, -Infinity],
    known: [
      [-0.5, -0],
      [0.5, 0],
      [1.5, 2],
      [2.5, 2],
      [-3.5, -4],
    ],
    cuda: "(rintf(x))",
    lanes: true,
  },
  sqrt: {
    exact: Math.sqrt,
    edges: [0, -0, Infinity, NaN],
    known: [
      [9, 3],
      [-1, NaN],
    ],
    cuda: "(sqrtf(x))",
    lanes: true,
  },
  gelu: {
    exact: (x) => x * normalCdf(x),
    edges: [0, -0, Infinity, NaN],
    known: [[40, 40]],
    cuda: "(x * (normcdff(x)))",
    lanes: true,
  },
  exp: {
    exact: Math.exp,
    edges: [1, 1, Infinity, 0],
    known: [
      [1000, Infinity],
      [-1000, 0],
    ],
    cuda: "(expf(x))",
    lanes: true,
  },
  exp2: {
    exact: (x) => 2 ** x,
    edges: [1, 1, Infinity, 0],
    known: [
      [3, 8],
      [-2000, 0],
    ],
    cuda: "(exp2f(x))",
    lanes: true,
  },
  expm1: { exact: Math.expm1, edges: [0, -0, Infinity, -1], known: [[-100, -1]], cuda: "(expm1f(x))", lanes: true },
  log: {
    exact: Math.log,
    edges: [-Infinity, -Infinity, Infinity, NaN],
    known: [
      [1, 0],
      [-1, NaN],
    ],
    cuda: "(logf(x))",
    lanes: true,
  },
  log2: {
    exact: Math.log2,
    edges: [-Infinity, -Infinity, Infinity, NaN],
    known: [
      [8, 3],
      [-1, NaN],
    ],
    cuda: "(log2f(x))",
    lanes: false,
  },
  log1p: {
    exact: Math.log1p,
    edges: [0, -0, Infinity, NaN],
    known: [
      [-1, -Infinity],
      [-2, NaN],
    ],
    cuda: "(log1pf(x))",
    lanes: true,
  },
  sin: { exact: Math.sin, edges: [0, -0, NaN, NaN], cuda: "(sinf(x))", lanes: false },
  cos: { exact: Math.cos, edges: [1, 1, NaN, NaN], cuda: "(cosf(x))", lanes: false },
  tan: { exact: Math.tan, edges: [0, -0, NaN, NaN], cuda: "(tanf(x))", lanes: false },
  asin: { exact: Math.asin, edges: [0, -0, NaN, NaN], known: [[2, NaN]], cuda: "(asinf(x))", lanes: false },
  acos: {
    exact: Math.acos,
    edges: [Math.PI / 2, Math.PI / 2, NaN, NaN],
    known: [[1, 0]],
    cuda: "(acosf(x))",
    lanes: false,
  },
  atan: { exact: Math.atan, edges: [0, -0, Math.PI / 2, -Math.PI / 2], cuda: "(atanf(x))", lanes: false },
  sinh: { exact: Math.sinh, edges: [0, -0, Infinity, -Infinity], cuda: "(sinhf(x))", lanes: false },
  cosh: { exact: Math.cosh, edges: [1, 1, Infinity, Infinity], cuda: "(coshf(x))", lanes: false },
  erf: {
    exact: erf,
    edges: [0, -0, 1, -1],
    known: [
      [6, 1],
      [-6, -1],
    ],
    cuda: "(erff(x))",
    lanes: true,
  },
  normalCdf: { exact: normalCdf, edges: [0.5, 0.5, 1, 0], known: [[40, 1]], cuda: "(normcdff(x))", lanes: true },
  sigmoid: {
    exact: (x) => 1 / (1 + Math.exp(-x)),
    edges: [0.5, 0.5, 1, 0],
    known: [[40, 1]],
    cuda: "((x < 0.0f ? (expf((-(fabsf(x))))) : 1.0f) / (1.0f + (expf((-(fabsf(x)))))))",
    lanes: true,
  },
  silu: {
    exact: (x) => x / (1 + Math.exp(-x)),
    edges: [0, -0, Infinity, NaN],
    known: [[40, 40]],
    cuda: "((x < 0.0f ? ((x * (expf((-(0.5f * (fabsf(x))))))) * (expf((-(0.5f * (fabsf(x))))))) : x) / (1.0f + ((expf((-(0.5f * (fabsf(x)))))) * (expf((-(0.5f * (fabsf(x)))))))))",
    lanes: true,
  },
  softplus: {
    exact: (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))),
    edges: [Math.LN2, Math.LN2, Infinity, 0],
    known: [
      [1000, 1000],
      [-1000, 0],
    ],
    cuda: "((braid_max(x, 0.0f)) + (log1pf((expf((-(fabsf(x))))))))",
    lanes: true,
  },
  geluTanh: {
    exact: (x) => x / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
    edges: [0, -0, Infinity, NaN],
    known: [[40, 40]],
    cuda: "(x * (((1.5957691216057308f * (x + (0.044715f * ((x * x) * x)))) < 0.0f ? (expf((-(fabsf((1.5957691216057308f * (x + (0.044715f * ((x * x) * x))))))))) : 1.0f) / (1.0f + (expf((-(fabsf((1.5957691216057308f * (x + (0.044715f * ((x * x) * x))))))))))))",
    lanes: true,
  },
  tanh: {
    exact: Math.tanh,
    edges: [0, -0, 1, -1],
    known: [
      [30, 1],
      [-30, -1],
    ],
    cuda: "(tanhf(x))",
    lanes: true,
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

describe.each(keysOf(cases).filter((op) => unaryFunctions[op].operand !== "bool"))("%s", (op) => {
  const { exact, edges, known = [], cuda, lanes } = cases[op];
  const { operand, printed = op, alsoRead } = unaryFunctions[op];
  const { error } = unaryDefinitions[op];

  it.each(["double", "float", "half", "bfloat16"] as const)("of edges in %s", (dtype) => {
    const apply = compileUnary(op, dtype);
    expect([0, -0, Infinity, -Infinity].map(apply)).toEqual(edges.map((y) => toDType(dtype, y)));
    expect(apply(NaN)).toBeNaN();
    for (const [x, y] of known) expect(apply(x), `of ${x}`).toBe(y);
  });

  it.each(["double", "float", "half", "bfloat16"] as const)("in %s may be off as its row says", (dtype) => {
    const accumulator = dtypes[accumulatorOf(dtype)].epsilon;
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
    const further: string[] = [];
    for (let i = 0; i < 3000; i++) {
      const x = (random.float() - 0.5) * 2 ** (random.integer(12) - 4);
      const by = Math.abs(x) * 2 ** -random.integer(12) + random.float() * 2 ** -random.integer(20);
      const y = exact(x);
      if (!Number.isFinite(y)) continue;
      const bound = error.spread(by, x, Math.abs(y)) * (1 + 1e-9) + 1e-12;
      for (const near of [x - by, x + by]) {
        const moved = Math.abs(exact(near) - y);
        if (!(moved <= bound || bound === Infinity)) further.push(`from ${x} to ${near}: ${moved}, not ${bound}`);
      }
    }
    expect(further).toEqual([]);
  });

  it("prints as a statement, and is read back by all of its names", () => {
    const h = new HostProgramBuilder();
    h.output(h.unary(op, h.input([4, 3])));
    const text = print(h.build());
    expect(text).toContain(`= ${printed}(T0_g_float[iS0{4}, iS1{3}]);`);
    for (const name of [printed, ...alsoRead]) {
      expect(print(parse(text.replace(`= ${printed}(`, `= ${name}(`))), name).toBe(text);
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

describe("logicalNot", () => {
  it("is of bool alone, and prints as nvFuser's names do", () => {
    expect([0, 1].map(compileUnary("logicalNot", "bool"))).toEqual([1, 0]);
    const f = new Fusion();
    f.output(functions.logicalNot(f.input([2], "bool")));
    const { outputs, bounds } = evaluateFusion(f.data(), [Tensor.from([0, 1], "bool")]);
    expect(Tensor.toArray(at(outputs, 0))).toEqual([true, false]);
    expect([...at(bounds, 0)]).toEqual([0, 0]);
    expect(() => functions.logicalNot(f.input([2], "int"))).toThrow("logicalNot of a tensor that is not bool");
    const h = new HostProgramBuilder();
    h.output(h.unary("logicalNot", h.input([4], { dtype: "bool" })));
    const text = print(h.build());
    for (const spelled of ["logical_not(T0_g_bool[iS0{4}])", "logicalNot(T0_g_bool[iS0{4}])", "!T0_g_bool[iS0{4}]"]) {
      expect(print(parse(text.replace("logical_not(T0_g_bool[iS0{4}])", spelled)))).toBe(text);
    }
  });
});

it("gelu has two forms", () => {
  const f = new Fusion();
  const forms = ["none", "tanh"] as const;
  for (const form of forms) gelu(f.input([2]), form);
  expect(f.data().ops.map((op) => "op" in op && op.op)).toEqual(["gelu", "geluTanh"]);
  // @ts-expect-error -- no such form
  expect(() => gelu(f.input([2]), "fast")).toThrow("a form of gelu");
});

it("reciprocal divides 1, of integers in float", () => {
  const f = new Fusion();
  const [x, n] = [f.input([3]), f.input([2], "int64")];
  for (const y of [reciprocal(x), reciprocal(n)]) f.output(y);
  const { outputs } = evaluateFusion(f.data(), [Tensor.from([4, 0, -0]), Tensor.from([2n, 0n], "int64")]);
  expect(outputs.map((output) => Tensor.toArray(output))).toEqual([
    [0.25, Infinity, -Infinity],
    [0.5, Infinity],
  ]);
});

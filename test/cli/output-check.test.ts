import {
  argsort,
  add,
  cast,
  DeviceMesh,
  div,
  exp,
  Fusion,
  log,
  matmul,
  mean,
  mul,
  permute,
  relu,
  set,
  softmax,
  sub,
  sum,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { exitStatus, statusOf } from "../../src/cli/exit-status.ts";
import { checkOutputs, outputResults, type Suspect, withSpecialChecks } from "../../src/cli/run/outputs.ts";
import type { OutputCopy } from "../../src/executor/output-copies.ts";
import { emptyTensor, Tensor, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { areBoundsWide, compare, compareNorms } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";

function floats(shape: readonly number[], values: readonly number[]): Tensor {
  return { dtype: "float", shape, data: Float32Array.from(values) };
}

/** An output of which there is one copy. */
const whole = (tensor: Tensor): readonly OutputCopy[] => [{ tensor, ranks: [0] }];

describe("checkOutputs", () => {
  const f = new Fusion();
  const a = f.input([2, 3], "float");
  const outputs = [set(a), mul(a, a)];
  for (const output of outputs) f.output(output);
  for (const tv of [a, ...outputs]) tv.setDeviceMesh(DeviceMesh.range(1));
  const input = floats([2, 3], [1, 2, 3, 4, 5, 6]);
  const square = floats([2, 3], [1, 4, 9, 16, 25, 36]);

  it("passes what is right", () => {
    const checked = checkOutputs(f.data(), [input], new Map(), [whole(input), whole(square)], "braid");
    expect(checked.map(({ check, failure }) => [check.ok, check.largestError, failure])).toEqual([
      [true, 0, null],
      [true, 0, null],
    ]);
  });

  it("passes an output without elements, and says that there was nothing to compare", () => {
    const empty = new Fusion();
    const x = empty.input([0, 3], "float");
    empty.output(mul(x, x));
    const none = floats([0, 3], []);
    const [checked] = checkOutputs(empty.data(), [none], new Map(), [whole(none)], "braid");
    expect(checked).toMatchObject({ check: { ok: true, elements: 0, trivial: "empty" }, failure: null });
  });

  it.each([
    [26, "26 (off by 1.00)"],
    [NaN, "NaN (off by Infinity)"],
    [Infinity, "Infinity (off by Infinity)"],
  ])("names the element that is wrong: %d", (wrong, found) => {
    const bad = floats([2, 3], [1, 4, 9, 16, wrong, 36]);
    const [good, failed] = checkOutputs(f.data(), [input], new Map(), [whole(input), whole(bad)], "braid");
    expect(good?.check.ok).toBe(true);
    expect(failed?.check.ok).toBe(false);
    expect(failed?.check.partOfBound).toBeGreaterThan(1);
    expect(failed?.failure).toMatchObject({ code: "check-failed", found });
    expect(failed?.failure?.place).toMatchObject({ text: expect.stringContaining("element [1, 1]") as string });
  });

  it("looks at every copy, and names the device of one that is wrong", () => {
    const bad = floats([2, 3], [1, 4, 9, 16, 26, 36]);
    const copies = [
      { tensor: square, ranks: [0] },
      { tensor: bad, ranks: [1] },
    ];
    const [, failed] = checkOutputs(f.data(), [input], new Map(), [whole(input), copies], "unverified");
    expect(failed?.failure?.place).toMatchObject({
      text: expect.stringContaining("of rank 1, element [1, 1]") as string,
    });
    expect(failed?.failure?.help).toContain("braid verify");
  });
});

it("blames Braid only for what Braid lowered", () => {
  const f = new Fusion();
  f.output(set(f.input([1], "float")));
  const helpOf = (suspect: Suspect): string | undefined => {
    const [only] = checkOutputs(f.data(), [floats([1], [1])], new Map(), [whole(floats([1], [2]))], suspect);
    return only?.failure?.help;
  };
  expect(helpOf("braid")).toContain("a bug in Braid");
  expect(helpOf("program")).not.toContain("bug");
  expect(helpOf("program")).toContain("the host program or its reference is wrong");
});

describe("what has no error bound", () => {
  const half = (values: readonly number[]): Tensor => Tensor.from([...values], "half");
  function checked(values: readonly number[], f: Fusion, inputs: readonly Tensor[]) {
    const [only] = checkOutputs(f.data(), inputs, new Map(), [whole(half(values))], "braid");
    return only;
  }

  it("is counted and told with the reason, beside what was compared", () => {
    const f = new Fusion();
    f.output(cast(sum(f.input([2, 3], "float"), [1]), "half"));
    // 65519.999 may round either way.
    const inputs = [
      Tensor.from([
        [65519.9, 0.09, 0.009],
        [1, 2, 3],
      ]),
    ];
    const result = checked([60000, 6], f, inputs);
    expect(result?.check).toMatchObject({ ok: true, elements: 2, compared: 1 });
    expect(result?.check.notCompared).toBe("T2 (cast of T1): the result may overflow");
    expect(checked([60000, 7], f, inputs)?.failure?.code).toBe("check-failed");
  });

  it("is no pass where nothing was compared", () => {
    const f = new Fusion();
    const s = sum(f.input([2, 2], "float"), [1]);
    f.output(div(s, s));
    const inputs = [
      Tensor.from([
        [1, -1],
        [2, -2],
      ]),
    ];
    const [result] = checkOutputs(f.data(), inputs, new Map(), [whole(floats([2], [5, 5]))], "braid");
    expect(result?.check).toMatchObject({ ok: false, elements: 2, compared: 0 });
    expect(result?.failure?.code).toBe("not-checked");
    expect(result?.failure?.found).toContain("T2 (div of T1, T1): a divisor may be 0");
  });
});

describe("bounds that are too wide to say much", () => {
  /** A softmax of products of products. */
  const f = new Fusion();
  const shapes = [
    { dtype: "bfloat16", shape: [8, 64] },
    { dtype: "bfloat16", shape: [64, 64] },
  ] as const;
  const [x, w] = [f.input([8, 64], "bfloat16"), f.input([64, 64], "bfloat16")];
  const y = matmul(x, w);
  f.output(softmax(mul(matmul(y, permute(y, [1, 0])), 1 / 8), 1));
  const inputs = randomInputs(shapes, createRandom(3), "uniform");
  const { outputs, bounds } = evaluateFusion(f.data(), inputs);
  const right = outputs[0] ?? floats([], []);
  const checked = (tensor: Tensor, setting = {}) =>
    checkOutputs(f.data(), inputs, new Map(), [whole(tensor)], "braid", setting)[0];

  it("are not all there is: the output is compared as a whole", () => {
    expect(areBoundsWide(right, bounds[0] ?? new Float64Array())).toBe(true);
    const { check, failure } = checked(right) ?? {};
    expect([check?.ok, failure]).toEqual([true, null]);
    expect((check?.norm?.error ?? 0) * 4).toBeCloseTo(check?.norm?.limit ?? NaN, 12);
  });

  it("fail a result of half the size, and zeros", () => {
    for (const factor of [0.5, 0]) {
      const tensor = emptyTensor("bfloat16", right.shape);
      const [to, from] = [elementsOf(tensor.dtype, tensor.data), elementsOf(right.dtype, right.data)];
      for (let i = 0; i < from.length; i++) to.set(i, factor * Number(from.get(i)));
      expect(compare(tensor, right, bounds[0] ?? new Float64Array()).firstBad).toBeNull();
      expect(checked(tensor)?.failure).toMatchObject({
        code: "check-failed",
        message: "an output as a whole differs from the oracle",
      });
    }
  });

  it("are no bug where the program orders computed floats: rounding may choose others", () => {
    const g = new Fusion();
    const [a, b] = [g.input([8, 64], "bfloat16"), g.input([64, 64], "bfloat16")];
    const scores = matmul(a, b);
    const product = matmul(scores, permute(scores, [1, 0]));
    g.output(mul(softmax(mul(product, 1 / 8), 1), unsqueeze(cast(argsort(sum(product, [0]), 0), "bfloat16"), 0)));
    const zeros = whole(emptyTensor("bfloat16", right.shape));
    const [failed] = checkOutputs(g.data(), inputs, new Map(), [zeros], "braid");
    expect(failed?.failure).toMatchObject({ message: "an output as a whole differs from the oracle" });
    expect(failed?.failure?.help).toMatch(/^rounding may order nearly equal elements of T\d+ otherwise/u);
    expect(checked(emptyTensor("bfloat16", right.shape))?.failure?.help).toMatch(/^this is a bug in Braid/u);
  });

  it("say all there is to say about inputs with special values", () => {
    expect(checked(right, { special: true })?.check.norm).toBeUndefined();
  });

  it("are not those of one op, nor of integers", () => {
    const [tensor, exact] = [floats([2], [3, 4]), Tensor.from([3, 4], "int")];
    expect(areBoundsWide(tensor, Float64Array.of(0.3, 0.3))).toBe(false);
    expect(areBoundsWide(tensor, Float64Array.of(Infinity, 0.3))).toBe(false);
    expect(areBoundsWide(tensor, Float64Array.of(0.4, Infinity))).toBe(true);
    expect(areBoundsWide(exact, Float64Array.of(Infinity, Infinity))).toBe(false);
  });

  it("say nothing where the exact result is not finite", () => {
    const [nan, one] = [floats([1], [NaN]), floats([1], [1])];
    expect(compareNorms(one, one, nan)).toBeNull();
    expect(compareNorms(one, nan, one)).toBeNull();
    expect(compareNorms(nan, one, one)).toEqual({ error: Infinity, limit: 0, zerosPass: false });
  });
});

describe("what a result that was never computed would pass", () => {
  const numbers = (...values: readonly number[]): Tensor => floats([values.length], values);
  /** The check of a right result. */
  const triviality = (build: (x: TensorView) => TensorView, input: Tensor) => {
    const f = new Fusion();
    f.output(build(f.input(input.shape, input.dtype)));
    const { outputs } = evaluateFusion(f.data(), [input]);
    const [only] = checkOutputs(f.data(), [input], new Map(), outputs.map(whole), "braid");
    return { ok: only?.check.ok, trivial: only?.check.trivial, norm: only?.check.norm };
  };

  it("is an output of zeros, which are compared element by element", () => {
    const found = triviality((x) => mul(exp(x), 0), numbers(1, 2, 3));
    expect(found).toEqual({ ok: true, trivial: "zeros", norm: undefined });
    const products = triviality((x) => mul(sum(mul(x, x), [0]), 0), numbers(1, 2, 3));
    expect(products).toEqual({ ok: true, trivial: "zeros", norm: undefined });
    expect(triviality((x) => mul(x, 0), Tensor.from([1, 2], "int"))).toMatchObject({ ok: true, trivial: "zeros" });
  });

  it("is an output of NaN", () => {
    expect(triviality((x) => log(x), numbers(-1, -2))).toMatchObject({ ok: true, trivial: "NaN" });
  });

  it("is an output that is 0 but for roundings", () => {
    // Mathematically the mean of distances to the mean.
    const found = triviality((x) => mean(sub(x, unsqueeze(mean(x, [0]), 0)), [0]), numbers(0.1, 0.7, 0.3));
    expect(found).toMatchObject({ ok: true, trivial: "small" });
  });

  it("is no output of another constant, of integers, or with one number", () => {
    expect(triviality((x) => add(mul(x, 0), 2), numbers(1, 2)).trivial).toBeUndefined();
    expect(triviality((x) => mul(x, 2), Tensor.from([0, 1], "int")).trivial).toBeUndefined();
    expect(triviality((x) => relu(x), numbers(-1, -1, 1e-9)).trivial).toBeUndefined();
  });

  it("is looked at by norm where many small elements have narrow bounds", () => {
    // The bounds of the zeros are narrow, and those of the only other element are wider than it.
    const f = new Fusion();
    f.output(f.input([3]));
    const bounds = Float64Array.of(0, 0, 2);
    expect(areBoundsWide(numbers(0, 0, 1), bounds)).toBe(true);
    expect(areBoundsWide(numbers(0, 0, 3), bounds)).toBe(false);
  });
});

describe("special values", () => {
  const good = { check: { ok: true, largestError: 0, partOfBound: 0, elements: 4, compared: 4, notCompared: null } };
  const failure = { code: "check-failed", message: "an output differs from the oracle" } as const;

  it("fail a check that passed without them", () => {
    const bad = { check: { ...good.check, ok: false, largestError: Infinity }, failure };
    const [merged] = withSpecialChecks([{ ...good, failure: null }], [bad]);
    expect(merged?.check).toMatchObject({ ok: false, largestError: Infinity });
    expect(merged?.failure?.message).toBe("an output differs from the oracle, on inputs with special values");
  });

  it("need not leave anything to compare, which is said", () => {
    const none = {
      check: { ...good.check, ok: false, compared: 0 },
      failure: { ...failure, code: "not-checked" } as const,
    };
    const [merged] = withSpecialChecks([{ ...good, failure: null }], [none]);
    expect(merged).toEqual({ check: { ...good.check, specialNotCompared: "of unknown values" }, failure: null });
  });
});

describe("copies with other bits", () => {
  it.each([
    ["numbers", 1.5, 0.5],
    ["the sign of a zero", -0, 0],
    ["NaN", NaN, Infinity],
  ])("are reported with their distance: %s", (_, element, apart) => {
    const f = new Fusion();
    f.output(set(f.input([2], "float")));
    const first = element === 0 ? 0 : 1;
    const copies = [first, element].map((last, rank) => ({ tensor: floats([2], [3, last]), ranks: [rank] }));
    const [only] = outputResults(f.data(), [copies], null);
    expect(only?.unlike).toMatchObject([{ ranks: [1], apart }]);
  });
});

describe("exit statuses", () => {
  it("tell a failed check, bad input and a failed run apart", () => {
    const status = (...codes: readonly ("check-failed" | "bad-extent" | "stuck" | "timed-out")[]): number =>
      statusOf(codes.map((code) => ({ code, message: "" })));
    expect(status("check-failed")).toBe(exitStatus.checkFailed);
    expect(status("bad-extent")).toBe(exitStatus.badInput);
    expect(status("stuck")).toBe(exitStatus.runFailed);
    expect(status("timed-out", "check-failed")).toBe(exitStatus.runFailed);
    expect([exitStatus.ok, exitStatus.checkFailed, exitStatus.badInput, exitStatus.runFailed]).toEqual([0, 1, 2, 3]);
  });
});

/** What `--check` compares of gradients: every way to ask for them, corners of functions, and what has no slope. */
import { describe, expect, it } from "vitest";
import {
  add,
  cast,
  crossEntropy,
  DeviceMesh,
  dropout,
  exp,
  Fusion,
  gradients,
  indexSelect,
  linear,
  log,
  mean,
  mul,
  neg,
  relu,
  round,
  splitBackward,
  sqrt,
  sub,
  sum,
  tanh,
  where,
} from "@braid-compiler/braid";
import * as ops from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { type NestedValues, Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { cli } from "./captured-cli.ts";
import { derived, verdictsOf } from "./derived.ts";
import { ownFolder } from "./own-folder.ts";

const { abs, amax, amin, clamp, gt, maximum, minimum, prod, pow } = ops;

/** With the op of the last `exp` another one. */
function tampered(data: FusionData): FusionData {
  const last = data.ops.findLastIndex((op) => op.kind === "Unary" && op.op === "exp");
  return { ...data, ops: data.ops.map((op, i) => (i === last && op.kind === "Unary" ? { ...op, op: "sin" } : op)) };
}

describe("gradients that are compared", () => {
  const mlp = (f: Fusion, dtype: "float" | "bfloat16" = "float") => {
    const [x, up, down] = [f.input([4, 6], dtype), f.input([5, 6], dtype), f.input([3, 5], dtype)];
    const h = tanh(linear(x, up));
    return { x, up, down, h, y: linear(h, down) };
  };
  const outputsOf = (f: Fusion, found: readonly (TensorView | null)[]): FusionData => {
    for (const each of found) if (each !== null) f.output(each);
    return f.data();
  };

  it("of a scalar loss, in bfloat16", () => {
    const f = new Fusion();
    const { x, up, down, y } = mlp(f, "bfloat16");
    const data = outputsOf(f, gradients(f, { of: [mean(mul(y, y), [0, 1])], wrt: [x, up, down] }));
    expect(verdictsOf(data)).toEqual(["passed", "passed", "passed"]);
  });

  it("of tensors between, one of which depends on another, and of one that nothing depends on", () => {
    const f = new Fusion();
    const { x, h, y } = mlp(f);
    const [dy, other] = [f.input([4, 3]), f.input([2])];
    const data = outputsOf(f, gradients(f, { of: [y, h], cotangents: [dy, h], wrt: [x, h, other] }));
    expect(verdictsOf(data)).toEqual(["passed", "passed"]);
  });

  it("that stay the parts of devices", () => {
    const f = new Fusion();
    const { x, up, down, y } = mlp(f);
    const dy = f.input([4, 3]);
    for (const each of [x, up, down, dy]) each.setDeviceMesh(DeviceMesh.range(2));
    for (const rows of [x, dy]) rows.outerSplit(0, 2).parallelize("DIDx");
    const data = outputsOf(f, gradients(f, { of: [y], cotangents: [dy], wrt: [up, down], partial: [down] }));
    expect(verdictsOf(data)).toEqual(["passed", "passed"]);
  });

  it("of several calls, the second of a gradient of the first", () => {
    const f = new Fusion();
    const x = f.input([3, 4]);
    const [g] = gradients(f, { of: [sum(mul(exp(x), tanh(x)), [0, 1])], wrt: [x] });
    const [second] = gradients(f, { of: [sum(mul(g ?? x, g ?? x), [0, 1])], wrt: [x] });
    expect(verdictsOf(outputsOf(f, [g ?? null, second ?? null]))).toEqual(["passed", "passed"]);
  });

  it("of programs with indices, seeds and classes", () => {
    const f = new Fusion();
    const [table, tokens, seed] = [f.input([7, 4]), f.input([3], "int64"), f.input([], "int64")];
    const rows = dropout(indexSelect(table, 0, tokens), 0.4, seed);
    const loss = crossEntropy(rows, where(gt(tokens, 3), 3, where(gt(tokens, 0), tokens, 0)));
    expect(verdictsOf(outputsOf(f, gradients(f, { of: [loss], wrt: [table] })))).toEqual(["passed"]);
  });

  it("of a backward pass alone, from what its forward pass saves", () => {
    const f = new Fusion();
    const { x, up, down, y } = mlp(f);
    const request = { of: [y], cotangents: [f.input([4, 3])], wrt: [x, up, down] };
    for (const policy of ["all", "minimal", { bytes: 0 }] as const) {
      const { forward, backward } = splitBackward(f, request, policy);
      expect(verdictsOf(backward.data())).toEqual(["passed", "passed", "passed"]);
      expect(verdictsOf(forward.data())).toEqual([]);
    }
  });

  it("only if an output depends on them", () => {
    const f = new Fusion();
    const { x, up, y } = mlp(f);
    const [dx, dup] = gradients(f, { of: [sum(y, [0, 1])], wrt: [x, up] });
    f.output(add(x, dx ?? x));
    expect(dup).not.toBeNull();
    expect(verdictsOf(f.data())).toEqual(["passed"]);
  });
});

describe("corners and steps", () => {
  const numbers = (values: NestedValues): Tensor => Tensor.from(values, "double");
  const ones = numbers([1, 2, 3, 4]);

  it.each<[string, (x: TensorView) => TensorView, NestedValues]>([
    ["relu", relu, [-1, 0, 0, 2]],
    ["abs", abs, [-1, 0, -0, 2]],
    ["clamp", (x) => clamp(x, -1, 2), [-1, 2, 3, 0]],
    ["maximum with a number", (x) => maximum(x, 0), [-1, 0, 0, 2]],
    ["minimum with itself", (x) => minimum(x, x), [-1, 0, 0, 2]],
    ["steps", (x) => add(round(x), mul(x, cast(cast(x, "int"), "double"))), [0.5, 1, 1.5, 2]],
    ["a condition", (x) => where(gt(x, 0), mul(x, x), 3), [-1, 0, 0, 2]],
    ["pow", (x) => pow(x, 1.5), [0.5, 0, 1, 2]],
  ])("of %s", (_, build, x) => {
    expect(verdictsOf(derived(build, [[4]]), [numbers(x), ones])).toEqual(["passed"]);
  });

  it.each([amax, amin, prod])("of equal elements of a reduction", (reduce) => {
    const data = derived((x) => reduce(x, [1]), [[2, 3]]);
    const inputs = [[[1, 1, 0], [0, 2, 0]], [1, 2]].map(numbers); // prettier-ignore
    expect(verdictsOf(data, inputs)).toEqual(["passed"]);
  });

  it("of a clamp are not those of the maximum and minimum that it is made of", () => {
    const data = derived((x) => clamp(x, -1, 2), [[4]]);
    const { markers: _, ...unmarked } = data;
    expect(verdictsOf({ ...unmarked, markers: [] }, [numbers([-1, 2, 3, 0]), ones])).toEqual(["failed"]);
  });
});

describe("what has no slope", () => {
  it("at the inputs is compared at positive ones", () => {
    expect(verdictsOf(derived((x) => add(log(x), sqrt(x)), [[4]]))).toEqual(["passed"]);
    expect(verdictsOf(tampered(derived((x) => exp(log(x)), [[4]])))).toEqual(["failed"]);
  });

  it("anywhere is not compared, which is said", () => {
    const [only] = verdictsOf(derived((x) => log(mul(abs(x), -1)), [[4]]));
    expect(only).toBe("what it differentiates is not finite near the inputs");
  });

  it("at some elements is compared at the others", () => {
    // The gradient of the branch that is not taken is 0 times NaN, as in PyTorch.
    const build = (x: TensorView): TensorView => mul(x, where(gt(x, 0), sqrt(x), where(gt(x, -2), sqrt(neg(x)), x)));
    expect(verdictsOf(derived(build, [[6]]))).toEqual(["it has no finite element"]);
    const some = (x: TensorView): TensorView => where(gt(x, 0.75), x, sqrt(sub(0.75, x)));
    expect(verdictsOf(derived(some, [[6]]))).toEqual(["passed"]);
  });

  it("in a program that was cut, or of unknown sizes, is not compared", () => {
    const data = derived((x) => exp(mul(x, 2)), [[4]]);
    expect(verdictsOf({ ...data, ops: data.ops.slice(1) })).toEqual([
      "the program lacks a part of what it differentiates",
    ]);
    const f = new Fusion();
    const x = f.input([3, null]);
    const y = tanh(sum(x, [1]));
    const request = { of: [y], cotangents: [f.input([3])], wrt: [x] };
    const { backward } = splitBackward(f, { ...request, wrt: [y] });
    expect(verdictsOf(backward.data())).toEqual(["the sizes of what it differentiates are not known"]);
  });

  it("in good time is not compared, unless it is asked for", () => {
    const data = derived((x) => sum(x, [0, 1]), [[7000, 7000]]);
    expect(verdictsOf(data, [])).toEqual([expect.stringContaining("--check=full")]);
  });

  it("of zeros is 0", () => {
    expect(verdictsOf(derived((x) => dropout(x, 1, cast(mul(sum(x, [0]), 0), "int64")), [[4]]))).toEqual(["passed"]);
  });
});

describe("braid run --check", () => {
  const folder = ownFolder();
  const program = (result: string): string =>
    folder.write(
      "program.ts",
      `import { DeviceMesh, exp, Fusion, gradients, program, sum } from "@braid-compiler/braid";
      export default program({}, () => {
        const f = new Fusion();
        const x = f.input([4]).named("x");
        x.setDeviceMesh(DeviceMesh.range(1));
        const [g] = gradients(f, { of: [sum(exp(x), [0])], wrt: [x] });
        f.output(g);
        const data = f.data();
        return ${result};
      });`,
    );

  it("says of each output what a pass of it is worth", async () => {
    const file = folder.write(
      "trivial.ts",
      `import { DeviceMesh, Fusion, log, mul, program, sub } from "@braid-compiler/braid";
      export default program({}, () => {
        const f = new Fusion();
        const [x, none] = [f.input([4]), f.input([0])];
        for (const tensor of [x, none]) tensor.setDeviceMesh(DeviceMesh.range(1));
        for (const y of [mul(x, 2), mul(x, 0), log(sub(mul(x, 0), 1)), mul(none, 2), log(mul(x, 0))]) f.output(y);
        return f;
      });`,
    );
    const { status, out } = await cli("run", file, "--check");
    const verdicts = [...out.matchAll(/^T\d+ .*[0-9a-f]{16} .*%? {2}(\S.*)$/gmu)].map(([, verdict]) => verdict);
    expect(verdicts).toEqual(["passed", "only zeros", "only NaN", "empty", "not finite"]);
    expect(out).toContain("T3: every element is 0, as in the oracle: a result that is never computed may pass, too");
    expect(out).toContain("T6: every element is NaN, as in the oracle: other inputs say more");
    expect(out).toContain("T7: no elements: there was nothing to compare");
    expect(status).toBe(0);
  });

  it("says how gradients were compared", async () => {
    const { status, out } = await cli("run", program("f"), "--check");
    expect(out).toMatch(
      /1 gradient was compared with slopes in double, along random directions: relative difference up to \d/u,
    );
    expect(status).toBe(0);
  });

  it("says once why several were not", async () => {
    const file = folder.write(
      "not-finite.ts",
      `import { add, DeviceMesh, Fusion, gradients, mul, program, sqrt, sum } from "@braid-compiler/braid";
      export default program({}, () => {
        const f = new Fusion();
        const [x, y] = [f.input([4]).named("x"), f.input([4]).named("y")];
        for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(1));
        const roots = add(sqrt(mul(x, 0)), sqrt(mul(y, 0)));
        for (const each of gradients(f, { of: [sum(roots, [0])], wrt: [x, y] })) f.output(each);
        return f;
      });`,
    );
    const { out } = await cli("run", file, "--check");
    expect(out).toMatch(/^T\d+ x\.grad, T\d+ y\.grad: not compared with a slope: it has no finite element$/mu);
  });

  it("fails where the program computes what the oracle does, and both are wrong", async () => {
    const wrong =
      'new Fusion({ ...data, ops: data.ops.map((op) => (op.kind === "Unary" ? op : { ...op, value: "2" })) })';
    const { status, out, err } = await cli("run", program(wrong), "--check");
    expect(out).toMatch(/T6 x\.grad.*FAILED/u);
    expect(err).toContain("a gradient is not the slope of what was differentiated");
    expect(status).toBe(1);
  });
});

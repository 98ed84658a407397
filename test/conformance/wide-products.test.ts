/** Matmuls of 16-bit floats whose results are float: values, dumps, what moves, gradients, and what is refused. */
import { describe, expect, it } from "vitest";
import { cast, DeviceMesh, Fusion, gradients, lower, matmul, parse, permute, print } from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";

function product(a: readonly number[], b: readonly number[], dtype: "half" | "bfloat16"): Fusion {
  const f = new Fusion();
  f.output(matmul(f.input(a, dtype), f.input(b, dtype), { dtype: "float" }));
  return f;
}

describe.each(["half", "bfloat16"] as const)("of %s", (dtype) => {
  it.each([
    [
      [5, 7],
      [7, 3],
    ],
    [[7], [7, 3]],
    [
      [70, 300],
      [300, 96],
    ],
    [
      [2, 1, 40, 33],
      [3, 33, 50],
    ],
  ])("%o x %o is the oracle's, and summed in float", async (a, b) => {
    const f = product(a, b, dtype);
    expect(f.outputs[0]?.dtype).toBe("float");
    // Sums of small integers are exact in float, and would not be in 16 bits.
    await expectOracle(f, { devices: 1 });
  });

  it("reads transposed operands in place", async () => {
    const f = new Fusion();
    const [a, b] = [f.input([50, 40], dtype), f.input([60, 50], dtype)];
    f.output(matmul(permute(a, [1, 0]), permute(b, [1, 0]), { dtype: "float" }));
    expect(lower(f).body.map(({ kind }) => kind)).not.toContain("Permute");
    await expectOracle(f, { devices: 1 });
  });
});

it("has parts in float on devices, which are added in float", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([6, 64], "bfloat16"), f.input([64, 10], "bfloat16")];
  f.output(matmul(a, b, { dtype: "float" }));
  a.setDeviceMesh(DeviceMesh.range(2)).outerSplit(1, 2).parallelize("DIDx");
  b.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
  expect(collectivesOf(f, 2)).toContain("Allreduce");
  await expectOracle(f, { devices: 2 });
});

it("adds chunks of a Stream to its result", async () => {
  const f = new Fusion();
  const [a, b] = [f.input([40, 64], "bfloat16"), f.input([64, 48], "bfloat16")];
  const y = matmul(a, b, { dtype: "float" });
  f.output(y);
  for (const each of [a, b]) each.setDeviceMesh(DeviceMesh.range(1));
  y.outerSplit(2, 4).parallelize("Stream");
  await expectOracle(f, { devices: 1, accumulate: true });
});

it("has a dump, in which the result's dtype says it", () => {
  const text = print(lower(product([4, 6], [6, 3], "half")));
  expect(text).toContain("_g_float[iS4{4}, iS5{3}, rS6{6}]");
  expect(print(parse(text))).toBe(text);
});

it("has the gradients of a product of operands that are cast", () => {
  const values = (isWide: boolean): readonly unknown[] => {
    const f = new Fusion();
    const [a, b, g] = [f.input([3, 8, 5], "bfloat16"), f.input([5, 4], "bfloat16"), f.input([3, 8, 4], "float")];
    const y = isWide ? matmul(a, b, { dtype: "float" }) : matmul(cast(a, "float"), cast(b, "float"));
    f.output(y);
    for (const each of gradients(f, { of: [y], cotangents: [g], wrt: [a, b] })) if (each !== null) f.output(each);
    const shapes = [[3, 8, 5], [5, 4], [3, 8, 4]].map((shape, i) => ({ dtype: i < 2 ? "bfloat16" : "float", shape }) as const); // prettier-ignore
    return evaluateFusion(f.data(), randomInputs(shapes, createRandom(2), "uniform")).outputs.map(({ data }) => data);
  };
  expect(values(true)).toEqual(values(false));
});

it.each([
  ["bfloat16", "double"],
  ["float", "half"],
  ["half", "bfloat16"],
  ["int", "int64"],
] as const)("of %s is no %s", (dtype, to) => {
  const f = new Fusion();
  const [a, b] = [f.input([2, 3], dtype), f.input([3, 2], dtype)];
  expect(() => matmul(a, b, { dtype: to })).toThrow("error[dtype-mismatch]: a matmul gives no such dtype");
});

/** Numbers as operands of add, sub, mul and div, from the API to kernels, results with bounds, and dumps. */
import { binaryFunctions } from "../../src/ir/ops/functions/binary.ts";
import { DeviceMesh, Fusion, HostProgramBuilder, parse, print, Tensor, type TensorView } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { BinaryKernel } from "../../src/commands/kernel.ts";
import { add, div, mul, neg, sub, sum } from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { numberCases, withNumber } from "../kernels/number-cases.ts";
import { operand, runKernel } from "../kernels/run-kernel.ts";
import { edges, firstDifference } from "../kernels/values.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const shape = [4, null];

it("are attributes of the op, on the side where they stand", () => {
  const f = new Fusion();
  const x = f.input(shape);
  mul(x, 0.5);
  sub(1, x);
  expect(f.data().ops).toEqual([
    { kind: "Binary", op: "mul", scalar: { position: 1, text: "0.5" }, inputs: [0], output: 1 },
    { kind: "Binary", op: "sub", scalar: { position: 0, text: "1" }, inputs: [0], output: 2 },
  ]);
});

const promotions: readonly (readonly [DType, number | bigint, DType])[] = [
  ["half", 0.1, "half"],
  ["bfloat16", 1e30, "bfloat16"],
  ["double", 2n, "double"],
  ["int", 2, "int"],
  ["int64", 2n ** 62n, "int64"],
  ["int", 0.5, "float"],
  ["int64", Infinity, "float"],
  ["bool", 3, "int64"],
  ["bool", 0.5, "float"],
];

it.each(promotions)("of %s and %s give %s", (dtype, number, result) => {
  const f = new Fusion();
  const x = f.input(shape, dtype);
  expect(add(x, number).dtype).toBe(result);
  expect(add(number, x).dtype).toBe(result);
});

describe("are refused", () => {
  const f = new Fusion();
  const x = f.input(shape, "int");
  it("for two numbers, and for numbers that the dtype does not have", () => {
    expect(diagnosticOf(() => add(1, 2))).toMatchObject({ code: "bad-argument", place: { text: "add(1, 2)" } });
    const place = { text: "sub(2147483648, T0)" };
    expect(diagnosticOf(() => sub(2 ** 31, x))).toMatchObject({ code: "bad-argument", place, found: "2147483648" });
    expect(f.data().ops).toEqual([]);
  });
});

it("give the results of their definition in every kernel", () => {
  for (const { op, dtype, scalar } of numberCases) {
    const flat = operand(dtype, [edges[dtype].length]);
    const outputs = [binaryFunctions[op].result === "bool" ? { ...flat, dtype: "bool" as const } : flat];
    const kernel: BinaryKernel = { kind: "binary", op, scalar, inputs: [flat], outputs };
    const [found = []] = runKernel(kernel, [edges[dtype]]);
    const expected = withNumber({ op, dtype, scalar }, edges[dtype]);
    expect(firstDifference(found, expected), `${op} ${dtype} ${JSON.stringify(scalar)}`).toBeNull();
  }
});

it("are exact in bounds, and not rounded to the tensor's 16 bits", () => {
  const f = new Fusion();
  const x = f.input([2], "bfloat16");
  f.output(mul(x, 1.00390625));
  const { outputs, bounds } = evaluateFusion(f.data(), [Tensor.from([128, -3], "bfloat16")]);
  expect(outputs.map((output) => Tensor.toArray(output))).toEqual([[128, -3.015625]]);
  expect([...(bounds[0] ?? [])]).toEqual([0, 0]);
});

describe("in dumps", () => {
  function program(dtype: DType, build: (h: HostProgramBuilder, x: TensorView) => TensorView): string {
    const h = new HostProgramBuilder();
    const x = h.input([4], { dtype });
    h.output(build(h, x));
    return print(h.build());
  }

  it.each([
    ["double(0.1)", "float", 0.1],
    ["double(-0)", "half", -0],
    ["double(1e+300)", "double", 1e300],
    ["double(-inf)", "float", -Infinity],
    ["double(nan)", "float", NaN],
    ["-7", "int", -7],
    ["9007199254740993", "int64", 9007199254740993n],
  ] as const)("print as %s beside %s, and are read back", (text, dtype, number) => {
    for (const [line, build] of [
      [`   + ${text};`, (h: HostProgramBuilder, x: TensorView) => h.add(x, number)],
      [`   = ${text}`, (h: HostProgramBuilder, x: TensorView) => h.sub(number, x)],
    ] as const) {
      const dump = program(dtype, build);
      expect(dump).toContain(line);
      expect(print(parse(dump))).toBe(dump);
    }
  });

  it("are read with nvFuser's 17 digits, in other types, and next to a negation", () => {
    const dump = program("float", (h, x) => h.mul(x, 0.1));
    for (const spelled of ["double(0.10000000000000001)", "float( 0.1 )"]) {
      expect(print(parse(dump.replace("double(0.1)", spelled)))).toBe(dump);
    }
    const negated = program("int", (h, x) => h.add(h.unary("neg", x), -2));
    expect(print(parse(negated))).toBe(negated);
  });
});

it("run on every back end, sharded and in a unit", async () => {
  const f = new Fusion();
  const x = f.input([2, 3, 4]);
  const halved = mul(x, 0.5);
  const left = sub(1, halved);
  const y = div(left, 4);
  const more = add(y, 2);
  const negated = neg(more);
  const z = sum(negated, [2]);
  f.output(y);
  f.output(z);
  const rest = sub(halved, 4);
  f.output(rest);
  for (const tv of [x, halved, left, more, negated, y, z, rest]) {
    tv.setDeviceMesh(DeviceMesh.range(2)).axis(0).parallelize("DIDx");
  }
  await expectOracle(f, { devices: 2 });
});

/** Floats of 8 bits: what moves and converts them, what refuses them, and that a sharded program gathers their bytes. */
import {
  DeviceMesh,
  Fusion,
  gradients,
  importModel,
  lower,
  parse,
  print,
  Tensor,
  type TensorView,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import * as api from "../../src/ir/api/ops.ts";
import { type DType, dtypes, isComputed } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const storage = keysOf(dtypes).filter((dtype) => !isComputed(dtype));

const refused: readonly (readonly [name: string, build: (x: TensorView) => unknown])[] = [
  ["add", (x) => api.add(x, x)],
  ["mul by a number", (x) => api.mul(2, x)],
  ["add to float", (x) => api.add(api.cast(x, "float"), x)],
  ["eq", (x) => api.eq(x, x)],
  ["where", (x) => api.where(api.lt(api.cast(x, "float"), 0), x, 0)],
  ["neg", (x) => api.neg(x)],
  ["exp", (x) => api.exp(x)],
  ["sum", (x) => api.sum(x, [0])],
  ["amax", (x) => api.amax(x, [0])],
  ["cummax", (x) => api.cummax(x, 0)],
  ["sort", (x) => api.sort(x, 0)],
  ["matmul", (x) => api.matmul(x, x)],
  ["softmax", (x) => api.softmax(x, 0)],
  ["sdpa", (x) => api.sdpa(x, x, x)],
  ["scatterAdd", (x) => api.scatterAdd(x, 0, api.cast(api.cast(x, "float"), "int64"), x)],
];

describe.each(storage)("%s", (dtype) => {
  it.each(refused)("is refused by %s", (_, build) => {
    const diagnostic = diagnosticOf(() => build(new Fusion().input([4, 4], dtype)));
    expect(diagnostic.code).toBe("dtype-mismatch");
    expect(diagnostic.help).toContain('"float"');
    expect(diagnostic.message).toContain(dtype);
  });

  it("has no gradient, and passes none", () => {
    const f = new Fusion();
    const x = f.input([4], "float");
    const stored = api.cast(x, dtype);
    const loss = api.sum(api.cast(stored, "float"), [0]);
    expect(diagnosticOf(() => gradients(f, { of: [loss], wrt: [stored] })).code).toBe("not-differentiable");
    expect(diagnosticOf(() => gradients(f, { of: [loss], wrt: [x] })).code).toBe("not-differentiable");
  });

  it("moves by views, joins and indices, gathered over devices", async () => {
    const f = new Fusion();
    const [x, index] = [f.input([2, 6], dtype), f.input([3], "int64")];
    const gathered = api.set(x);
    const joined = api.cat([api.permute(gathered, [1, 0]), api.full(f, [4, 2], 0.75, dtype)], 0);
    const picked = api.indexSelect(
      api.pad(
        joined,
        [
          [0, 0],
          [1, 0],
        ],
        17,
      ),
      0,
      index,
    );
    f.output(picked);
    f.output(api.cast(picked, "float"));
    for (const each of [x, gathered, index, joined, picked]) each.setDeviceMesh(DeviceMesh.range(2));
    x.axis(0).parallelize("DIDx");
    const text = print(lower(f));
    expect(text).toContain(dtypes[dtype].names.printed);
    expect(print(parse(text))).toBe(text);
    await expectOracle(f, { devices: 2 });
  });

  it("saturates where asked, and keeps NaN", () => {
    const { most } = dtypes[dtype];
    const values = [Infinity, -1e30, Number(most) * 1.2, 1.5, NaN];
    const cast = (from: DType, saturate: boolean): unknown => {
      const f = new Fusion();
      f.output(api.cast(f.input([values.length], from), dtype, { saturate }));
      return Tensor.toArray(at(evaluateFusion(f.data(), [Tensor.from(values, from)]).outputs, 0));
    };
    for (const from of ["double", "float", "bfloat16"] as const) {
      expect(cast(from, true)).toEqual([most, -Number(most), most, 1.5, NaN]);
    }
    const beyond = dtype === "float8_e4m3fn" ? NaN : Infinity;
    expect(cast("float", false)).toEqual([beyond, -beyond, beyond, 1.5, NaN]);
  });

  it("is read from StableHLO", async () => {
    const name = dtypes[dtype].names.stablehlo;
    const { fusion, inputs } = await importModel(`func.func @main(%0: tensor<2xf32>) -> tensor<2xf32> {
      %c = stablehlo.constant dense<[0.3, 17.0]> : tensor<2x${name}>
      %1 = stablehlo.convert %0 : (tensor<2xf32>) -> tensor<2x${name}>
      %2 = stablehlo.concatenate %1, %c, dim = 0 : (tensor<2x${name}>, tensor<2x${name}>) -> tensor<4x${name}>
      %3 = stablehlo.convert %2 : (tensor<4x${name}>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }`);
    const given = inputs.map(({ value }) => value ?? Tensor.from([-0.3, 1000], "float"));
    const { outputs } = evaluateFusion(fusion.data(), given, new Map());
    const expected = dtype === "float8_e4m3fn" ? [-0.3125, NaN, 0.3125, 16] : [-0.3125, 1024, 0.3125, 16];
    expect(Tensor.toArray(at(outputs, 0))).toEqual(expected);
  });
});

/** The types of the public API. `tsc -b` checks the expectations. */
import {
  type AnyCompilation,
  choose,
  compile,
  type Compilation,
  type CompileOptions,
  Fusion,
  type MachineProfile,
  MultiDeviceExecutor,
  set,
  type Shards,
  Tensor,
  type TensorArgument,
  type VerifyReport,
} from "@braid-compiler/braid";
import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from "vitest";

function copied(): Fusion {
  const f = new Fusion();
  f.output(set(f.input([4], "float")));
  return f;
}

describe("Tensor", () => {
  it("has the typed array of its dtype", () => {
    expect(Tensor.zeros([2]).data.fill(1)).toEqual(Float32Array.of(1, 1));
    expectTypeOf(Tensor.zeros([2], "int64").data).toEqualTypeOf<BigInt64Array>();
    expectTypeOf(Tensor.from([1n], "int64").dtype).toEqualTypeOf<"int64">();
    expectTypeOf(Tensor.values(Tensor.zeros([2]))).toEqualTypeOf<number[]>();
    expectTypeOf(Tensor.values(Tensor.zeros([2], "int64"))).toEqualTypeOf<bigint[]>();
    const some = (tensor: Tensor): void => {
      expectTypeOf(Tensor.values(tensor)).toEqualTypeOf<(number | bigint)[]>();
      if (tensor.dtype === "double") expectTypeOf(tensor.data).toEqualTypeOf<Float64Array>();
    };
    some(Tensor.zeros([1], "bool"));
  });
});

describe("run", () => {
  let whole: MultiDeviceExecutor;
  beforeAll(async () => {
    whole = await MultiDeviceExecutor.create(copied(), { devices: 1 });
  });
  afterAll(() => whole.close());
  const x = Tensor.from([1, 2, 3, 4]);

  it("gives whole tensors, whose dtype narrows their data", async () => {
    const outputs = await whole.run([x]);
    expectTypeOf(outputs).toEqualTypeOf<Tensor[]>();
    const [y] = outputs;
    if (y?.dtype !== "float") throw new Error("not a float");
    expectTypeOf(y.data).toEqualTypeOf<Float32Array>();
    expect(y.data.map((value) => 2 * value)).toEqual(Float32Array.of(2, 4, 6, 8));
    expectTypeOf(await whole.run([x], { trace: true })).toEqualTypeOf<Tensor[]>();
    expectTypeOf(await whole.run([x], { gather: true })).toEqualTypeOf<Tensor[]>();
  });

  it("gives shards where they are asked for", async () => {
    const outputs = await whole.run([x], { gather: false });
    expectTypeOf(outputs).toEqualTypeOf<Shards[]>();
    expect(outputs[0]?.[0]?.shape).toEqual([4]);
  });

  it("gives what was handed in for the outputs", async () => {
    const into = [Tensor.zeros([4])];
    const outputs = await whole.run([x], { outputs: into });
    expectTypeOf(outputs).toEqualTypeOf<Tensor<"float">[]>();
    expect(outputs[0]).toBe(into[0]);
    expectTypeOf(await whole.run([x], { outputs: [[Tensor.zeros([4])]] })).toEqualTypeOf<Shards[]>();
  });

  it("gives shards with localRanks, and either where the types do not say", async () => {
    const local = await MultiDeviceExecutor.create(copied(), { devices: 1, localRanks: [0] });
    expectTypeOf(local).toEqualTypeOf<MultiDeviceExecutor<Shards>>();
    expectTypeOf(await local.run([x])).toEqualTypeOf<Shards[]>();
    await local.close();
    expectTypeOf<MultiDeviceExecutor>().toExtend<MultiDeviceExecutor<TensorArgument>>();
  });
});

describe("compile and choose", () => {
  it("have a report unless the options may say off", () => {
    const compilation = compile(copied(), { devices: 1 });
    expectTypeOf(compilation).toEqualTypeOf<Compilation>();
    expect(compilation.report.ok).toBe(true);
    const options: CompileOptions = { devices: 1, verify: "off" };
    const unverified = compile(copied(), options);
    expectTypeOf(unverified).toEqualTypeOf<AnyCompilation>();
    expectTypeOf(unverified.report).toEqualTypeOf<VerifyReport | null>();
    expect(unverified.report).toBeNull();
    const chosen = (profile: MachineProfile): Compilation => choose(copied(), { devices: 1 }, profile).compilation;
    expectTypeOf(chosen).returns.toHaveProperty("program");
  });
});

/** nvFuser's dtypes and forms of operands, which are not PyTorch's; what print(fd) writes; placements that differ. */
import { describe, expect, it } from "vitest";
import { importModel, MultiDeviceExecutor, Tensor } from "@braid-compiler/braid";
import type { DType } from "../../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";

type Numbers = Parameters<typeof Tensor.from>[0];

/** Of inputs `tv0`, `tv1`, ... such as `2,3 Half`; the output is `tv9`. */
function definition(inputs: readonly string[], body: readonly string[]): string {
  const lines = inputs.map((input, i) => {
    const [sizes = "", dtype = ""] = input.split(" ");
    return `tv${i} = fd.define_tensor(shape=[${sizes}], contiguity=True, dtype=DataType.${dtype})`;
  });
  const all = [...lines, ...body, "fd.add_output(tv9)"];
  return ["def nvfuser_fusion(fd : FusionDefinition) -> None :", ...all.map((line) => `    ${line}`)].join("\n");
}

async function evaluated(
  text: string,
  inputs: readonly Numbers[],
  sizes: Readonly<Record<string, number>> = {},
): Promise<Tensor> {
  const data = (await importModel(text, { file: "fusion.py" })).fusion.data();
  const values = data.inputs.map((id, i) => Tensor.from(at(inputs, i), at(data.tensors, id).dtype));
  return at(evaluateFusion(data, values, new Map(Object.entries(sizes))).outputs, 0);
}

describe("the dtype", () => {
  it.each<readonly [line: string, inputs: readonly string[], dtype: DType]>([
    ["fd.ops.add(tv0, tv0)", ["2 BFloat16"], "float"],
    ["fd.ops.mul(tv0, tv1)", ["2 Half", "2 BFloat16"], "float"],
    ["fd.ops.neg(tv0)", ["2 Half"], "float"],
    ["fd.ops.exp(tv0)", ["2 BFloat16"], "float"],
    ["fd.ops.relu(tv0)", ["2 BFloat16"], "bfloat16"],
    ["fd.ops.abs(tv0)", ["2 Half"], "half"],
    ["fd.ops.sum(tv0, dims=[0])", ["2 Half"], "half"],
    ["fd.ops.var(tv0, dims=[0])", ["2 Half"], "float"],
    ["fd.ops.where(fd.ops.gt(tv0, 0.5), tv0, tv0)", ["2 Half"], "half"],
    ["fd.ops.where(fd.ops.gt(tv0, 0.5), tv0, 0.5)", ["2 Half"], "half"],
    ["fd.ops.where(fd.ops.gt(tv0, 0.5), 0.1, 2)", ["2 Half"], "double"],
    ["fd.ops.add(tv0, 2.0)", ["2 Int"], "double"],
    ["fd.ops.add(tv0, 2)", ["2 Int32"], "int"],
    ["fd.ops.add(tv0, fd.define_scalar(2, dtype=DataType.Double))", ["2 Int32"], "double"],
    ["fd.ops.add(tv0, 2)", ["2 Bool"], "int64"],
    ["fd.ops.add(tv0, 2.0)", ["2 Float"], "float"],
    ["fd.ops.add(tv0, tv1)", ["2 Int", " Double"], "double"],
    ["fd.ops.add(tv0, tv1)", ["2 Float", " Double"], "float"],
    ["fd.ops.truediv(tv0, 2)", ["2 Int"], "float"],
    ["fd.ops.div(tv0, 2)", ["2 Int"], "int64"],
    ["fd.ops.pow(tv0, 2)", ["2 Int32"], "int"],
    ["fd.ops.sum(tv0, dims=[0])", ["2 Int32"], "int64"],
    ["fd.ops.prod(tv0, dims=[0])", ["2 Bool"], "int64"],
    ["fd.ops.max(tv0, dims=[0])", ["2 Int32"], "int"],
    ["fd.ops.ceil(tv0)", ["2 Int"], "int64"],
    ["fd.ops.cast(tv0, dtype=DataType.Float)", ["2 Half"], "float"],
  ])("of %s of %s is %s", async (line, inputs, dtype) => {
    const data = (await importModel(definition(inputs, [`tv9 = ${line}`]), { file: "fusion.py" })).fusion.data();
    expect(at(data.tensors, at(data.outputs, 0)).dtype).toBe(dtype);
  });
});

describe("an op", () => {
  it.each<readonly [line: string, inputs: readonly string[], values: readonly Numbers[], result: Numbers]>([
    ["fd.ops.remainder(tv0, 2)", ["3 Float"], [[-1.5, 3.5, -4]], [0.5, 1.5, -0]],
    [
      "fd.ops.remainder(tv0, tv1)",
      ["2 Double", "2 Double"],
      [
        [1.5, -1.5],
        [-1, 1],
      ],
      [-0.5, 0.5],
    ],
    ["fd.ops.fmod(tv0, 3)", ["2 Int"], [[-5n, 5n]], [-2n, 2n]],
    ["fd.ops.pow(tv0, 2)", ["2 Int"], [[-5n, 4n]], [25n, 16n]],
    ["fd.ops.pow(tv0, 5)", ["2 Int"], [[-4000n, 3n]], [-1024000000000000000n, 243n]],
    ["fd.ops.pow(tv0, tv0)", ["2 Int"], [[2n, 3n]], [4n, 27n]],
    ["fd.ops.truediv(tv0, 2)", ["2 Int"], [[-5n, 4n]], [-2.5, 2]],
    [
      "fd.ops.add(tv0, tv1)",
      ["2,2 Float", "2 Float"],
      [
        [
          [1, 2],
          [3, 4],
        ],
        [10, 20],
      ],
      [
        [11, 22],
        [13, 24],
      ],
    ],
    ["fd.ops.where(tv0, tv1, 0.0)", ["2 Bool", "1,2 Float"], [[true, false], [[1, 2]]], [[1, 0]]],
    ["fd.ops.where(tv0, float('-inf'), 0.0)", ["2 Bool"], [[true, false]], [-Infinity, 0]],
    ["fd.ops.logical_not(tv0)", ["2 Float"], [[0, 3]], [true, false]],
    [
      "fd.ops.logical_and(tv0, tv1)",
      ["2 Int", "2 Float"],
      [
        [1n, 1n],
        [0, 2],
      ],
      [false, true],
    ],
    [
      "fd.ops.bitwise_xor(tv0, tv1)",
      ["2 Bool", "2 Bool"],
      [
        [true, true],
        [true, false],
      ],
      [false, true],
    ],
    ["fd.ops.sum(tv0, dim=-1, keepdim=True)", ["1,2 Float"], [[[1, 2]]], [[3]]],
    ["fd.ops.slice(tv0, start_indices=[-2], end_indices=[9])", ["3 Float"], [[1, 2, 3]], [2, 3]],
    ["fd.ops.slice(tv0, start_indices=[0], end_indices=[-1])", ["3 Float"], [[1, 2, 3]], [1, 2]],
    [
      "fd.ops.expand(tv0, shape=[2, -1])",
      ["2 Float"],
      [[1, 2]],
      [
        [1, 2],
        [1, 2],
      ],
    ],
    ["fd.ops.iota(3, start=0.5, step=-0.25, dtype=DataType.Float)", ["1 Float"], [[0]], [0.5, 0.25, 0]],
    ["fd.ops.full(shape=[2], fill_value=True, dtype=DataType.Bool)", ["1 Float"], [[0]], [true, true]],
    [
      "fd.ops.gather(tv0, tv1, 1)",
      ["2,2 Float", "1,2 Int"],
      [
        [
          [1, 2],
          [3, 4],
        ],
        [[1n, 1n]],
      ],
      [[2, 2]],
    ],
    ["fd.ops.matmul(arg1=tv0, arg2=tv0)", ["1,1 Float"], [[[3]]], [[9]]],
    ["fd.ops.mod(tv0, 3)", ["2 Int"], [[-5n, 5n]], [-2n, 2n]],
    ["fd.ops.frac(tv0)", ["2 Float"], [[-1.5, 2.25]], [-0.5, 0.25]],
    ["fd.ops.log10(tv0)", ["1 Float"], [[1]], [0]],
    ["fd.ops.isneginf(tv0)", ["2 Float"], [[-Infinity, Infinity]], [true, false]],
    ["fd.ops.isposinf(tv0)", ["2 Float"], [[-Infinity, Infinity]], [false, true]],
    ["fd.ops.bitwise_not(tv0)", ["2 Int"], [[0n, 5n]], [-1n, -6n]],
    ["fd.ops.bitwise_not(tv0)", ["2 Bool"], [[true, false]], [false, true]],
    ["fd.ops.bitwise_left_shift(tv0, 2)", ["2 Int"], [[1n, -3n]], [4n, -12n]],
    ["fd.ops.bitwise_right_shift(tv0, 1)", ["2 Int"], [[5n, -3n]], [2n, -2n]],
    ["fd.ops.clamp(tv0, None, 1.5)", ["2 Float"], [[-9, 9]], [-9, 1.5]],
    ["fd.ops.threshold(tv0, 0.5, 2)", ["2 Float"], [[0.5, 0.75]], [2, 0.75]],
    ["fd.ops.lerp(tv0, tv1, 0.25)", ["1 Float", "1 Float"], [[4], [8]], [5]],
    ["fd.ops.addcmul(tv0, tv1, tv1, 0.5)", ["1 Float", "1 Float"], [[1], [2]], [3]],
    [
      "fd.ops.triu(tv0, diagonal=1)",
      ["2,2 Float"],
      [
        [
          [1, 2],
          [3, 4],
        ],
      ],
      [
        [0, 2],
        [0, 0],
      ],
    ],
    ["fd.ops.iota(fd.ops.size(tv0, 0), start=2)", ["-1 Float"], [[7, 7]], [2n, 3n]],
    // Scalars of print(fd): the number of elements of a variance.
    ["fd.ops.mul(tv0, fd.ops.reciprocal(fd.ops.where(fd.ops.ge(fd.ops.sub(4, 1), 0), 4, 0)))", ["1 Float"], [[8]], [2]],
    ["fd.ops.mul(tv0, fd.ops.cast(2.5, dtype=DataType.Int))", ["1 Float"], [[8]], [16]],
  ])("%s of %s", async (line, inputs, values, result) => {
    const tensor = await evaluated(definition(inputs, [`tv9 = ${line}`]), values, { i0: 2 });
    expect(Tensor.toArray(tensor)).toEqual(result);
  });

  it("of sizes that a run gives makes a size", async () => {
    const body = [
      "S1 = fd.ops.size(tv0, dim=0)",
      "S2 = fd.ops.mul(S1, 2)",
      "tv9 = fd.ops.reshape(tv0, new_shape=[fd.ops.cast(S2, dtype=DataType.Index)])",
    ];
    const tensor = await evaluated(
      definition(["-1,2 Float"], body),
      [
        [
          [1, 2],
          [3, 4],
        ],
      ],
      { i0: 2 },
    );
    expect(Tensor.toArray(tensor)).toEqual([1, 2, 3, 4]);
  });

  it("takes sizes by the numbers that nvFuser gives all extents", async () => {
    const text = definition(["2,-1 Float", "3,-1 Float"], ["tv9 = fd.ops.cat([tv0, tv1], dim=0)"]);
    const data = (await importModel(text, { file: "fusion.py" })).fusion.data();
    expect(data.inputs.map((id) => at(data.tensors, id).domain.logical[1]?.extent)).toEqual([
      { kind: "symbol", name: "i2" },
      { kind: "symbol", name: "i4" },
    ]);
  });

  it("cat is printed with a pad of each operand", async () => {
    const body = [
      "tv2 = fd.ops.pad(tv0, pad_widths=[0, 2], value=0.00000)",
      "tv3 = fd.ops.pad(tv1, pad_widths=[1, 0], value=0.00000)",
      "tv9 = fd.ops.cat([tv2, tv3], dim=0, manual_padding=True)",
    ];
    expect(Tensor.toArray(await evaluated(definition(["1 Float", "2 Float"], body), [[1], [2, 3]]))).toEqual([1, 2, 3]);
  });

  it("welford gives the mean, the sum of squares and the count", async () => {
    const body = [
      "tv1, tv2, c3 = fd.ops.welford(tv0, dims=[0])",
      "tv9 = fd.ops.add(tv1, fd.ops.mul(tv2, fd.ops.reciprocal(c3)))",
    ];
    expect(Tensor.toArray(await evaluated(definition(["4 Float"], body), [[1, 3, 1, 3]]))).toEqual(3);
  });
});

describe("a schedule", () => {
  it.each<readonly [what: string, body: readonly string[]]>([
    [
      "places a result of no input on all devices",
      ["tv1 = fd.ops.neg(tv0)", "fd.add_output(tv1)", "tv9 = fd.ops.neg(fd.ops.iota(3))"],
    ],
    [
      "splits an axis after the order in memory was set",
      [
        "tv9 = fd.ops.neg(tv0)",
        "tv0.set_allocation_domain(tv0.get_loop_domain(), True)",
        "tv0.outer_split(2, 2)",
        "tv0.axis(2).parallelize(ParallelType.stream)",
      ],
    ],
    [
      "places the result of an expand that expands nothing",
      [
        "tv9 = fd.ops.expand(tv0, shape=[4, 4])",
        "tv9.set_device_mesh(mesh)",
        "tv9.outer_split(1, 2)",
        "tv9.axis(1).parallelize(ParallelType.mesh_x)",
      ],
    ],
  ])("%s", async (_, body) => {
    const placed = [
      "tv0.set_device_mesh(mesh)",
      "tv0.outer_split(0, 2)",
      "tv0.axis(0).parallelize(ParallelType.mesh_x)",
    ];
    const text = definition(["4,4 Float"], ["mesh = DeviceMesh(range(2))", ...placed, ...body]);
    const model = await importModel(text, { file: "fusion.py" });
    const input = Tensor.from([0, 1, 2, 3].map((i) => [i, i + 4, i + 8, i + 12]));
    const expected = evaluateFusion(model.fusion.data(), [input], new Map()).outputs;
    const executor = await MultiDeviceExecutor.create(model.fusion, { devices: 2 });
    try {
      expect(await executor.run([input])).toEqual(expected);
    } finally {
      await executor.close();
    }
  });
});

/** nvFuser's definitions: what each op makes, beside numbers worked out by hand; their schedules; what is refused. */
import { describe, expect, it } from "vitest";
import { importModel, type ImportedModel, MultiDeviceExecutor, print, Tensor } from "@braid-compiler/braid";
import { type Diagnostic, DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";

type Numbers = Parameters<typeof Tensor.from>[0];

function read(text: string, entry?: string): Promise<ImportedModel> {
  return importModel(text, { file: "fusion.py", ...(entry === undefined ? {} : { entry }) });
}

/** As print(fd) prints a definition: inputs of these shapes, all float unless the shape says more. */
function printed(shapes: readonly string[], body: readonly string[], outputs = ["tv9"]): string {
  const inputs = shapes.map((shape, i) => {
    const [sizes = "", dtype = "Float"] = shape.split(" ");
    return `    tv${i} = fd.define_tensor(shape=[${sizes}], contiguity=[True], dtype=DataType.${dtype}, is_cpu=False)`;
  });
  const rest = [...body, ...outputs.map((name) => `fd.add_output(${name})`)].map((line) => `    ${line}`);
  return ["def nvfuser_fusion(fd : FusionDefinition) -> None :", ...inputs, ...rest].join("\n");
}

async function evaluated(
  text: string,
  inputs: readonly Numbers[],
  sizes: Readonly<Record<string, number>> = {},
): Promise<readonly Numbers[]> {
  const data = (await read(text)).fusion.data();
  const values = data.inputs.map((id, i) => Tensor.from(at(inputs, i), at(data.tensors, id).dtype));
  return evaluateFusion(data, values, new Map(Object.entries(sizes))).outputs.map((output) => Tensor.toArray(output));
}

const grid = [
  [1, 2, 3],
  [4, 5, 7],
];

describe("an op", () => {
  it.each<readonly [line: string, shapes: readonly string[], inputs: readonly Numbers[], result: Numbers]>([
    [
      "fd.ops.sub(tv0, 1.00000)",
      ["2,3"],
      [grid],
      [
        [0, 1, 2],
        [3, 4, 6],
      ],
    ],
    [
      "fd.ops.sub(10, tv0)",
      ["2,3"],
      [grid],
      [
        [9, 8, 7],
        [6, 5, 3],
      ],
    ],
    [
      "fd.ops.where(fd.ops.gt(tv0, 3), tv0, 0)",
      ["2,3"],
      [grid],
      [
        [0, 0, 0],
        [4, 5, 7],
      ],
    ],
    [
      "fd.ops.cast(tv0, dtype=DataType.Int)",
      ["2,3"],
      [grid],
      [
        [1n, 2n, 3n],
        [4n, 5n, 7n],
      ],
    ],
    ["fd.ops.add(tv0, -2 ** 2 + 2 ** 3 ** 2 + 1.)", ["1"], [[0]], [509]],
    ["fd.ops.sum(tv0, dims=[1])", ["2,3"], [grid], [6, 16]],
    ["fd.ops.sum(tv0, dims=[-1], keepdim=True)", ["2,3"], [grid], [[6], [16]]],
    ["fd.ops.sum(tv0, dims=[0, 1], dtype=DataType.Float)", ["2,3 BFloat16"], [grid], 22],
    ["fd.ops.max(tv0, dims=[0])", ["2,3"], [grid], [4, 5, 7]],
    ["fd.ops.min(tv0, 1)", ["2,3"], [grid], [1, 4]],
    ["fd.ops.prod(tv0, dims=[1], keepdim=True)", ["2,3"], [grid], [[6], [140]]],
    [
      "fd.ops.var(tv0, dims=[1], correction=0)",
      ["2,4"],
      [
        [
          [1, 3, 1, 3],
          [0, 4, 4, 0],
        ],
      ],
      [1, 4],
    ],
    ["fd.ops.broadcast(tv0, is_broadcast_dim=[False, True])", ["2"], [[5, 6]], [[5], [6]]],
    [
      "fd.ops.broadcast_in_dim(tv0, shape=[2, 3], broadcast_dims=[1])",
      ["3"],
      [[1, 2, 3]],
      [
        [1, 2, 3],
        [1, 2, 3],
      ],
    ],
    [
      "fd.ops.broadcast_in_dim(tv0, shape=[2, 3], broadcast_dims=[0])",
      ["2"],
      [[8, 9]],
      [
        [8, 8, 8],
        [9, 9, 9],
      ],
    ],
    [
      "fd.ops.broadcast_in_dim(tv0, shape=[2, 2], broadcast_dims=[0, 1])",
      ["2,1"],
      [[[8], [9]]],
      [
        [8, 8],
        [9, 9],
      ],
    ],
    [
      "fd.ops.broadcast_in_dim(tv0, shape=fd.ops.shape(tv1), broadcast_dims=[1])",
      ["3", "2,3"],
      [[1, 2, 3], grid],
      [
        [1, 2, 3],
        [1, 2, 3],
      ],
    ],
    [
      "fd.ops.expand(tv0, shape=[-1, 2])",
      ["2,1"],
      [[[8], [9]]],
      [
        [8, 8],
        [9, 9],
      ],
    ],
    ["fd.ops.squeeze(tv0, dims=[1])", ["2,1"], [[[8], [9]]], [8, 9]],
    [
      "fd.ops.reshape(tv0, new_shape=[3, 2])",
      ["2,3"],
      [grid],
      [
        [1, 2],
        [3, 4],
        [5, 7],
      ],
    ],
    [
      "fd.ops.reshape(tv0, new_shape=[3, -1])",
      ["2,3"],
      [grid],
      [
        [1, 2],
        [3, 4],
        [5, 7],
      ],
    ],
    [
      "fd.ops.permute(tv0, dims=[1, 0])",
      ["2,3"],
      [grid],
      [
        [1, 4],
        [2, 5],
        [3, 7],
      ],
    ],
    ["fd.ops.stride_order(tv0, stride_order=[0, 1])", ["2,3"], [grid], grid],
    [
      "fd.ops.slice(tv0, start_indices=[0, 1], end_indices=[2, 3], strides=[1, 1], manual_normalization=True)",
      ["2,3"],
      [grid],
      [
        [2, 3],
        [5, 7],
      ],
    ],
    [
      "fd.ops.cat([tv0, tv1], dim=1, manual_padding=0)",
      ["2,1", "2,3"],
      [[[8], [9]], grid],
      [
        [8, 1, 2, 3],
        [9, 4, 5, 7],
      ],
    ],
    [
      "fd.ops.pad(tv0, [1, 0], 9.00000)",
      ["2,1"],
      [[[1], [2]]],
      [
        [9, 1],
        [9, 2],
      ],
    ],
    ["fd.ops.pad(tv0, pad_widths=[0, 0, 1, 0])", ["2,1"], [[[1], [2]]], [[0], [1], [2]]],
    ["fd.ops.matmul(tv0, tv1)", ["2,3", "3,1"], [grid, [[1], [0], [2]]], [[7], [18]]],
    ["fd.ops.linear(tv0, tv1, tv2)", ["2,3", "1,3", "1"], [grid, [[1, 0, 2]], [100]], [[107], [118]]],
    ["fd.ops.linear(tv0, tv1, bias=None)", ["2,3", "1,3"], [grid, [[1, 0, 2]]], [[7], [18]]],
    [
      "fd.ops.add(fd.ops.full(shape=[2, 3], fill_value=2, dtype=DataType.Float), tv0)",
      ["2,3"],
      [grid],
      [
        [3, 4, 5],
        [6, 7, 9],
      ],
    ],
    ["fd.ops.add(fd.ops.cast(fd.ops.iota(3, 1, 2), dtype=DataType.Float), tv0)", ["3"], [[0, 0, 0]], [1, 3, 5]],
    ["fd.ops.select(tv0, 1, 0)", ["2,3"], [grid], [4, 5, 7]],
    [
      "fd.ops.index_select(tv0, tv1, 0)",
      ["2,3", "2 Int"],
      [grid, [1n, 1n]],
      [
        [4, 5, 7],
        [4, 5, 7],
      ],
    ],
    [
      "fd.ops.argsort(tv0, 1, descending=True)",
      ["2,3"],
      [grid],
      [
        [2n, 1n, 0n],
        [2n, 1n, 0n],
      ],
    ],
    ["fd.ops.topk(tv0, 1, 1, False)[0]", ["2,3"], [grid], [[1], [4]]],
    [
      "fd.ops.cumsum(tv0, 1)",
      ["2,3"],
      [grid],
      [
        [1, 3, 6],
        [4, 9, 16],
      ],
    ],
    ["fd.ops.take_along_axis(tv0, tv1, 1)", ["2,3", "2,1 Int"], [grid, [[2n], [0n]]], [[3], [4]]],
    [
      "fd.ops.embedding_fwd(tv0, tv1)",
      ["2 Int", "2,3"],
      [[1n, 0n], grid],
      [
        [4, 5, 7],
        [1, 2, 3],
      ],
    ],
    [
      "fd.ops.mul(tv0, fd.define_scalar(0.5, dtype=DataType.Double))",
      ["2,3"],
      [grid],
      [
        [0.5, 1, 1.5],
        [2, 2.5, 3.5],
      ],
    ],
  ])("%s", async (line, shapes, inputs, result) => {
    expect(await evaluated(printed(shapes, [`tv9 = ${line}`]), inputs)).toEqual([result]);
  });

  it("with two results gives both, variance first", async () => {
    const text = printed(
      ["2,2"],
      ["tv8, tv9 = fd.ops.var_mean(tv0, dims=[1], correction=1, keepdim=False)"],
      ["tv8", "tv9"],
    );
    expect(
      await evaluated(text, [
        [
          [1, 3],
          [0, 4],
        ],
      ]),
    ).toEqual([
      [2, 8],
      [2, 2],
    ]);
  });

  it("of attention gives its output and logsumexp", async () => {
    const text = printed(
      ["1,1,2,1", "1,1,2,1", "1,1,2,1"],
      ["tv8, tv9, seed, offset = fd.ops.sdpfa_fwd(tv0, tv1, tv2, None, None, None, True, 1.00000)"],
      ["tv8", "tv9"],
    );
    const column = (a: number, b: number): Numbers => [[[[a], [b]]]];
    const [output, logsumexp] = await evaluated(text, [column(0, 0), column(1, 2), column(5, 7)]);
    expect(output).toEqual(column(5, 6));
    expect(logsumexp).toEqual([[[0, Math.fround(Math.log(2))]]]);
  });

  it.each<[string, number]>([
    ["fd.ops.reciprocal(fd.define_scalar(4.00, dtype=DataType.Double))", 0.25],
    ["fd.ops.neg(3)", -3],
    ["fd.ops.sqrt(16)", 4],
    ["fd.ops.add(1, 2)", 3],
    ["fd.ops.sub(1, 2)", -1],
    ["fd.ops.mul(3, 2)", 6],
    ["fd.ops.truediv(1, 2)", 0.5],
  ])("of scalars makes a scalar: %s", async (line, result) => {
    const text = printed(["1"], [`S1 = ${line}`, "tv9 = fd.ops.mul(tv0, S1)"]);
    expect(await evaluated(text, [[1]])).toEqual([[result]]);
  });

  it("takes a tensor that is an output twice", async () => {
    expect(await evaluated(printed(["1"], ["tv9 = fd.ops.neg(tv0)"], ["tv9", "tv9"]), [[1]])).toEqual([[-1], [-1]]);
  });

  it("takes sizes that a run gives", async () => {
    const text = printed(
      ["-1,3", "3"],
      [
        "S2 = fd.ops.size(tv0, dim=0)",
        "tv9 = fd.ops.add(tv0, fd.ops.broadcast_in_dim(tv1, shape=[S2, 3], broadcast_dims=[1]))",
      ],
    );
    expect(await evaluated(text, [grid, [10, 20, 30]], { i0: 2 })).toEqual([
      [
        [11, 22, 33],
        [14, 25, 37],
      ],
    ]);
  });
});

/** As a program writes one: loops over tensors, sizes with names, a mesh. */
const rowParallel = `
import torch
from nvfuser_direct import DataType, FusionDefinition

d = 2
h = 2 * d  # of each device: 2


def build(chunks=3, /* rest */ tail=None):
    """Row-parallel linear."""
    with FusionDefinition() as fd:
        x = fd.define_tensor(shape=[6, h * 4], contiguity=True, dtype=DataType.Float)
        w = fd.define_tensor([h, h * 4])
        y = fd.ops.linear(x, w)
        fd.add_output(y)
        mesh = nvfuser.multidevice.DeviceMesh(torch.arange(d))
        for tv in (x, w):
            tv.set_device_mesh(mesh)
            tv.outer_split(-1, mesh.size)
            tv.axis(-2).parallelize(nvfuser.ParallelType.mesh_x)
        x.outer_split(0, chunks)
        x.axis(0).parallelize(nvfuser.ParallelType.stream)
    return fd
`.replace("/* rest */ ", "");

async function collectivesOf(text: string): Promise<string> {
  const model = await read(text);
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices: model.devices ?? 1 });
  try {
    const data = model.fusion.data();
    const inputs = data.inputs.map((id) => {
      const { dtype } = at(data.tensors, id);
      const shape = at(model.fusion.inputs, data.inputs.indexOf(id)).extents.map((extent) =>
        extent.kind === "constant" ? extent.value : 0,
      );
      const tensor = Tensor.zeros(shape, dtype);
      const count = shape.reduce((a, b) => a * b, 1);
      for (let i = 0; i < count; i++) tensor.data[i] = (i * 7) % 5;
      return tensor;
    });
    const expected = evaluateFusion(data, inputs, new Map()).outputs.map((each) => Tensor.toArray(each));
    expect((await executor.run(inputs)).map((each) => Tensor.toArray(each))).toEqual(expected);
    return Array.from(print(executor.hostProgram(0)).matchAll(/\(type=(\w+)/gu), ([, type]) => type).join(" ");
  } finally {
    await executor.close();
  }
}

/** Of two inputs and a linear, with the lines of a schedule. */
const scheduled = (...lines: readonly string[]): string =>
  [
    "with FusionDefinition() as fd:",
    ...[
      "x = fd.define_tensor([2, 6, 8])",
      "w = fd.define_tensor([4, 8])",
      "y = fd.ops.linear(x, w)",
      "fd.add_output(y)",
      "mesh = DeviceMesh(range(2))",
      "for tv in [x, w, y]: tv.set_device_mesh(mesh)",
      ...lines,
    ].map((line) => `    ${line}`),
  ].join("\n");

describe("a schedule", () => {
  it("with a stream axis over an input runs in a loop over chunks", async () => {
    expect((await read(rowParallel)).devices).toBe(2);
    expect(await collectivesOf(rowParallel)).toBe("Allreduce");
    const { fusion } = await read(rowParallel);
    expect(String(fusion.inputs[0])).toMatch(
      /\[istreamIdx\d+\{3\}, iS\d+\{2\}, ideviceIdx\.x\d+\{2\}, iS\d+\{8\}\] \(DeviceMesh\{0 1\}\)/u,
    );
  });

  it.each([
    [
      "column-parallel",
      [
        "w.outer_split(0, 2)",
        "w.axis(0).parallelize(ParallelType.mesh_x)",
        "y.outer_split(2, 2)",
        "y.axis(2).parallelize(ParallelType.mesh_x)",
      ],
      "",
    ],
    [
      "column-parallel, gathered",
      ["w.split(0, 2, inner_split=False)", "w.axis(0).parallelize(ParallelType.mesh_x)"],
      "Allgather",
    ],
    [
      "row-parallel, scattered",
      [
        "for tv in (x, w):",
        "    tv.outer_split(-1, 2)",
        "    tv.axis(-2).parallelize(ParallelType.mesh_x)",
        "y.outer_split(1, 2)",
        "y.axis(1).parallelize(ParallelType.mesh_x)",
      ],
      "ReduceScatter",
    ],
    [
      "by functions of an older nvFuser",
      [
        "fd.sched.split(w, 0, 2, False)",
        "fd.sched.parallelize(w, 0, ParallelType.mesh_x)",
        "fd.sched.set_allocation_as_loop(w)",
      ],
      "Allgather",
    ],
    [
      "with its order in memory",
      [
        "w.outer_split(0, 2)",
        "w.axis(0).parallelize(ParallelType.mesh_x)",
        "w.set_allocation_domain(w.get_loop_domain(), True)",
      ],
      "Allgather",
    ],
  ])("%s", async (_, lines, collectives) => {
    // Without a placement of its own, the output is whole.
    expect(await collectivesOf(scheduled(...lines))).toBe(collectives);
  });

  it("takes a mesh of two dimensions", async () => {
    const { fusion, devices } = await read(
      scheduled(
        "mesh = DeviceMesh(torch.arange(4).reshape(2, 2))",
        "for tv in [x, w, y]: tv.set_device_mesh(mesh)",
        "x.outer_split(0, 2)",
        "x.axis(0).parallelize(ParallelType.mesh_y)",
      ),
    );
    expect(devices).toBe(4);
    expect(String(fusion.inputs[0])).toMatch(/ideviceIdx\.y\d+\{2\}.*\(DeviceMesh\{\{0 1\}\{2 3\}\}\)/u);
  });
});

/** As nvFuser prints a region of Thunder's trace that fails, and Thunder's get_nvfuser_repro. */
const region = `
# CUDA devices:
#  0: NVIDIA H100 80GB HBM3
# torch version: 2.6.0a0+gita777dea
# nvfuser version: 0.2.15+git7616b54
import torch
from nvfuser import FusionDefinition, DataType

def nvfuser_fusion_id0(fd : FusionDefinition) -> None :
    T0 = fd.define_tensor(shape=[2, 4], contiguity=[True, True], dtype=DataType.BFloat16, is_cpu=False, stride_order=[1, 0])
    T1 = fd.define_tensor(shape=[2, 4], contiguity=[None, True], dtype=DataType.BFloat16, is_cpu=False, stride_order=[1, 0])
    T2 = fd.ops.cast(T0, dtype=DataType.Float)
    T3 = fd.ops.mul(T2, T2)
    T4 = fd.ops.sum(T3, dims=[1], keepdim=False, dtype=DataType.Null)
    T8 = fd.ops.broadcast_in_dim(T4, shape=[2, 1], broadcast_dims=[0])
    S9 = fd.define_scalar(4.00000, dtype=DataType.Double)
    S10 = fd.ops.reciprocal(S9)
    T11 = fd.ops.mul(T8, S10)
    S12 = fd.define_scalar(1.00000e-05, dtype=DataType.Double)
    T13 = fd.ops.add(T11, S12)
    T14 = fd.ops.rsqrt(T13)
    T18 = fd.ops.broadcast_in_dim(T14, shape=[2, 4], broadcast_dims=[0, 1])
    T19 = fd.ops.mul(T2, T18)
    T20 = fd.ops.cast(T1, dtype=DataType.Float)
    T21 = fd.ops.mul(T19, T20)
    T22 = fd.ops.cast(T21, dtype=DataType.BFloat16)
    fd.add_output(T14)
    fd.add_output(T22)

with FusionDefinition() as fd:
    nvfuser_fusion_id0(fd)

inputs = [
    torch.testing.make_tensor((2, 4), dtype=torch.bfloat16, device='cuda:0'),
    torch.randn(8, dtype=torch.bfloat16, device='cuda:0').as_strided((2, 4), (0, 1)),
]
fd.execute(inputs)
`;

it("the script of a region of Thunder's trace is read as a whole", async () => {
  const { outputs, devices } = await read(region);
  expect([outputs, devices]).toEqual([["out0", "out1"], null]);
  const row = [1, 1, 1, 1];
  const [scale = [], y] = await evaluated(region, [
    [
      [2, 2, 2, 2],
      [4, 4, 4, 4],
    ],
    [row, row],
  ]);
  expect([scale].flat().map((each) => Number(each).toFixed(4))).toEqual(["0.5000", "0.2500"]);
  expect(y).toEqual([row, row]);
});

describe("names and places", () => {
  it("are those of the program", async () => {
    const { inputs, outputs, fusion } = await read(rowParallel);
    expect(inputs.map(({ names }) => names)).toEqual([
      ["x", "in0"],
      ["w", "in1"],
    ]);
    expect(outputs).toEqual(["y"]);
    expect(fusion.data().tensors[0]?.origin).toEqual({
      name: "x",
      source: { path: "fusion.py", line: 12, column: 13 },
    });
  });

  it("are numbers for numbered tensors", async () => {
    const { inputs, outputs } = await read(printed(["2"], ["T9 = fd.ops.neg(tv0)"], ["T9"]).replaceAll("tv0", "T0"));
    expect([inputs[0]?.names, outputs]).toEqual([["in0"], ["out0"]]);
  });

  it("of a function are asked for where there are several", async () => {
    const two = `${printed(["2"], ["tv9 = fd.ops.neg(tv0)"])}\n\n${printed(["3"], ["tv9 = fd.ops.abs(tv0)"]).replace("nvfuser_fusion", "other")}`;
    await expect(read(two)).rejects.toThrow(/does not say which definition.*\n.*\n {2}found: nvfuser_fusion, other/u);
    expect((await read(two, "other")).fusion.inputs[0]?.extents).toMatchObject([{ value: 3 }]);
    await expect(read(two, "none")).rejects.toThrow(/the file has no function none/u);
  });
});

it("an output with alias_input is what the next run finds in that input", async () => {
  const body = ["tv9 = fd.ops.add(tv0, tv1)", "fd.add_output(tv9, alias_input=tv0)", "tv8 = fd.ops.neg(tv9)"];
  const { fusion } = await read(printed(["3", "3"], body, ["tv8"]));
  const executor = await MultiDeviceExecutor.create(fusion, { devices: 1 });
  try {
    const more = Tensor.from([10, 20, 30]);
    await executor.run([Tensor.from([1, 2, 3]), more]);
    const [over, negative] = await executor.run([null, more]);
    expect(over).toBeNull();
    expect(Tensor.toArray(at([negative], 0) ?? more)).toEqual([-21, -42, -63]);
  } finally {
    await executor.close();
  }
});

describe("what is refused", () => {
  const refusal = async (text: string): Promise<Diagnostic> => {
    const error: unknown = await read(text).catch((each: unknown) => each);
    if (!(error instanceof DiagnosticError) || error.diagnostics[0] === undefined) throw error;
    expect(error.diagnostics.length).toBe(1);
    return error.diagnostics[0];
  };

  const refused: readonly (readonly [line: string, code: string, message: RegExp])[] = [
    ["tv9 = fd.ops.lgamma(tv0)", "model-unsupported", /nvFuser's fd\.ops\.lgamma is not supported/u],
    ["tv9 = fd.ops.neg(tv0", "model-syntax", /syntax error/u],
    ["tv9 = fd.ops.neg(tv0, axis=1)", "model-unsupported", /fd\.ops\.neg takes no axis that Braid reads/u],
    ["tv9 = fd.ops.erf(3)", "model-invalid", /fd\.ops\.erf takes another x/u],
    ["tv9 = fd.ops.sdpfa_fwd(tv0, tv0, tv0, tv0)", "model-unsupported", /sdpfa_fwd with bias is not supported/u],
    ["tv9 = fd.ops.embedding_fwd(tv0, tv0, None, 2.0)", "model-unsupported", /with max_norm is not supported/u],
    ["tv9 = fd.ops.cast(tv0, dtype=DataType.Float8_e8m0fnu)", "model-unsupported", /no dtype Float8_e8m0fnu/u],
    ["tv9 = fd.ops.broadcast_in_dim(tv0, shape=[2, 3], broadcast_dims=[0, 1, 1])", "model-invalid", /another rank/u],
    ["tv9 = fd.ops.reshape(tv0, new_shape=[5, -1])", "model-unsupported", /the size that -1 stands for/u],
    ["tv9 = fd.ops.reshape(tv0, new_shape=[5])", "shape-mismatch", /./u],
    ["tv9 = tv0.to(1)", "model-unsupported", /a tensor has no method to/u],
    ["tv9 = torch.relu(tv0)", "model-unsupported", /the call of torch\.relu is not read/u],
    ["tv0.axis(0).parallelize(ParallelType.block_x)", "model-unsupported", /no parallel type block_x/u],
    ["tv0.outer_split(0, d)", "model-invalid", /outer_split takes another factor/u],
    ["tv9 = fd.ops.add(tv0, d * 2)", "model-invalid", /\* is of numbers only/u],
    ["fd.add_output(tv0, alias_input=fd.ops.neg(tv0))", "alias-invalid", /./u],
    ["if True: tv9 = tv0", "model-unsupported", /definitions with if are not read/u],
    ["tv9, tv8 = fd.ops.neg(tv0)", "model-invalid", /another number of values than names/u],
    ["tv9 = [tv0][3]", "model-invalid", /no such item/u],
    ["tv9 = range(1000000)", "model-invalid", /a range is too long/u],
    ["for i in range(60000): for j in range(60000): pass", "model-unsupported", /definition is too long/u],
    ["for i in range(60000): tv9 = range(60000)", "model-unsupported", /definition is too long/u],
    [
      "S1 = fd.ops.size(fd.define_tensor([-1]), 0); for i in range(40): S1 = fd.ops.mul(S1, S1)",
      "model-unsupported",
      /a size is computed in too many steps/u,
    ],
    ["for i in range(20000): tv0.outer_split(0, 1)", "model-unsupported", /split into too many axes/u],
    ["tv9 = fd.ops.mul(tv0, 4 // 0)", "model-invalid", /no such number/u],
    ["tv9 = fd.ops.mul(tv0, 3 @ 2)", "model-invalid", /no such number/u],
    ["tv9 = [tv0][0.5]", "model-invalid", /no such item/u],
    ["tv9 = torch.arange(6).reshape(2, 2)", "model-invalid", /another number of columns/u],
    [`tv9 = ${"2**".repeat(50_000)}1`, "model-syntax", /syntax error/u],
    ["nvfuser_fusion(fd)", "model-unsupported", /too many calls inside one another/u],
    [`tv9 = ${"(".repeat(200)}1`, "model-syntax", /syntax error/u],
    [`tv9 = ${"1+".repeat(50_000)}1`, "model-syntax", /syntax error/u],
    [`tv9 = ${"-".repeat(99_999)}tv0`, "model-invalid", /no negative of this/u],
    [" tv9 = tv0", "model-syntax", /syntax error/u],
    ["tv9 = §", "model-syntax", /syntax error/u],
  ];

  it.each(refused.map(([line, ...rest]) => [line.slice(0, 60), line, ...rest] as const))(
    "%s",
    async (_, line, code, message) => {
      const diagnostic = await refusal(printed(["2,3"], [line]));
      expect(diagnostic.code).toBe(code);
      expect(diagnostic.message).toMatch(message);
      expect(diagnostic.place).toMatchObject({ kind: "file", path: "fusion.py" });
      if (code === "model-unsupported" && !line.startsWith("nvfuser"))
        expect(diagnostic.place).toMatchObject({ line: 3 });
    },
  );

  it("a file without a definition, and a parameter without a value", async () => {
    expect(await refusal("x = 1\n")).toMatchObject({
      code: "model-invalid",
      found: "no function with fd: FusionDefinition",
    });
    expect((await refusal(rowParallel.replace("chunks=3", "chunks"))).message).toBe("chunks of build has no value");
  });
});

/** Models that were exported in parallel, with their collectives, beside what processes with gloo computed. */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { type ImportedModel, importModel } from "@braid-compiler/braid";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../../src/support/invariant.ts";
import { runRecorded } from "../run-recorded.ts";
import { expectRecorded, recorded, torchFile } from "./torch-files.ts";
import { modelFile, type WrittenNode } from "./written-model.ts";

const read = async (name: string, plan: object | null, devices?: number): Promise<ImportedModel> =>
  importModel(torchFile(name), {
    file: `${name}.pt2`,
    ...(plan === null ? {} : { plan: { text: JSON.stringify(plan), file: "plan.json" } }),
    ...(devices === undefined ? {} : { devices }),
  });

const tensorsOf = (name: string): string => path.resolve(import.meta.dirname, `../torch/${name}.io.safetensors`);

describe("what gloo computed", () => {
  it("rows gathered and sums scattered, of a group whose size the file says", async () => {
    const model = await read("parallel-mlp", null, 8);
    expect(model.devices).toBe(4);
    expect(await runRecorded(model, tensorsOf("parallel-mlp"), 4)).toBe("Allgather ReduceScatter");
  });

  it("attention of own heads and tables of each rank, whose number the user says", async () => {
    const model = await read("parallel-heads", null, 2);
    expect(await runRecorded(model, tensorsOf("parallel-heads"), 2)).toBe("Allreduce Allreduce");
  });

  it("each collective along the dimension of its group", async () => {
    const model = await read("parallel-ops", { mesh: { dp: 2, tp: 2 }, groups: { 1: "dp", 3: ["tp"] } });
    expect(await runRecorded(model, tensorsOf("parallel-ops"), 4)).toBe(
      "AllToAll Allgather Allreduce ReduceScatter Allgather Allreduce",
    );
  });
});

it("whole tensors lie as a plan places them", async () => {
  const model = await read("parallel-mlp", {
    mesh: { tp: 4 },
    inputs: { x: ["Shard(0)"] },
    outputs: { y: ["Shard(0)"] },
    "up.weight": ["Shard(0)"],
    "up.bias": ["Shard(0)"],
    "down.weight": ["Shard(1)"],
  });
  const io = await recorded("parallel-mlp");
  const as = (name: string, shape: readonly number[]): Tensor<"float"> => {
    const { data } = io.get(name) ?? {};
    return { dtype: "float", shape, data: Float32Array.from(data ?? [], Number) };
  };
  const parts = as("down.weight", [4, 16, 8]).data;
  const down = Float32Array.from({ length: 16 * 32 }, (_, i) => {
    const [row, column] = [Math.floor(i / 32), i % 32];
    return at(parts, Math.floor(column / 8) * 128 + row * 8 + (column % 8));
  });
  const given: Readonly<Record<string, Tensor>> = {
    x: as("in0", [16, 16]),
    "up.weight": as("up.weight", [32, 16]),
    "up.bias": as("up.bias", [32]),
    "down.weight": { dtype: "float", shape: [16, 32], data: down },
  };
  const inputs = model.inputs.flatMap(({ names: [name = ""] }) => given[name] ?? io.get(name) ?? []);
  const [y] = evaluateFusion(model.fusion.data(), inputs).outputs;
  expectRecorded("y", y, new Map([["y", as("y", [16, 16])]]));
});

/** Two ranks with rows of their own: 1 to 4, and 10 to 40. */
const given = Tensor.from([
  [
    [1, 2],
    [3, 4],
  ],
  [
    [10, 20],
    [30, 40],
  ],
]);

const node = (op: string, more: WrittenNode["inputs"], sizes: readonly number[]): WrittenNode => ({
  op: `.torch.ops.${op}.default`,
  inputs: { input: "x", ...more, group_name: { as_string: "tp" } },
  outputs: { y: ["float", sizes] },
});

const importNode = async (written: WrittenNode, plan: object | null = { mesh: { tp: 2 } }): Promise<ImportedModel> => {
  const bytes = modelFile({ inputs: { x: ["float", [2, 2]] }, nodes: [written], outputs: ["y"] });
  return importModel(bytes, {
    file: "m.pt2",
    ...(plan === null ? {} : { plan: { text: JSON.stringify(plan), file: "plan.json" } }),
  });
};

const reduced = (op: string): WrittenNode["inputs"] => ({ reduce_op: { as_string: op } });
const size = { group_size: 2 };

it.each<[string, WrittenNode, readonly number[]]>([
  ["a mean of ranks", node("_c10d_functional.all_reduce", reduced("avg"), [2, 2]), [5.5, 11, 16.5, 22]],
  ["a least element", node("_c10d_functional.all_reduce", reduced("min"), [2, 2]), [1, 2, 3, 4]],
  ["a product", node("_c10d_functional.all_reduce", reduced("product"), [2, 2]), [10, 40, 90, 160]],
  ["a sum in place", node("_c10d_functional.all_reduce_", reduced("sum"), [2, 2]), [11, 22, 33, 44]],
  [
    "means that are scattered",
    node("_c10d_functional.reduce_scatter_tensor", { ...reduced("avg"), ...size }, [1, 2]),
    [5.5, 11, 16.5, 22],
  ],
  [
    "the autograd form",
    node("_c10d_functional_autograd.all_gather_into_tensor", size, [4, 2]),
    [1, 2, 3, 4, 10, 20, 30, 40],
  ],
  [
    "another axis of a DTensor",
    node("_dtensor.shard_dim_alltoall", { gather_dim: 0, shard_dim: 1 }, [4, 1]),
    [1, 3, 10, 30, 2, 4, 20, 40],
  ],
  [
    "a list of tensors",
    {
      ...node("_c10d_functional.all_reduce_coalesced", reduced("sum"), [2, 2]),
      inputs: { inputs: ["x"], ...reduced("sum"), group_name: { as_string: "tp" } },
      list: true,
    },
    [11, 22, 33, 44],
  ],
])("%s", async (_, written, expected) => {
  const { fusion } = await importNode(written);
  const [output] = evaluateFusion(fusion.data(), [given]).outputs;
  expect(Array.from(output?.data ?? [], Number)).toEqual(expected);
});

const ranks = node("_c10d_functional.all_gather_into_tensor", size, [4, 2]);

it.each<[string, () => Promise<unknown>, string, RegExp]>([
  ["groups of a file that are not placed", async () => read("parallel-ops", null), "model-unsupported", /groups 3, 1/u],
  [
    "a group that a plan does not place",
    async () => read("parallel-ops", { mesh: { dp: 2, tp: 2 }, groups: { 1: "dp" } }),
    "sharding-plan-invalid",
    /group 3/u,
  ],
  [
    "a group that the model has not",
    async () => importNode(ranks, { mesh: { tp: 2 }, groups: { dp: "tp" } }),
    "sharding-plan-invalid",
    /no group dp/u,
  ],
  [
    "another dimension",
    async () => importNode(ranks, { mesh: { tp: 2 }, groups: { tp: "dp" } }),
    "sharding-plan-invalid",
    /other dimensions/u,
  ],
  ["another size", async () => importNode(ranks, { mesh: { tp: 4 } }), "sharding-plan-invalid", /another size/u],
  [
    "words for modules",
    async () => importNode(ranks, { mesh: { tp: 2 }, up: "colwise" }),
    "sharding-plan-invalid",
    /own/u,
  ],
  ["the plan of a family", async () => importModel(torchFile("parallel-mlp"), { plan: "auto" }), "bad-option", /own/u],
  [
    "groups of a whole model",
    async () => read("mlp", { mesh: { tp: 2 }, groups: { 0: "tp" } }),
    "sharding-plan-invalid",
    /no collectives/u,
  ],
  [
    "unequal parts",
    async () =>
      importNode(
        node("_c10d_functional.all_to_all_single", { output_split_sizes: [1, 3], input_split_sizes: [3, 1] }, [2, 2]),
      ),
    "model-unsupported",
    /all_to_all_single/u,
  ],
  [
    "another reduction",
    async () => importNode(node("_c10d_functional.all_reduce", reduced("bxor"), [2, 2])),
    "model-unsupported",
    /all_reduce/u,
  ],
])("refuses %s with one message", async (_, run, code, message) => {
  const error = await run().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  const found = error instanceof DiagnosticError ? error.diagnostics : [];
  expect(found.map((each) => each.code)).toEqual([code]);
  expect(`${found[0]?.message} ${found[0]?.found}`).toMatch(message);
});

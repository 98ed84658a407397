/** Graphs that PyTorch 2.13 printed, beside the .pt2 files of the same models and what gloo computed of them. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  Fusion,
  gelu,
  type ImportedModel,
  importModel,
  linear,
  lower,
  MultiDeviceExecutor,
  print,
  Tensor,
} from "@braid-compiler/braid";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { openArchive, parseDocument } from "../../../src/import/torch-export/archive.ts";
import { printFxText } from "../../../src/import/torch-export/fx-print.ts";
import { readFxText } from "../../../src/import/torch-export/fx-text.ts";
import { type ExportedGraph, readGraph } from "../../../src/import/torch-export/graph.ts";
import { withoutInPlace } from "../../../src/import/torch-export/in-place.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { at, invariant } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { runRecorded } from "../run-recorded.ts";
import { requireEqual } from "../run-text.ts";
import { torchFile, torchProgram } from "./torch-files.ts";

const folder = path.resolve(import.meta.dirname, "../torch");

const models = {
  "parallel-mlp": { devices: 4, plan: null, moved: "Allgather ReduceScatter" },
  "parallel-heads": { devices: 2, plan: null, moved: "Allreduce Allreduce" },
  "parallel-ops": {
    devices: 4,
    plan: { mesh: { dp: 2, tp: 2 }, groups: { 1: "dp", 3: ["tp"] } },
    moved: "AllToAll Allgather Allreduce ReduceScatter Allgather Allreduce",
  },
} as const;

async function read(name: keyof typeof models, model: string | Uint8Array, file: string): Promise<ImportedModel> {
  const { devices, plan } = models[name];
  return importModel(model, {
    file,
    devices,
    ...(plan === null ? {} : { plan: { text: JSON.stringify(plan), file: "plan.json" } }),
  });
}

const textOf = (name: string): string => readFileSync(path.join(folder, `${name}.fx`), "utf8");

describe.each(Object.keys(models) as (keyof typeof models)[])("%s", (name) => {
  it("computes what gloo computed", async () => {
    const model = await read(name, textOf(name), `${name}.fx`);
    const { devices, moved } = models[name];
    expect(await runRecorded(model, path.join(folder, `${name}.io.safetensors`), devices)).toBe(moved);
  });

  it("is the program of the exported file", async () => {
    const [text, file] = [await read(name, textOf(name), "graph"), await read(name, torchFile(name), "graph")];
    // Dynamo calls an argument after where it found it.
    expect(text.inputs.map(({ names }) => names[0]?.replace(/^L_(.+)_$/u, "$1"))).toEqual(
      file.inputs.map(({ names }) => names[0]),
    );
    expect(text.fusion.data().ops).toEqual(file.fusion.data().ops);
    if (name === "parallel-heads") return;
    const linesOf = ({ fusion }: ImportedModel): unknown => fusion.data().tensors.map(({ origin }) => origin?.source);
    expect(linesOf(text)).toEqual(linesOf(file));
  });
});

it("a module of parallelize_module that was compiled computes what the whole module computes", async () => {
  const plan = {
    mesh: { tp: 4 },
    inputs: {
      arg0_1: ["Shard(0)"],
      arg2_1: ["Shard(0)"],
      arg4_1: ["Shard(0)"],
      arg6_1: ["Shard(1)"],
      arg8_1: ["Replicate()"],
    },
    outputs: { y: ["Shard(0)"] },
  };
  const text = textOf("parallel-dtensor");
  const model = await importModel(text, { file: "d.fx", plan: { text: JSON.stringify(plan), file: "plan.json" } });
  const shapes = [[16, 16], [32, 16], [32], [16, 32], [16]].map((shape) => ({ dtype: "float" as const, shape }));
  const inputs = randomInputs(shapes, createRandom(1), "uniform");
  const plain = new Fusion();
  const [x, up, upBias, down, downBias] = shapes.map(({ shape }) => plain.input(shape));
  invariant(x && up && upBias && down && downBias, "there are five inputs");
  plain.output(linear(gelu(linear(x, up, upBias)), down, downBias));
  const executor = await MultiDeviceExecutor.create(model.fusion, { devices: 4 });
  try {
    requireEqual(await executor.run(inputs), evaluateFusion(plain.data(), inputs).outputs);
  } finally {
    await executor.close();
  }
});

interface RawNode {
  readonly inputs: readonly { readonly kind: number }[];
}

it.each(["llama", "phi3", "mixtral", "gpt2", "bert"])(
  "%s printed has the arguments of the file, by the names of PyTorch's schema",
  (name) => {
    const { entries } = openArchive(sourceOfBytes(torchFile(name)), name);
    const [document] = [...entries].flatMap(([entry, each]) => (entry.startsWith("models/") ? [each] : []));
    const json = parseDocument(at([document], 0) ?? { size: 0, read: () => new Uint8Array() }, name, "models");
    const graph = readGraph(json);
    const { graph_module: raw } = json.value as { readonly graph_module: { readonly graph: { nodes: RawNode[] } } };
    // Of each argument of each node, whether PyTorch gives it by name.
    const isNamed = raw.graph.nodes.map(({ inputs }) => inputs.map(({ kind }) => kind === 2));
    const { graph: found } = readFxText(
      printFxText({ graph }, (_, place, i) => isNamed[i]?.[place] === true),
      name,
    );
    const summary = ({ nodes }: ExportedGraph): unknown =>
      nodes.flatMap(({ target, inputs, outputs }) =>
        outputs.length === 0 ? [] : [[target, Object.fromEntries(inputs), outputs]],
      );
    const functional = { ...graph, ...withoutInPlace(graph) };
    expect(summary(found)).toEqual(summary(functional));
    expect(found.outputs).toEqual(functional.outputs);
  },
);

it("a plan names the modules of a graph of Dynamo by their parameters", async () => {
  const weight = (name: string): string => `L_self_modules_${name}_parameters_weight_`;
  const text = [
    `def forward(self, L_x_: "f32[2, 4]", ${weight("up")}: "f32[8, 4]", ${weight("down")}: "f32[4, 8]"):`,
    `w = ${weight("up")}`,
    'h: "f32[2, 8]" = torch._C._nn.linear(L_x_, w, None)',
    'a: "f32[2, 8]" = torch.nn.functional.silu(h, inplace = False)',
    `y: "f32[2, 4]" = torch._C._nn.linear(a, ${weight("down")}, None)`,
    "return (y,)",
  ].join("\n    ");
  const plan = { text: '{ "mesh": { "tp": 2 }, "up": "colwise", "down": "rowwise" }', file: "plan.json" };
  const { fusion } = await importModel(text, { file: "graph.txt", plan });
  expect(Array.from(print(lower(fusion)).matchAll(/\(type=(\w+)/gu), ([, type]) => type)).toEqual(["Allreduce"]);
});

it.each(["mlp", "llama", "phi3", "gpt2", "bert"])("%s as text has the ops of the file", async (name) => {
  const [text, file] = [printFxText(torchProgram(name)), torchFile(name)];
  const [printed, exported] = await Promise.all([
    importModel(text, { file: name, fold: false }),
    importModel(file, { file: name, fold: false }),
  ]);
  expect(printed.inputs.map(({ names }) => names)).toEqual(exported.inputs.map(({ names }) => names));
  expect(printed.fusion.data().ops).toEqual(exported.fusion.data().ops);
});

const forward = (...lines: readonly string[]): string =>
  ['def forward(self, x: "f32[2, 3]"):', ...lines].join("\n    ");

it("returns the tensors alone: a graph of AOTAutograd also returns None and meshes", async () => {
  const text =
    'def forward(self, x: "f32[2]", mesh):\n    y = torch.ops.aten.neg.default(x)\n    return (y, None, mesh)';
  const { inputs, outputs } = await importModel(text, { file: "graph.fx" });
  expect([inputs.map(({ names }) => names[0]), outputs]).toEqual([["x"], ["y"]]);
});

it.each<[string, readonly string[], readonly number[]]>([
  [
    "an op in place",
    [
      'y: "f32[2, 3]" = torch.ops.aten.neg.default(x)',
      'z: "f32[2, 3]" = torch.nn.functional.relu(y, inplace = True)',
      "w = y + z",
    ],
    [0, 0, 0, 8, 10, 12],
  ],
  ["a method in place", ['y: "f32[2, 3]" = torch.neg(x)', "z = y.add_(1)", "w = y + 1"], [1, 0, -1, 6, 7, 8]],
  [
    "a part that is read alone, and twice",
    ["s = torch.ops.aten.split.Tensor(x, 1)", "a = s[1]", "b = s[1]", "w = a + b"],
    [-8, -10, -12],
  ],
  [
    "parts by numbers and slices",
    ['r: "f32[2, 1, 2]" = x[(slice(None, None, None), None, slice(-2, None, None))]', "w = r[(Ellipsis, 0, 1)]"],
    [3, -6],
  ],
  ["a row, and a conversion", ['r: "f32[3]" = x[-1]', "w = r.double()"], [-4, -5, -6]],
  [
    "keywords of Python's functions",
    ['y: "f32[2, 3]" = torch.nn.functional.dropout(x, p = 0.5, training = False)', "w = torch.sum(y, axis = 1)"],
    [6, -15],
  ],
  ["a number that ends in a point", ["w = x * 2."], [2, 4, 6, -8, -10, -12]],
])("computes %s", async (_, lines, expected) => {
  const { fusion } = await importModel(forward(...lines, "return (w,)"), { file: "graph.fx" });
  const x = Tensor.from([
    [1, 2, 3],
    [-4, -5, -6],
  ]);
  expect(Tensor.values(at(evaluateFusion(fusion.data(), [x]).outputs, 0)).map((each) => Number(each) + 0)).toEqual(
    expected,
  );
});

it.each<[string, string, string, RegExp, number]>([
  ["a name of two lines", forward("x = torch.ops.aten.neg.default(x)", "return x"), "model-invalid", /make x/u, 2],
  ["part 10^9", forward("s = torch.chunk(x, 2)", "y = s[1000000000]"), "model-unsupported", /a line of a graph/u, 3],
  ["a second return", forward("return (x,)", "return (x,)"), "model-unsupported", /a line of a graph/u, 3],
  ["code without shapes", "def forward(self, x):\n    return (x,)", "model-unsupported", /print_readable/u, 2],
  ["no graph", "class GraphModule(torch.nn.Module):\n    pass", "model-syntax", /no def forward/u, 1],
  ["two graphs", `${forward("return (x,)")}\n\n${forward("return (x,)")}`, "model-syntax", /2 graphs/u, 4],
  ["a cut line", forward("y = torch.ops.aten.neg.default(x"), "model-syntax", /syntax error/u, 2],
  ["a value that nothing makes", forward("y = torch.ops.aten.neg.default(z)"), "model-invalid", /makes z/u, 2],
  ["another shape", forward('y: "f32[3, 3]" = torch.neg(x)', "return y"), "model-invalid", /another shape/u, 2],
  ["slices", forward("y = x[0:1]"), "model-syntax", /syntax error/u, 2],
  ["another op", forward("y = torch.ops.aten.fft.default(x)", "return y"), "model-unsupported", /aten\.fft/u, 2],
  ["too many arguments", forward("y = torch.ops.aten.neg.default(x, 1)"), "model-unsupported", /argument 2 of/u, 2],
  ["an unknown keyword", forward("y = torch.ops.aten.add.Tensor(x, x, aplha = 2)"), "model-unsupported", /aplha/u, 2],
  ["a keyword of another op", forward("y = x.mean(1, keep = True)"), "model-unsupported", /keyword keep of mean/u, 2],
  ["an unknown keyword of None", forward("y = torch.sum(x, out = None)"), "model-unsupported", /keyword out/u, 2],
  ["an index of another form", forward("y = x[x]"), "model-unsupported", /a line of a graph/u, 2],
  ["a dtype", forward('y: "f4e2m1fnx2[2, 3]" = torch.ops.aten.neg.default(x)'), "model-unsupported", /f4e2m1/u, 2],
  ["control flow", forward("if x: y = x"), "model-unsupported", /a line of a graph/u, 2],
  ["an output that is a number", forward("return (x, 1)"), "model-unsupported", /a line of a graph/u, 2],
  ["a module that is called", forward("y = self.linear(x)"), "model-invalid", /makes self/u, 2],
])("refuses %s with one message", async (_, text, code, message, line) => {
  const error: unknown = await importModel(text, { file: "graph.fx" }).catch((thrown: unknown) => thrown);
  const found = error instanceof DiagnosticError ? error.diagnostics : [];
  expect(found.map((each) => each.code)).toEqual([code]);
  expect(`${found[0]?.message} ${found[0]?.found} ${found[0]?.help}`).toMatch(message);
  expect(found[0]?.place).toMatchObject({ kind: "file", path: "graph.fx", line });
});

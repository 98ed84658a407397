/** Damaged and foreign files: one diagnostic each, which names the place. */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Diagnostic } from "../../../src/diagnostics/diagnostic.ts";
import { buildModel } from "../../../src/import/torch-export/build.ts";
import type { ExportedModel } from "../../../src/import/torch-export/model.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { torchFile } from "./torch-files.ts";
import { entriesOf, modelFile, type WrittenModel, type WrittenNode, zipOf } from "./written-model.ts";

function readModel(bytes: Uint8Array, path?: string): ExportedModel {
  return buildModel(readExportedProgram(sourceOfBytes(bytes), path));
}

function refused(bytes: Uint8Array): Diagnostic {
  try {
    for (const { read } of readModel(bytes, "m.pt2").inputs) read();
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(error.diagnostics.length).toBe(1);
    const [diagnostic] = error.diagnostics;
    if (diagnostic !== undefined) return diagnostic;
  }
  throw new Error("the file was read");
}

const plain: WrittenModel = {
  inputs: { x: ["float", [2, 3]] },
  parameters: { "up.weight": Tensor.zeros([4, 3]) },
  nodes: [
    {
      op: "linear.default",
      inputs: { input: "x", weight: "up_weight" },
      outputs: { y: ["float", [2, 4]] },
      module: "up",
      trace:
        'File "model.py", line 7, in forward\n  File "site-packages/torch/nn/modules/linear.py", line 134, in forward',
    },
  ],
  outputs: ["y"],
};

/** With another text in the document of the program. */
function edited(from: string | RegExp, to: string, model: WrittenModel = plain): Uint8Array {
  const entries = entriesOf(model);
  const text = String(entries["models/model.json"]);
  const changed = text.replace(from, to);
  expect(changed).not.toBe(text);
  return zipOf({ ...entries, "models/model.json": changed });
}

const node = (more: Partial<WrittenNode>): WrittenModel => ({
  ...plain,
  nodes: plain.nodes.map((each) => ({ ...each, ...more })),
});

it("reads the file that the cases below damage", () => {
  expect(readModel(modelFile(plain)).fusion.data().ops.length).toBe(1);
});

describe("archives", () => {
  const whole = modelFile(plain);
  const changed = (offset: number, byte: number): Uint8Array => {
    const bytes = Uint8Array.from(whole);
    bytes[offset] = byte;
    return bytes;
  };
  it.each<readonly [string, Uint8Array, string, RegExp]>([
    ["an empty file", new Uint8Array(), "model-syntax", /other bytes at its start/u],
    ["text", new TextEncoder().encode("import torch"), "model-syntax", /other bytes at its start/u],
    ["the half of a file", whole.slice(0, whole.length / 2), "model-syntax", /no directory at its end/u],
    ["a file without its last byte", whole.slice(0, -1), "model-syntax", /no directory at its end/u],
    ["a compressed archive", zipOf(entriesOf(plain), { method: 8 }), "model-unsupported", /by method 8/u],
    ["a name that leaves the archive", zipOf({ ...entriesOf(plain), "../x": "" }), "model-syntax", /"model\/\.\.\/x"/u],
    ["an absolute name", zipOf(entriesOf(plain), { folder: "/etc/" }), "model-syntax", /an entry named "\/etc/u],
    ["a name of Windows", zipOf({ ...entriesOf(plain), "a\\b": "" }), "model-syntax", /an entry named/u],
    ["two folders", zipOf({ "a/x": "1", "b/y": "2" }, { folder: "" }), "model-syntax", /2 folders/u],
    ["no model", zipOf({ "data.pkl": "" }), "model-unsupported", /torch\.save or TorchScript/u],
    [
      "an older format",
      zipOf({ "serialized_exported_program.json": "{}" }),
      "model-unsupported",
      /PyTorch 2\.8 or earlier/u,
    ],
    ["two models", zipOf({ ...entriesOf(plain), "models/b.json": "{}" }), "model-unsupported", /^model, b$/u],
    ["a directory that points elsewhere", changed(whole.length - 6, 1), "model-syntax", /no entry 0 of/u],
  ])("%s", (_, bytes, code, found) => {
    const diagnostic = refused(bytes);
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.found).toMatch(found);
    expect(diagnostic.place).toEqual({ kind: "file", path: "m.pt2" });
  });

  it("an entry that is longer than the file is refused", () => {
    const bytes = Uint8Array.from(whole);
    const view = new DataView(bytes.buffer);
    const directory = view.getUint32(bytes.length - 6, true);
    for (const size of [20, 24]) view.setUint32(directory + size, bytes.length, true);
    expect(refused(bytes).found).toMatch(/the end of the file within the entry/u);
  });

  it("a file that is cut anywhere is refused", () => {
    for (let length = 0; length < whole.length; length += 97)
      expect(refused(whole.slice(0, length)).code).toBe("model-syntax");
  });

  it("a recorded file with a changed byte is read or refused", () => {
    const bytes = torchFile("mlp");
    // The documents and the directory; the weights in front of them may have any bytes.
    for (let offset = bytes.length - 1; offset > bytes.length - 16_000; offset -= 211) {
      const changed = Uint8Array.from(bytes);
      changed[offset] = ((changed[offset] ?? 0) + 1) % 256;
      try {
        readModel(changed);
      } catch (error) {
        expect(error).toBeInstanceOf(DiagnosticError);
      }
    }
  });
});

describe("documents", () => {
  const at = "m.pt2: models/model.json";
  it.each<readonly [string, Uint8Array, string, string, RegExp]>([
    ["no JSON", edited(/\}$/u, ""), "model-syntax", at, /JSON/u],
    [
      "an older schema",
      edited('"major":8', '"major":7'),
      "model-unsupported",
      `${at}: schema_version`,
      /version 7 of the schema/u,
    ],
    [
      "a newer schema",
      edited('"major":8', '"major":9'),
      "model-unsupported",
      `${at}: schema_version`,
      /version 9 of the schema/u,
    ],
    [
      "a field of another type",
      edited('"nodes":[', '"nodes":7,"_":['),
      "model-invalid",
      `${at}: graph_module.graph.nodes`,
      /^7$/u,
    ],
    [
      "a field that is missing",
      edited('"target":', '"_":'),
      "model-invalid",
      `${at}: graph_module.graph.nodes[0].target`,
      /nothing/u,
    ],
    [
      "an unknown dtype",
      edited('"dtype":7', '"dtype":99'),
      "model-invalid",
      `${at}: graph_module.graph.tensor_values.up_weight.dtype`,
      /99/u,
    ],
    [
      "a value that no node makes",
      edited('{"name":"x"}},"kind"', '{"name":"z"}},"kind"'),
      "model-invalid",
      "m.pt2",
      /reads z/u,
    ],
    [
      "a node that reads its own result",
      edited('{"name":"x"}},"kind"', '{"name":"y"}},"kind"'),
      "model-invalid",
      "m.pt2",
      /reads y/u,
    ],
    [
      "another shape",
      modelFile(node({ outputs: { y: ["float", [2, 5]] } })),
      "model-invalid",
      `${at}: graph_module.graph.nodes[0]`,
      /\[2, 5\] of torch\.ops\.aten\.linear\.default, in module up/u,
    ],
    [
      "an unknown op",
      modelFile(node({ op: "fft.default" })),
      "model-unsupported",
      `${at}: graph_module.graph.nodes[0]`,
      /torch\.ops\.aten\.fft\.default, in module up/u,
    ],
    [
      "an op of another library",
      modelFile(node({ op: ".torch.ops.my.op.default" })),
      "model-unsupported",
      `${at}: graph_module.graph.nodes[0]`,
      /torch\.ops\.my\.op\.default/u,
    ],
    [
      "a dtype of PyTorch alone",
      modelFile({ ...plain, inputs: { x: ["uint8", [2, 3]] } }),
      "model-unsupported",
      "m.pt2",
      /uint8/u,
    ],
    [
      "dropout in training",
      modelFile(
        node({ op: "dropout.default", inputs: { input: "x", p: 0.5, train: true }, outputs: { y: ["float", [2, 3]] } }),
      ),
      "model-unsupported",
      `${at}: graph_module.graph.nodes[0]`,
      /dropout in training/u,
    ],
    [
      "a pickled weight",
      zipOf({
        ...entriesOf(plain),
        "data/weights/model_weights_config.json": '{"config":{"up.weight":{"use_pickle":true}}}',
      }),
      "model-unsupported",
      "m.pt2: data/weights/model_weights_config.json: config.up.weight",
      /pickle/u,
    ],
    [
      "a weight that is too short",
      zipOf({ ...entriesOf(plain), "data/weights/weight_0": new Uint8Array(44) }),
      "model-invalid",
      "m.pt2: data/weights/model_weights_config.json: config.up.weight.tensor_meta",
      /sizes/u,
    ],
  ])("%s", (_, bytes, code, path, found) => {
    const diagnostic = refused(bytes);
    expect(diagnostic.code).toBe(code);
    expect(diagnostic.place).toEqual({ kind: "file", path });
    expect(diagnostic.found).toMatch(found);
  });

  it("an unknown op is named with the line of the model", () => {
    expect(refused(modelFile(node({ op: "fft.default" }))).source).toBe("model.py:7:1");
  });

  it("an op that nothing reads is not needed", () => {
    const unread: WrittenNode = { op: "fft.default", inputs: { self: "x" }, outputs: { z: ["float", [2, 3]] } };
    expect(readModel(modelFile({ ...plain, nodes: [unread, ...plain.nodes] })).fusion.data().ops.length).toBe(1);
  });
});

it("a model that was exported without weights has inputs without values", () => {
  const entries = { ...entriesOf(plain), "data/weights/weight_0": new Uint8Array() };
  const { inputs, fusion } = readModel(zipOf(entries));
  expect(inputs.map(({ name, read }) => [name, read()])).toEqual([
    ["x", null],
    ["up.weight", null],
  ]);
  expect(fusion.data().ops.length).toBe(1);
});

it("a result that is None is left out", () => {
  const entries = entriesOf(plain);
  const document = String(entries["models/model.json"]).replace(
    '"output_specs":[',
    '"output_specs":[{"user_output":{"arg":{"as_none":true}}},',
  );
  const { outputs } = readModel(zipOf({ ...entries, "models/model.json": document }));
  expect(outputs.map(({ name }) => name)).toEqual(["y"]);
});

describe("in-place ops", () => {
  const nodes = (last: string): WrittenModel => ({
    inputs: { x: ["float", [2, 3]] },
    nodes: [
      { op: "neg.default", inputs: { self: "x" }, outputs: { a: ["float", [2, 3]] } },
      { op: "view.default", inputs: { self: "a", size: [6] }, outputs: { v: ["float", [6]] } },
      { op: "mul_.Tensor", inputs: { self: "a", other: 2 }, outputs: { b: ["float", [2, 3]] } },
      { op: "exp.default", inputs: { self: last }, outputs: { y: ["float", last === "v" ? [6] : [2, 3]] } },
    ],
    outputs: ["y"],
  });

  it("whoever reads the tensor afterwards reads the result", () => {
    const { ops } = readModel(modelFile(nodes("a"))).fusion.data();
    expect(ops.flatMap((op) => ("op" in op ? [op.op] : []))).toEqual(["neg", "mul", "exp"]);
  });

  it("a tensor that is changed twice is the second result", () => {
    const twice = nodes("a");
    const again: WrittenNode = { op: "neg_.default", inputs: { self: "a" }, outputs: { c: ["float", [2, 3]] } };
    const { ops } = readModel(modelFile({ ...twice, nodes: twice.nodes.toSpliced(3, 0, again) })).fusion.data();
    expect(ops.flatMap((op) => ("op" in op ? [op.op] : []))).toEqual(["neg", "mul", "neg", "exp"]);
  });

  it("a view of the tensor that is read afterwards is refused", () => {
    expect(refused(modelFile(nodes("v"))).found).toMatch(/^v, read after the change/u);
  });

  const returned = (name: string, ...last: readonly WrittenNode[]): WrittenModel => ({
    ...nodes("a"),
    nodes: [...nodes("a").nodes.slice(0, 3), ...last],
    outputs: [name],
  });

  it("so is one that is returned", () => {
    expect(refused(modelFile(returned("v"))).found).toMatch(/^v, read after the change/u);
  });

  it("so is the result of an earlier change, if another view is changed afterwards", () => {
    const changes: readonly WrittenNode[] = [
      { op: "select.int", inputs: { self: "a", dim: 0, index: 0 }, outputs: { s: ["float", [3]] } },
      { op: "reshape.default", inputs: { self: "a", shape: [6] }, outputs: { r: ["float", [6]] } },
      { op: "exp_.default", inputs: { self: "s" }, outputs: { t: ["float", [3]] } },
      { op: "select.int", inputs: { self: "a", dim: 0, index: 0 }, outputs: { u: ["float", [3]] } },
      { op: "neg_.default", inputs: { self: "u" }, outputs: { w: ["float", [3]] } },
    ];
    expect(refused(modelFile(returned("s", ...changes))).found).toMatch(/^s, read after the change/u);
    expect(refused(modelFile(returned("r", ...changes))).found).toMatch(/^r, read after the change/u);
  });

  it("so is a tensor of which a view was changed that Braid does not read", () => {
    const changes: readonly WrittenNode[] = [
      { op: "diagonal.default", inputs: { self: "a" }, outputs: { d: ["float", [2]] } },
      { op: "fill_.Scalar", inputs: { self: "d", value: 0 }, outputs: { f: ["float", [2]] } },
    ];
    expect(refused(modelFile(returned("a", ...changes))).found).toMatch(/^a, read after the change/u);
  });

  it("a buffer that is changed is refused, also by way of a view", () => {
    const changes: readonly WrittenNode[] = [
      { op: "select.int", inputs: { self: "kept", dim: 0, index: 0 }, outputs: { s: ["float", [3]] } },
      { op: "fill_.Scalar", inputs: { self: "s", value: 1 }, outputs: { f: ["float", [3]] } },
    ];
    const diagnostic = refused(modelFile({ ...returned("b", ...changes), buffers: { kept: Tensor.zeros([2, 3]) } }));
    expect(diagnostic.message).toBe("a model changes a buffer");
    expect(diagnostic.found).toMatch(/^kept/u);
  });

  it("a change of a view is one of the tensor", () => {
    const model = readModel(
      modelFile(
        returned(
          "a",
          { op: "transpose.int", inputs: { self: "a", dim0: 0, dim1: 1 }, outputs: { t: ["float", [3, 2]] } },
          { op: "slice.Tensor", inputs: { self: "t", dim: 0, start: 1, end: 3 }, outputs: { s: ["float", [2, 2]] } },
          { op: "unsqueeze.default", inputs: { self: "s", dim: 0 }, outputs: { q: ["float", [1, 2, 2]] } },
          { op: "select.int", inputs: { self: "q", dim: 2, index: -1 }, outputs: { l: ["float", [1, 2]] } },
          { op: "fill_.Scalar", inputs: { self: "l", value: 9 }, outputs: { f: ["float", [1, 2]] } },
          { op: "add_.Scalar", inputs: { self: "l", other: 1 }, outputs: { g: ["float", [1, 2]] } },
          { op: "permute.default", inputs: { self: "t", dims: [1, 0] }, outputs: { p: ["float", [2, 3]] } },
          { op: "select.int", inputs: { self: "p", dim: 0, index: 0 }, outputs: { h: ["float", [3]] } },
          { op: "neg_.default", inputs: { self: "h" }, outputs: { k: ["float", [3]] } },
        ),
      ),
    );
    const x = Tensor.from(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      "float",
    );
    const [y] = evaluateFusion(model.fusion.data(), [x]).outputs;
    expect(Array.from(y?.data ?? [], Number)).toEqual([2, 4, 6, -8, 10, 10]);
  });
});

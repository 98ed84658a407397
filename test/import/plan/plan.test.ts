/** Sharding plans: the words of Hugging Face, placements of DTensor, and what is wrong with a plan. */
import { describe, expect, it } from "vitest";
import { DiagnosticError, type Diagnostic } from "../../../src/diagnostics/diagnostic.ts";
import { shardedModel } from "../../../src/import/plan/apply-plan.ts";
import { autoPlan, families } from "../../../src/import/plan/auto-plan.ts";
import { parsePlan } from "../../../src/import/plan/parse-plan.ts";
import { parsePlacement } from "../../../src/import/plan/placement.ts";
import type { ExportedModel } from "../../../src/import/torch-export/model.ts";
import { sourceOfBytes } from "../../../src/import/byte-source.ts";
import { readExportedProgram } from "../../../src/import/torch-export/read.ts";
import { lower } from "../../../src/compile/lower.ts";
import { reshardings } from "../../../src/compile/reshardings.ts";
import { print } from "../../../src/host/print/print.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { torchProgram, withGradients } from "../torch-export/torch-files.ts";
import { modelFile, type WrittenNode } from "../torch-export/written-model.ts";

function planned(name: string, plan: object): ExportedModel {
  return shardedModel(torchProgram(name), parsePlan(JSON.stringify(plan), "plan.json"));
}

/** `[8{tp}, 32]`: the loop axes of a tensor, with the names of the mesh's dimensions. */
function layout(model: ExportedModel, name: string): string {
  const tensor = model.fusion.data().tensors.find(({ origin }) => origin?.name === name);
  const axes = (tensor?.domain.loop ?? []).filter(({ iterType }) => iterType !== "reduction");
  const text = axes.map(({ extent, parallelType }) => {
    const size = extent.kind === "constant" ? String(extent.value) : "?";
    const isMesh = parallelType.startsWith("DID");
    return parallelType === "Serial"
      ? size
      : `${size}{${isMesh ? tensor?.mesh?.nameOf(parallelType as "DIDx") : parallelType}}`;
  });
  return tensor?.mesh === null ? "no mesh" : `[${text.join(", ")}]`;
}

function collectives(model: ExportedModel): readonly string[] {
  return Array.from(print(lower(model.fusion)).matchAll(/type=(A\w+|R\w+)/gu), ([, type = ""]) => type);
}

function refused(plan: object | string, name = "mlp"): Diagnostic {
  try {
    shardedModel(torchProgram(name), parsePlan(typeof plan === "string" ? plan : JSON.stringify(plan), "plan.json"));
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    expect(error.diagnostics.length).toBe(1);
    const [diagnostic] = error.diagnostics;
    if (diagnostic !== undefined) return diagnostic;
  }
  throw new Error("the plan was applied");
}

const mesh = { tp: 4 };
const block = { q: "colwise", k: "colwise", v: "colwise", o: "rowwise", w1: "colwise", w3: "colwise", w2: "rowwise" };

describe("fp8", () => {
  it("quantizes the linears of a model, and their gradients, on the devices of the plan", () => {
    const scaled = (model: ExportedModel): number =>
      model.fusion.data().ops.filter((op) => op.kind === "Linear" && op.to !== undefined).length;
    const lines = { mesh: { tp: 2 }, up: "colwise", down: "rowwise" };
    expect(scaled(planned("mlp", lines))).toBe(0);
    for (const fp8 of ["rowwise", "tensorwise"]) {
      const model = planned("mlp", { ...lines, fp8, outputs: { y: ["Shard(1)"] } });
      expect(scaled(model)).toBe(2);
      const differentiated = withGradients(model, "dy");
      expect(scaled(differentiated)).toBe(5);
      expect(print(lower(differentiated.fusion))).toContain("scaled_linear(");
    }
    expect(refused({ ...lines, fp8: "columnwise" })).toMatchObject({ message: "the plan has an unknown recipe" });
  });

  it.each([
    ["words for modules", { up: "colwise", down: "rowwise" }],
    ["placements of weights", { "up.weight": ["Shard(0)"], "down.weight": ["Shard(-1)"] }],
  ])("exchanges no scales of rows that devices share: %s", (_, cut) => {
    const lines = { mesh: { tp: 2 }, ...cut, fp8: "rowwise" as const, inputs: { x: ["Shard(1)"] } };
    const model = planned("mlp", { ...lines, outputs: { y: ["Shard(1)"] } });
    // The tokens with their scales, and the sum over the features.
    expect(collectives(model)).toEqual(["Allgather", "Allgather", "ReduceScatter"]);
    const parts = model.fusion.data().markers?.map((marker) => [marker.name, marker.parts]);
    expect(parts).toContainEqual(["float8Linear", 2]);
  });
});

describe("words", () => {
  it("colwise and rowwise cut the weights of linear maps, and biases where they have the axis", () => {
    const model = planned("mlp", { mesh, up: "colwise", down: "rowwise" });
    expect(model.inputs.map(({ name }) => `${name} ${layout(model, name)}`)).toEqual([
      "x [2, 16, 64]",
      "up.weight [4{tp}, 64, 64]",
      "up.bias [4{tp}, 64]",
      "down.weight [64, 4{tp}, 64]",
      "down.bias [64]",
    ]);
    expect(collectives(model)).toEqual(["Allreduce"]);
  });

  it("of a Conv1D they cut the other axes, and packed_colwise cuts each of its parts", () => {
    const model = planned("gpt2", {
      mesh,
      "h.*.attn.c_attn": "packed_colwise",
      "h.*.attn.c_proj": "rowwise",
      "h.*.mlp.c_fc": "colwise",
      "h.*.mlp.c_proj": "rowwise",
    });
    const layer = "m.transformer.h.1";
    expect(layout(model, `${layer}.attn.c_attn.weight`)).toBe("[64, 3, 4{tp}, 16]");
    expect(layout(model, `${layer}.attn.c_attn.bias`)).toBe("[3, 4{tp}, 16]");
    expect(layout(model, `${layer}.attn.c_proj.weight`)).toBe("[4{tp}, 16, 64]");
    expect(layout(model, `${layer}.mlp.c_fc.weight`)).toBe("[64, 4{tp}, 64]");
    // Nothing is gathered to be cut in three.
    expect(collectives(model)).toEqual(["Allreduce", "Allreduce", "Allreduce", "Allreduce"]);
  });

  it("of a parameter they cut the last axis but one, or the last", () => {
    const experts = "layers.*.mlp.experts";
    const model = planned("mixtral", {
      mesh,
      [`${experts}.gate_up_proj`]: "packed_colwise",
      [`${experts}.down_proj`]: "rowwise",
      [experts]: "moe_tp_experts",
    });
    expect(layout(model, "m.model.layers.1.mlp.experts.gate_up_proj")).toBe("[4, 2, 4{tp}, 44, 64]");
    expect(layout(model, "m.model.layers.1.mlp.experts.down_proj")).toBe("[4, 64, 4{tp}, 44]");
    const plain = planned("mixtral", { mesh, [`${experts}.gate_up_proj`]: "colwise" });
    expect(layout(plain, "m.model.layers.1.mlp.experts.gate_up_proj")).toBe("[4, 4{tp}, 88, 64]");
    const bias = planned("gpt2", { mesh, "h.*.mlp.c_fc.bias": "colwise" });
    expect(layout(bias, "m.transformer.h.0.mlp.c_fc.bias")).toBe("[4{tp}, 64]");
  });

  it("of an embedding rowwise cuts the vocabulary, and colwise the vectors", () => {
    const name = "m.embeddings.word_embeddings.weight";
    expect(layout(planned("bert", { mesh, word_embeddings: "rowwise" }), name)).toBe("[4{tp}, 40, 64]");
    expect(layout(planned("bert", { mesh, word_embeddings: "colwise" }), name)).toBe("[160, 4{tp}, 16]");
  });

  it("sequence_parallel cuts the tokens of what the module returns", () => {
    const model = planned("own-block-grads", {
      mesh,
      ...block,
      n1: "sequence_parallel",
      n2: "sequence_parallel",
      inputs: { x: ["Shard(1)"] },
      outputs: { y: ["Shard(1)"] },
    });
    expect(layout(model, "m.n1/rms_norm")).toBe("[2, 4{tp}, 4, 64]");
    expect(layout(model, "m.n1.weight")).toBe("[64]");
    const found = collectives(model);
    expect(found.filter((type) => type === "ReduceScatter").length).toBe(2);
    expect(found).not.toContain("Allreduce");
  });

  it("gradients lower on more devices than there are heads of keys", () => {
    const model = withGradients(planned("own-block-grads", { mesh, ...block }), "dy");
    // A result that waits for its reader, and is then moved, is not moved into itself.
    expect(print(lower(model.fusion))).toContain("type=Allreduce");
  });

  it("colwise_gather_output gives every device the result", () => {
    const model = planned("mlp", { mesh, up: "colwise_gather_output" });
    expect(layout(model, "up/linear_copy")).toBe("[2, 16, 256]");
    expect(collectives(model)).toEqual(["Allgather"]);
  });

  it("act along tp of a mesh of several dimensions", () => {
    const model = planned("mlp", {
      mesh: { dp: 2, tp: 4 },
      up: "colwise",
      down: "rowwise",
      inputs: { x: ["Shard(0)", "Replicate()"] },
    });
    expect(layout(model, "x")).toBe("[2{dp}, 1, 16, 64]");
    expect(layout(model, "up.weight")).toBe("[4{tp}, 64, 64]");
    expect(collectives(model)).toEqual(["Allreduce"]);
  });
});

describe("placements", () => {
  it.each([
    ["Shard(0)", { kind: "shard", axis: 0, packed: 1 }],
    ["Shard(dim=-1)", { kind: "shard", axis: -1, packed: 1 }],
    ["S(1)", { kind: "shard", axis: 1, packed: 1 }],
    ["Replicate()", { kind: "replicate" }],
    ["R", { kind: "replicate" }],
    ["Partial()", { kind: "partial" }],
    ["Partial(sum)", { kind: "partial" }],
    ["Partial(max)", null],
    ["Shard()", null],
  ])("%s", (text, placement) => {
    expect(parsePlacement(text)).toEqual(placement);
  });

  it("leave a result that depends on no input on every device", () => {
    const bytes = modelFile({
      inputs: { x: ["float", [4, 2]] },
      nodes: [
        { op: "neg.default", inputs: { self: "x" }, outputs: { y: ["float", [4, 2]] } },
        { op: "arange.default", inputs: { end: 3 }, outputs: { i: ["int64", [3]] } },
        { op: "full.default", inputs: { size: [3], fill_value: 2 }, outputs: { f: ["int64", [3]] } },
        { op: "add.Tensor", inputs: { self: "i", other: "f" }, outputs: { z: ["int64", [3]] } },
      ],
      outputs: ["y", "z", "f"],
    });
    const plan = parsePlan('{ "mesh": { "tp": 4 }, "inputs": { "x": ["Shard(0)"] } }', "plan.json");
    const model = shardedModel(readExportedProgram(sourceOfBytes(bytes)), plan);
    expect(() => lower(model.fusion)).not.toThrow();
    expect(collectives(model)).toEqual([]);
  });

  it("of an axis that two dimensions cut, the outer one comes first", () => {
    const model = planned("mlp", { mesh: { dp: 2, tp: 4 }, "up.weight": ["Shard(0)", "Shard(-2)"] });
    expect(layout(model, "up.weight")).toBe("[2{dp}, 4{tp}, 32, 64]");
  });

  it("of what a module returns; a sum stays open where Braid may add it later", () => {
    const split = { mesh, up: "colwise", down: "rowwise" };
    expect(layout(planned("mlp", { ...split, activations: { down: ["Shard(1)"] } }), "down/linear_1")).toBe(
      "[2, 4{tp}, 4, 64]",
    );
    expect(layout(planned("mlp", { ...split, activations: { down: ["Partial()"] } }), "down/linear_1")).toBe("no mesh");
  });

  it("stream computes what a module returns in chunks", () => {
    const plan = { mesh, up: "colwise", down: "rowwise", stream: { down: { axis: 1, chunks: 4 } } };
    const model = planned("mlp", { ...plan, inputs: { x: ["Replicate()"] } });
    expect(print(lower(model.fusion))).toContain("FOR streamIdx");
  });
});

describe("auto", () => {
  it.each([
    ["llama", 15, "m.model.layers.1.self_attn.o_proj.weight", "[64, 4{tp}, 16]"],
    ["gpt2", 9, "m.transformer.h.1.attn.c_attn.weight", "[64, 3, 4{tp}, 16]"],
    ["bert", 12, "m.encoder.layer.1.output.dense.weight", "[64, 4{tp}, 44]"],
    ["mixtral", 9, "m.model.layers.0.mlp.experts.gate_up_proj", "[4, 2, 4{tp}, 44, 64]"],
  ])("finds the family of %s", (name, cut, weight, expected) => {
    const program = torchProgram(name);
    const model = shardedModel(program, autoPlan(program, 4));
    const weights = model.inputs.filter((each) => each.kind === "parameter" && each.tensor.rank === 2);
    expect(layout(model, weight)).toBe(expected);
    expect(weights.filter((each) => layout(model, each.name).includes("tp")).length).toBe(cut);
  });

  it.each(Object.entries(families))("%s: modules of these names get its words", (_, lines) => {
    const paths = Object.keys(lines).map((pattern) => `model.${pattern.replaceAll("*", "0")}`);
    const names = paths.map((path) => path.replaceAll(".", "_"));
    const nodes = paths.flatMap((path, i): WrittenNode[] => [
      {
        op: "linear.default",
        inputs: { input: "x", weight: `${names[i] ?? ""}_weight` },
        outputs: { [`y${i}`]: ["float", [2, 8]] },
        module: path,
      },
      {
        op: "chunk.default",
        inputs: { self: `y${i}`, chunks: 2, dim: -1 },
        outputs: { [`a${i}`]: ["float", [2, 4]], [`b${i}`]: ["float", [2, 4]] },
        list: true,
      },
    ]);
    const program = readExportedProgram(
      sourceOfBytes(
        modelFile({
          inputs: { x: ["float", [2, 8]] },
          parameters: Object.fromEntries(paths.map((path) => [`${path}.weight`, Tensor.zeros([8, 8])])),
          nodes,
          outputs: paths.flatMap((_path, i) => [`a${i}`, `b${i}`]),
        }),
      ),
    );
    const plan = autoPlan(program, 2);
    expect(Object.fromEntries(plan.modules.map(({ pattern, style }) => [pattern, style]))).toEqual(lines);
    const model = shardedModel(program, plan);
    expect(model.inputs.every(({ tensor }) => tensor.mesh !== null)).toBe(true);
  });

  it("gathers what parts of different sizes are packed in: the query heads, and one head of keys and of values", () => {
    const linear = (module: string, weight: string, input: string, output: string, width: number): WrittenNode => ({
      op: "linear.default",
      inputs: { input, weight: `${weight}_weight` },
      outputs: { [output]: ["float", [2, width]] },
      module,
    });
    const split: WrittenNode = {
      op: "split_with_sizes.default",
      inputs: { self: "y", split_sizes: [4, 2, 2], dim: -1 },
      outputs: { q: ["float", [2, 4]], k: ["float", [2, 2]], v: ["float", [2, 2]] },
      list: true,
    };
    const modules = ["h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_fc"];
    const program = readExportedProgram(
      sourceOfBytes(
        modelFile({
          inputs: { x: ["float", [2, 8]] },
          parameters: Object.fromEntries(
            modules.map((path, i) => [`${path}.weight`, Tensor.zeros([8, i === 0 ? 8 : 4])]),
          ),
          nodes: [
            linear("h.0.attn.c_attn", "h_0_attn_c_attn", "x", "y", 8),
            split,
            linear("h.0.attn.c_proj", "h_0_attn_c_proj", "q", "z", 8),
            linear("h.0.mlp.c_fc", "h_0_mlp_c_fc", "q", "w", 8),
          ],
          outputs: ["z", "w", "k", "v"],
        }),
      ),
    );
    const plan = autoPlan(program, 2);
    expect(plan.modules.map(({ style }) => style)).toEqual(["colwise_gather_output", "rowwise", "colwise"]);
    expect(layout(shardedModel(program, plan), "h.0.attn.c_attn.weight")).toBe("[2{tp}, 4, 8]");
  });

  it("cuts what norms return along the tokens, if the devices divide them and each has enough", () => {
    const sequenceOf = (name: string, devices: number, fewest?: number): readonly string[] =>
      autoPlan(torchProgram(name), devices, fewest).modules.flatMap(({ pattern, style }) =>
        style === "sequence_parallel" ? [pattern] : [],
      );
    const norms = ["input_layernorm", "post_attention_layernorm"].map((norm) => `m.model.layers.*.${norm}`);
    expect(sequenceOf("llama", 4, 0)).toEqual([...norms, "m.model.norm"]);
    expect(sequenceOf("bert", 2, 0)).toContain("m.encoder.layer.*.attention.output.LayerNorm");
    expect(sequenceOf("llama", 4)).toEqual([]);
    expect(sequenceOf("llama", 5, 0)).toEqual([]);
    expect(sequenceOf("mixtral", 4, 0)).toEqual([]);
    const model = shardedModel(torchProgram("llama"), autoPlan(torchProgram("llama"), 4, 0));
    const moves = new Set(reshardings(model.fusion).map(({ collective }) => collective));
    expect([...moves]).toEqual(expect.arrayContaining(["Allgather", "ReduceScatter"]));
    expect(moves.has("Allreduce")).toBe(false);
  });

  it("of another model is refused, with names of its modules", () => {
    expect(() => autoPlan(torchProgram("mlp"), 2)).toThrow(/modules such as up, down/u);
  });
});

describe("plans that are refused", () => {
  it.each<readonly [string, object | string, string, RegExp, RegExp]>([
    ["no JSON", "{", "plan.json", /JSON/u, /correct the file/u],
    ["a list", "[]", "plan.json", /\[\]/u, /write an object/u],
    [
      "a key twice",
      '{"mesh":{"tp":4},"up":"colwise","up":"rowwise"}',
      "plan.json",
      /given twice/u,
      /correct the file/u,
    ],
    ["no mesh", { up: "colwise" }, "plan.json: mesh", /nothing/u, /add "mesh"/u],
    ["a mesh of no size", { mesh: { tp: 0 } }, "plan.json: mesh", /"tp":0/u, /add "mesh"/u],
    ["an unknown word", { mesh, up: "colwize" }, "plan.json: up", /colwize/u, /did you mean colwise\?/u],
    ["a word of experts", { mesh, up: "grouped_gemm" }, "plan.json: up", /grouped_gemm/u, /choose one/u],
    ["a module that is not there", { mesh, upp: "colwise" }, "plan.json: upp", /upp/u, /did you mean up\?/u],
    [
      "a module of another model",
      { mesh, "layers.*.self_attn.q_proj": "colwise" },
      "plan.json: layers.*.self_attn.q_proj",
      /q_proj/u,
      /such as up, down/u,
    ],
    [
      "a parameter that is not there",
      { mesh, "up.weigth": ["Shard(0)"] },
      "plan.json: up.weigth",
      /up\.weigth/u,
      /did you mean up\.weight\?/u,
    ],
    [
      "an input that is not there",
      { mesh, inputs: { z: ["Shard(0)"] } },
      "plan.json: inputs.z",
      /^z$/u,
      /inputs, such as x/u,
    ],
    [
      "an output that is not there",
      { mesh, outputs: { z: ["Shard(0)"] } },
      "plan.json: outputs.z",
      /^z$/u,
      /outputs, such as y/u,
    ],
    [
      "too few placements",
      { mesh: { dp: 2, tp: 2 }, "up.weight": ["Shard(0)"] },
      "plan.json: up.weight",
      /Shard\(0\)/u,
      /Replicate\(\)/u,
    ],
    [
      "an axis that is not there",
      { mesh, "up.bias": ["Shard(1)"] },
      "plan.json: up.bias",
      /Shard\(1\)/u,
      /count axes/u,
    ],
    [
      "two layouts of one weight",
      { mesh, up: "colwise", "up.weight": ["Shard(1)"] },
      "plan.json: up.weight",
      /Shard\(1\), and Shard\(0\) of up/u,
      /remove one/u,
    ],
    [
      "packed of one part",
      { mesh, up: "packed_colwise" },
      "plan.json: up",
      /no chunk or split/u,
      /colwise_gather_output/u,
    ],
    ["a stream of another form", { mesh, stream: { up: { chunks: 4 } } }, "plan.json: stream.up", /4/u, /axis/u],
    [
      "a stream along no axis",
      { mesh, stream: { up: { axis: 3, chunks: 2 } } },
      "plan.json: stream.up",
      /up\/linear|T\d+_g/u,
      /tokens/u,
    ],
  ])("%s", (_, plan, path, found, help) => {
    const diagnostic = refused(plan);
    expect([diagnostic.code, diagnostic.place]).toEqual(["sharding-plan-invalid", { kind: "file", path }]);
    expect(diagnostic.found).toMatch(found);
    expect(diagnostic.help).toMatch(help);
  });

  it("a norm has no weight to cut", () => {
    expect(refused({ mesh, n1: "colwise" }, "own-block-grads").message).toBe(
      "m.n1 has no weight whose outputs can be cut",
    );
  });
});

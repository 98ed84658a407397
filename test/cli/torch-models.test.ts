/** Commands on files of torch.export: plans, gradients, sizes and recorded values. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cli, type CliRun, type ProgramFolder, programFolder } from "./captured-cli.ts";

const fixture = (name: string): string => path.resolve(import.meta.dirname, "../import/torch", name);
const mlp = fixture("mlp.pt2");
const io = fixture("mlp.io.safetensors");

let folder: ProgramFolder;
let plan: string;
beforeAll(() => {
  folder = programFolder();
  plan = folder.write("tp.json", JSON.stringify({ mesh: { tp: 4 }, up: "colwise", down: "rowwise" }));
});
afterAll(() => {
  folder.remove();
});

const recorded = ["--inputs", io, "--expect", io];

function succeeded({ status, out, err }: CliRun): string {
  expect([status, err.replaceAll(/\s+/gu, " ").trim()]).toEqual([0, ""]);
  return out;
}

describe("run", () => {
  it("runs on the devices of the plan, and gives what PyTorch computed", async () => {
    const out = succeeded(await cli("run", mlp, "--plan", plan, ...recorded, "--check"));
    expect(out).toContain("4 devices");
    expect(out).toMatch(/y: as in .*mlp\.io\.safetensors, largest error \d/u);
    expect(out).toContain("partial sum of down/linear_1");
  });

  it("ends with 1 where an output differs from the recorded one, and names the element", async () => {
    const changed = path.join(folder.path, "changed.safetensors");
    const bytes = readFileSync(io);
    // The last element of y, whose bytes end the file.
    bytes.writeFloatLE(1000, bytes.length - 4);
    writeFileSync(changed, bytes);
    const { status, out, err } = await cli("run", mlp, "--plan", plan, "--inputs", io, "--expect", changed);
    expect(status).toBe(1);
    expect(out + err).toMatch(/y, element \[1, 15, 63\]/u);
  });

  it("adds gradients, and compares them with recorded ones and with slopes", async () => {
    const values = fixture("own-block-grads.io.safetensors");
    const files = ["--inputs", values, "--expect", values];
    const out = succeeded(
      await cli("run", fixture("own-block-grads.pt2"), "--devices", "1", "--gradients", "dy", ...files),
    );
    expect(out).toMatch(/grad\.m\.w2\.weight: as in/u);
  });

  it("runs the forward pass alone, which also gives what it saves", async () => {
    const values = fixture("own-block-grads.io.safetensors");
    const files = ["--inputs", values, "--expect", values, "--devices", "1"];
    const half = ["--gradients", "dy=x,m.w2.weight", "--half", "forward:minimal"];
    const out = succeeded(await cli("run", fixture("own-block-grads.pt2"), ...half, ...files));
    expect(out).toMatch(/y: as in/u);
    expect(out).toContain("saved.0");
  });

  it.each([["s27=16"], ["i2=16"]])("takes a size by either name: --sizes %s", async (size) => {
    succeeded(await cli("run", fixture("mlp-dynamic.pt2"), "--devices", "2", "--sizes", size, ...recorded));
  });

  it("a size that is not given is that of the example", async () => {
    succeeded(await cli("run", fixture("mlp-dynamic.pt2"), "--devices", "2", ...recorded));
  });
});

describe("weights of a file", () => {
  /** As safetensors, zeros of the shape [256, 64]. */
  function zeros(name: string): string {
    const header = JSON.stringify({ [name]: { dtype: "F32", shape: [256, 64], data_offsets: [0, 65536] } });
    const length = Buffer.alloc(8);
    length.writeUInt32LE(header.length);
    const file = path.join(folder.path, `${name}.safetensors`);
    writeFileSync(file, Buffer.concat([length, Buffer.from(header), Buffer.alloc(65536)]));
    return file;
  }

  it("take the place of the model's own", async () => {
    const { status, out, err } = await cli("run", mlp, "--plan", plan, ...recorded, "--inputs", zeros("up.weight"));
    expect([status, out + err]).toEqual([1, expect.stringMatching(/y, element/u)]);
  });

  it("leave arguments random", async () => {
    succeeded(await cli("run", mlp, "--plan", plan, "--inputs", zeros("up.weight"), "--check"));
  });

  it("are refused under other names", async () => {
    const { status, err } = await cli("run", mlp, "--inputs", zeros("upp.weight"));
    expect([status, err]).toEqual([2, expect.stringMatching(/no tensor for input in0/u)]);
  });
});

it("verify, explain and lower take the file and its plan", async () => {
  succeeded(await cli("verify", mlp, "--plan", plan));
  expect(succeeded(await cli("explain", mlp, "--plan", plan, "--profile", "4xH200"))).toContain("down/linear_1");
  expect(succeeded(await cli("lower", mlp, "--plan", plan))).toContain("type=Allreduce");
});

it("takes a graph in a file of tlparse, which is known by how it begins", async () => {
  const graph = fixture("tlparse/aot_backward_graph_6.txt");
  expect(succeeded(await cli("verify", graph))).toContain("ok; 8 devices");
  const explained = await cli("explain", graph, "--profile", "4xH200", "--schedule", "attention=ops");
  expect([explained.status, explained.out.includes("predicted on 8 devices")]).toEqual([0, true]);
  const { status, out } = await cli("run", graph, "--devices", "2", "--check");
  expect([status, out.includes("getitem_20")]).toEqual([0, true]);
});

it("refuses an unknown keyword of a graph, at its place", async () => {
  const graph = folder.write("graph.txt", 'def forward(self, x: "f32[2]"):\n    y = torch.neg(x, times = 2)\n');
  const { status, err } = await cli("run", graph);
  expect([status, err.match(/error\[/gu)?.length]).toEqual([2, 1]);
  expect(err.replaceAll(/\s+/gu, " ")).toMatch(/keyword times of neg at: \S*graph\.txt:2:22/u);
});

describe("refusals end with 2 and one message", () => {
  const dynamic = fixture("mlp-dynamic.pt2");
  it.each<readonly [string, () => readonly string[], RegExp]>([
    ["a plan that is not there", () => [mlp, "--plan", `${plan}.x`], /file-unreadable.*sharding plan/u],
    [
      "a plan with another name",
      () => [mlp, "--plan", folder.write("a.json", '{"mesh":{"tp":2},"dwon":"rowwise"}')],
      /did you mean down\?/u,
    ],
    [
      "a plan for a file that has shardings",
      () => [path.resolve(import.meta.dirname, "../import/jax/mlp-tp.mlir"), "--plan", plan],
      /takes no plan/u,
    ],
    ["fewer devices than the plan has", () => [mlp, "--plan", plan, "--devices", "2"], /mesh-too-large/u],
    ["no family for auto", () => [mlp, "--plan", "auto"], /no family/u],
    ["a half without gradients", () => [mlp, "--half", "forward"], /no halves.*add --gradients dy/u],
    ["another half", () => [mlp, "--gradients", "dy", "--half", "middle"], /bad value.*forward or backward/u],
    ["more than a half", () => [mlp, "--gradients", "dy", "--half", "forward:all:2"], /bad value.*a number of bytes/u],
    ["the gradient of nothing", () => [mlp, "--gradients", "dy=dwon.weight"], /did you mean down\.weight\?/u],
    ["a size outside of the range", () => [dynamic, "--sizes", "s27=513"], /s27=513.*2 to 512/u],
    ["the half of a file", () => [folder.write("half.pt2", "PK\u0003\u0004"), "--plan", "auto"], /model-syntax/u],
  ])("%s", async (_, args, message) => {
    const { status, out, err } = await cli("run", ...args());
    expect([status, out]).toEqual([2, ""]);
    expect(err.match(/error\[/gu)?.length).toBe(1);
    expect(err.replaceAll(/\s+/gu, " ")).toMatch(message);
  });
});

/**
 * A step of training, as JAX prints the gradients of two linear layers: no rank receives more than by the collectives
 * that XLA leaves after partitioning, but where it sums over two axes at once. An all-reduce that is then sliced counts
 * as a reduce-scatter.
 */
import { expect, it } from "vitest";
import { compile, importModel } from "@braid-compiler/braid";
import { mostReceived } from "../routes/received-bytes.ts";

/** The sharding of an argument or result, by axis. */
type Cut = readonly string[];

function layers(mesh: string, x: Cut, w1: Cut, w2: Cut): string {
  const sharded = (cut: Cut): string =>
    `{sdy.sharding = #sdy.sharding<@mesh, [${cut.map((name) => (name === "" ? "{}" : `{${name}}`)).join(", ")}]>}`;
  const [tx, t1, t2, th] = ["8x16x32", "32x64", "64x32", "8x16x64"].map((shape) => `tensor<${shape}xf32>`);
  return `sdy.mesh @mesh = <[${mesh}]>
  func.func public @main(%x: ${tx} ${sharded(x)}, %w1: ${t1} ${sharded(w1)}, %w2: ${t2} ${sharded(w2)})
      -> (${tx} ${sharded(x)}, ${t1} ${sharded(w1)}, ${t2} ${sharded(w2)}) {
    %h = stablehlo.dot_general %x, %w1, contracting_dims = [2] x [0] : (${tx}, ${t1}) -> ${th}
    %a = stablehlo.multiply %h, %h : ${th}
    %y = stablehlo.dot_general %a, %w2, contracting_dims = [2] x [0] : (${th}, ${t2}) -> ${tx}
    %dy = stablehlo.tanh %y : ${tx}
    %d2 = stablehlo.dot_general %dy, %a, contracting_dims = [0, 1] x [0, 1] : (${tx}, ${th}) -> tensor<32x64xf32>
    %dw2 = stablehlo.transpose %d2, dims = [1, 0] : (tensor<32x64xf32>) -> ${t2}
    %da = stablehlo.dot_general %dy, %w2, contracting_dims = [2] x [1] : (${tx}, ${t2}) -> ${th}
    %dh = stablehlo.multiply %da, %h : ${th}
    %d1 = stablehlo.dot_general %dh, %x, contracting_dims = [0, 1] x [0, 1] : (${th}, ${tx}) -> tensor<64x32xf32>
    %dw1 = stablehlo.transpose %d1, dims = [1, 0] : (tensor<64x32xf32>) -> ${t1}
    %dx = stablehlo.dot_general %dh, %w1, contracting_dims = [2] x [1] : (${th}, ${t1}) -> ${tx}
    return %dx, %dw1, %dw2 : ${tx}, ${t1}, ${t2}
  }`;
}

const weights = 2 * 32 * 64 * 4;
const [four, two] = [`"x"=4`, `"dp"=2, "tp"=2`];

it.each([
  ["data parallel", four, [`"x"`, "", ""], ["", ""], ["", ""], 2 * weights * (3 / 4)],
  [
    "fully sharded: weights are gathered, gradients scattered",
    four,
    [`"x"`, "", ""],
    [`"x"`, ""],
    [`"x"`, ""],
    2 * weights * (3 / 4),
  ],
  [
    "fully sharded, along columns: weights are gathered too",
    four,
    [`"x"`, "", ""],
    ["", `"x"`],
    ["", `"x"`],
    2 * weights * (3 / 4),
  ],
  [
    "rows over all devices, weights over one axis",
    two,
    [`"dp", "tp"`, "", ""],
    [`"tp"`, ""],
    [`"tp"`, ""],
    weights / 2 + weights / 2 + weights / 2,
  ],
  [
    "sequences apart: gradients of weights are summed",
    four,
    ["", `"x"`, ""],
    ["", ""],
    ["", ""],
    2 * weights * (3 / 4),
  ],
  ["rows and sequences apart", two, [`"dp"`, `"tp"`, ""], ["", ""], ["", ""], 2 * weights],
] as const)("%s", async (_, mesh, x, w1, w2, bytes) => {
  const { fusion, devices } = await importModel(layers(mesh, x, w1, w2));
  const { program } = compile(fusion, { devices: devices ?? 0, verify: "off" });
  expect(mostReceived(program)).toBeLessThanOrEqual(bytes);
});

it("gradients of a weight that several steps read are added before one collective", async () => {
  const rows = (shape: string): string => `tensor<${shape}xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}`;
  const step = (i: number): string => `
    %a${i} = stablehlo.dot_general %d, %x${i}, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %b${i} = stablehlo.transpose %a${i}, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
    %s${i} = stablehlo.add %s${i - 1}, %b${i} : tensor<32x16xf32>`;
  const text = `sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%d: ${rows("8x16")}, %x1: ${rows("8x32")}, %x2: ${rows("8x32")}, %x3: ${rows("8x32")}) -> (tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %s0 = stablehlo.constant dense<0.0> : tensor<32x16xf32>
    ${[1, 2, 3].map(step).join("")}
    return %s3 : tensor<32x16xf32>
  }`;
  const { fusion } = await importModel(text);
  const { program } = compile(fusion, { devices: 4, verify: "off" });
  expect(mostReceived(program)).toBe((2 * 32 * 16 * 4 * 3) / 4);
});

it("every second column of a cut axis, and its gradient, stay where they are", async () => {
  const cut = (shape: string): string => `tensor<${shape}xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}`;
  const text = `sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%x: ${cut("4x16")}) -> (${cut("4x16")}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %odd = stablehlo.slice %x [0:4, 1:16:2] : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %d = stablehlo.cosine %odd : tensor<4x8xf32>
    %dx = stablehlo.pad %d, %zero, low = [0, 1], high = [0, 0], interior = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x16xf32>
    return %dx : tensor<4x16xf32>
  }`;
  const { fusion } = await importModel(text);
  expect(mostReceived(compile(fusion, { devices: 4, verify: "off" }).program)).toBe(0);
});

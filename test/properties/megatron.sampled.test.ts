/**
 * An MLP and an attention annotated on inputs only communicate as Megatron does: one Allreduce each, and with the
 * sequence spread over the devices one Allgather and one ReduceScatter.
 */
import { describe, expect, it } from "vitest";
import {
  add,
  amax,
  broadcast,
  DeviceMesh,
  div,
  exp,
  Fusion,
  gelu,
  linear,
  matmul,
  mul,
  permute,
  reshape,
  sub,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { shapeOf } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { runs } from "../support/suite.ts";
import { checkFusion } from "./check-graph.ts";

interface Model {
  readonly devices: number;
  readonly rows: number;
  /** The rows of activations between the layers are spread over the devices. */
  readonly sequenceParallel: boolean;
  /** Chunks of rows, which give a loop; 1 for none. */
  readonly chunks: number;
  readonly bias: boolean;
}

function spreadRows(x: TensorView, { devices, chunks }: Model): void {
  if (chunks > 1) x.outerSplit(0, chunks);
  x.outerSplit(chunks > 1 ? 1 : 0, devices).parallelize("DIDx");
}

/** y = x + down(gelu(up(x))), with up cut by columns and down by rows. */
function mlp(model: Model): Fusion {
  const { devices, rows, sequenceParallel, chunks, bias } = model;
  const f = new Fusion();
  const [x, up, down] = [f.input([rows, 6]), f.input([4 * devices, 6]), f.input([6, 4 * devices])];
  const biases = bias ? [f.input([4 * devices]), f.input([6])] : [];
  const hidden = gelu(linear(x, up, biases[0]));
  const y = linear(hidden, down, biases[1]);
  const z = add(y, x);
  f.output(z);
  for (const tensor of [x, up, down, ...biases]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  up.outerSplit(0, devices).parallelize("DIDx");
  biases[0]?.outerSplit(0, devices).parallelize("DIDx");
  down.outerSplit(1, devices).parallelize("DIDx");
  if (sequenceParallel) spreadRows(x, model);
  if (chunks > 1) hidden.outerSplit(0, chunks).parallelize("Stream");
  return f;
}

/** Softmax attention of two heads per device, with its residual. */
function attention(model: Model): Fusion {
  const { devices, rows, sequenceParallel, bias } = model;
  const [heads, width] = [2 * devices, 3];
  const hidden = heads * width;
  const f = new Fusion();
  const x = f.input([rows, 6]);
  const weights = Array.from({ length: 3 }, () => f.input([hidden, 6]));
  const out = f.input([6, hidden]);
  const biases = bias ? [...weights.map(() => f.input([hidden])), f.input([6])] : [];
  // [rows, hidden] to [heads, rows, width].
  const [q, k, v] = weights.map((weight, i) =>
    permute(reshape(linear(x, weight, biases[i]), [rows, heads, width]), [1, 0, 2]),
  ) as [TensorView, TensorView, TensorView];
  const scores = mul(matmul(q, permute(k, [0, 2, 1])), 0.5);
  const spread = (perRow: TensorView): TensorView => broadcast(perRow, [false, false, true]);
  const shifted = exp(sub(scores, spread(amax(scores, [2]))));
  const attended = matmul(div(shifted, spread(sum(shifted, [2]))), v);
  const merged = reshape(permute(attended, [1, 0, 2]), [rows, hidden]);
  const z = add(linear(merged, out, biases[3]), x);
  f.output(z);
  for (const tensor of [x, ...weights, out, ...biases]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const weight of [...weights, ...biases.slice(0, 3)]) weight.outerSplit(0, devices).parallelize("DIDx");
  out.outerSplit(1, devices).parallelize("DIDx");
  if (sequenceParallel) spreadRows(x, model);
  return f;
}

/** In the long suite: running all of them takes seconds. */
async function expectNear(fusion: Fusion, devices: number): Promise<void> {
  if (runs({ quick: 0, long: 1 }) === 0) return;
  const { inputs, tensors } = fusion.data();
  const shapes = inputs.map((id) => shapeOf(at(tensors, id), new Map()));
  expect(await checkFusion({ fusion, devices, shapes }, { streams: 2 }, 1)).toMatchObject({ refused: null });
}

const plain: Model = { devices: 2, rows: 8, sequenceParallel: false, chunks: 1, bias: false };
const spreadOut: Model = { ...plain, sequenceParallel: true };

describe.each([
  ["MLP", mlp],
  ["attention", attention],
] as const)("%s", (_, build) => {
  it.each([plain, { ...plain, devices: 4, bias: true }, { ...plain, devices: 3, rows: 7, bias: true }])(
    "tensor parallel, $devices devices, $rows rows, bias $bias: one Allreduce",
    async (model) => {
      expect(collectivesOf(build(model), model.devices)).toBe("Allreduce 1");
      await expectNear(build(model), model.devices);
    },
  );

  it.each([spreadOut, { ...spreadOut, devices: 4, bias: true }, { ...spreadOut, devices: 3, rows: 7, bias: true }])(
    "sequence parallel, $devices devices, $rows rows, bias $bias: one Allgather, one ReduceScatter",
    async (model) => {
      expect(collectivesOf(build(model), model.devices)).toBe("Allgather 1, ReduceScatter 1");
      await expectNear(build(model), model.devices);
    },
  );
});

describe("MLP in chunks of rows", () => {
  it.each([
    [{ ...plain, chunks: 2, bias: true }, "Allreduce 1"],
    [{ ...spreadOut, chunks: 2, bias: true }, "Allgather 1, ReduceScatter 1"],
    [{ ...spreadOut, rows: 13, chunks: 3 }, "Allgather 1, ReduceScatter 1"],
  ])("%o has the same in one loop", async (model, expected) => {
    expect(collectivesOf(mlp(model), model.devices)).toBe(expected);
    await expectNear(mlp(model), model.devices);
  });
});

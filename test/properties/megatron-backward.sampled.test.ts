/**
 * The backward pass of Megatron's MLP, annotated on inputs only, communicates as Megatron does, and computes what the
 * unsharded program computes.
 */
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  type DType,
  Fusion,
  gelu,
  type GradientRequest,
  gradients,
  layerNorm,
  linear,
  splitBackward,
  type TensorView,
} from "@braid-compiler/braid";
import { shapeOf } from "../../src/ir/sizes.ts";
import { at } from "../../src/support/invariant.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { runs } from "../support/suite.ts";
import { checkFusion } from "./check-graph.ts";

interface Model {
  readonly devices: number;
  /** Rows of activations between the layers are spread over the devices. */
  readonly sequenceParallel: boolean;
  /** float by default. */
  readonly dtype?: DType;
}

const [tokens, hidden, width] = [16, 8, 32];

/** z = x + down(gelu(up(layerNorm(x)))), with biases. */
function block({ devices, sequenceParallel, dtype = "float" }: Model): {
  readonly f: Fusion;
  readonly request: GradientRequest;
} {
  const f = new Fusion();
  const input = (...extents: readonly number[]): TensorView => f.input(extents, dtype);
  const [x, dz] = [input(tokens, hidden), input(tokens, hidden)];
  const [gain, shift] = [input(hidden), input(hidden)];
  const [up, upBias] = [input(width, hidden), input(width)];
  const [down, downBias] = [input(hidden, width), input(hidden)];
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
  if (sequenceParallel) for (const rows of [x, dz]) rows.outerSplit(0, devices).parallelize("DIDx");
  for (const columns of [up, upBias]) columns.outerSplit(0, devices).parallelize("DIDx");
  down.outerSplit(1, devices).parallelize("DIDx");
  const activation = gelu(linear(layerNorm(x, gain, shift), up, upBias), "tanh");
  const z = add(linear(activation, down, downBias), x);
  f.output(z);
  const wrt = [x, up, down, upBias, downBias, gain, shift];
  return { f, request: { of: [z], cotangents: [dz], wrt } };
}

function joint(model: Model): Fusion {
  const { f, request } = block(model);
  for (const gradient of gradients(f, request)) if (gradient !== null) f.output(gradient);
  return f;
}

async function expectNear(fusion: Fusion, devices: number): Promise<void> {
  const { inputs, tensors } = fusion.data();
  const shapes = inputs.map((id) => shapeOf(at(tensors, id), new Map()));
  expect(await checkFusion({ fusion, devices, shapes }, { streams: 2 }, 1)).toMatchObject({ refused: null });
}

const sizes = [2, 4, 8].slice(0, runs({ quick: 1, long: 3 }));

describe("tensor parallel", () => {
  it.each(sizes)("on %i devices: an Allreduce each way", (devices) => {
    expect(collectivesOf(joint({ devices, sequenceParallel: false }), devices)).toBe("Allreduce 2");
  });
});

describe("tensor and sequence parallel", () => {
  it.each(sizes)("on %i devices: an Allgather and a ReduceScatter each way, and small Allreduces", (devices) => {
    const model = { devices, sequenceParallel: true };
    // The gradients of the norm's weight and bias, and of the bias after the ReduceScatter.
    expect(collectivesOf(joint(model), devices)).toBe("Allgather 2, ReduceScatter 2, Allreduce 3");
  });

  it.each(sizes)("on %i devices, in two programs: the backward pass gathers the norm's rows again", (devices) => {
    const { f, request } = block({ devices, sequenceParallel: true });
    const { forward, backward } = splitBackward(f, request);
    expect(collectivesOf(forward, devices)).toBe("Allgather 1, ReduceScatter 1");
    expect(collectivesOf(backward, devices)).toBe("Allgather 2, Allreduce 3, ReduceScatter 1");
  });
});

describe("results", () => {
  it.each([1, ...sizes])("on %i devices are those of the unsharded program", async (devices) => {
    for (const sequenceParallel of [false, true]) {
      await expectNear(joint({ devices, sequenceParallel }), devices);
      if (runs({ quick: 0, long: 1 }) === 0) continue;
      await expectNear(joint({ devices, sequenceParallel, dtype: "bfloat16" }), devices);
      const { f, request } = block({ devices, sequenceParallel });
      for (const policy of ["all", "minimal"] as const) {
        const { forward, backward } = splitBackward(f, request, policy);
        await expectNear(forward, devices);
        await expectNear(backward, devices);
      }
    }
  });
});

/**
 * Models without Stream under `deviceLoops`: what becomes a loop, and runs on worker threads and with sizes that are known
 * at run time. device-loops.sampled.test.ts compares results.
 */
import { describe, expect, it } from "vitest";
import {
  compile,
  DeviceMesh,
  Fusion,
  linear,
  lower,
  MultiDeviceExecutor,
  set,
  type TensorView,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import type { Statement } from "../../src/host/nodes.ts";
import { walk } from "../../src/host/traverse.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { builtModel, inputsOf, type ModelName, outputsOf } from "../support/model-runs.ts";

interface Loops {
  /** Of each loop over the devices: exchanges and GEMMs. */
  readonly loops: readonly (readonly [exchanges: number, gemms: number])[];
  readonly left?: string;
  readonly without: string;
}

describe("loops that take the place of collectives", () => {
  const expected = {
    mlp: {
      loops: [
        [1, 1],
        [1, 1],
      ],
      without: "Allgather 1, ReduceScatter 1",
    },
    gated: {
      loops: [
        [1, 2],
        [1, 1],
      ],
      without: "Allgather 1, ReduceScatter 1",
    },
    grid: {
      loops: [
        [1, 1],
        [1, 1],
      ],
      without: "Allgather 2, ReduceScatter 2",
    },
    "weights gathered": {
      loops: [
        [1, 1],
        [1, 1],
      ],
      without: "Allgather 2",
    },
    "readers of one": { loops: [[1, 2]], without: "Allgather 1" },
    "columns kept": { loops: [[1, 2]], without: "ReduceScatter 1" },
    "gated, backward": {
      loops: [
        [2, 3],
        [2, 3],
      ],
      left: "Allreduce 1",
      without: "Allgather 2, ReduceScatter 2, Allreduce 1",
    },
    "weights gathered, backward": {
      loops: [
        [1, 1],
        [2, 2],
        [1, 1],
      ],
      left: "",
      without: "Allgather 2, ReduceScatter 2",
    },
  } as const satisfies { readonly [N in ModelName]?: Loops };

  it.each(keysOf(expected))("%s", (name) => {
    const { fusion, devices } = builtModel(name, { devices: 3, rows: 9, hidden: 6, dtype: "float" });
    const countsOf = (statement: Statement): readonly [exchanges: number, gemms: number] => {
      const kinds = walk([statement]).map(({ kind }) => kind);
      const exchanges = kinds.filter((kind) => kind === "EndCoalescing").length;
      return [exchanges, kinds.filter((kind) => kind === "Linear" || kind === "Matmul").length];
    };
    const { body } = lower(fusion, { deviceLoops: true });
    expect({
      loops: body
        .filter(({ kind }) => kind === "ForLoop")
        .map(countsOf)
        .filter(([exchanges]) => exchanges > 0),
      left: collectivesOf(fusion, devices, { deviceLoops: true }),
      without: collectivesOf(fusion, devices),
    }).toEqual({ left: "", ...expected[name] });
  });
});

it("a share of a sum arrives in one piece of memory, also where devices keep columns", () => {
  const { fusion, devices } = builtModel("columns kept", { devices: 3, rows: 9, hidden: 6, dtype: "float" });
  const options = { devices, backend: "cuda", protocol: "put", deviceLoops: true } as const;
  const { ranks, buffers } = compile(fusion, options).program;
  const arriving = ranks.flatMap(({ rank, commands }) =>
    commands.flatMap((each) =>
      each.kind === "copy" && at(buffers, each.destination.buffer).rank !== rank ? [each.destination] : [],
    ),
  );
  expect(arriving.map(({ shape }) => shape)).toEqual(Array.from({ length: 6 }, () => [9, 2]));
  expect(arriving.map(({ strides }) => strides)).toEqual(arriving.map(() => [2, 1]));
});

it.each([
  ["gated", { devices: 2, rows: 7, hidden: 9, dtype: "float" }, "put"],
  ["sequences, backward", { devices: 3, rows: 8, hidden: 12, dtype: "bfloat16" }, "get"],
] as const)("on worker threads: %s", async (name, sizes, protocol) => {
  const { fusion, devices } = builtModel(name, sizes);
  const schedule = { inPlace: true, ownLast: true, computeStreams: 1 } as const;
  await expectOracle(fusion, {
    devices,
    backend: "cuda",
    protocol,
    deviceLoops: true,
    schedule,
    streams: 8,
    rounds: true,
  });
});

it("rows that are known at run time", async () => {
  const { fusion, devices } = builtModel("mlp, backward", { devices: 3, rows: null, hidden: 5, dtype: "float" });
  const on = createCpuBackend({ workers: 0 });
  const executor = await MultiDeviceExecutor.create(fusion, { devices, backend: "cuda", deviceLoops: true, on });
  try {
    for (const rows of [7, 0, 1, 9]) {
      const given = builtModel("mlp, backward", { devices: 3, rows, hidden: 5, dtype: "float" });
      const inputs = inputsOf(given.fusion, rows);
      expect(await executor.run(inputs)).toEqual(
        await outputsOf(given.fusion, { devices, overlap: false, on }, inputs),
      );
    }
  } finally {
    await executor.close();
  }
});

describe("an exchange of rows", () => {
  it.each([
    ["in runs of 4 and 2", (y: TensorView) => y.split(1, 4)],
    ["in one chunk of two shares", (y: TensorView) => y.outerSplit(1, 1)],
  ] as const)("%s", async (_, cut) => {
    const f = new Fusion();
    const x = f.input([2, 6], "float");
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(2));
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    const parts = cut(y);
    if (parts === y) y.axis(1).parallelize("DIDx");
    else y.outerSplit(2, 2).parallelize("DIDx");
    for (const backend of ["nccl", "cuda"] as const) await expectOracle(f, { devices: 2, backend, streams: 2 });
  });

  it("that changes two types of a mesh", async () => {
    const f = new Fusion();
    const [x, w] = [f.input([2, 6, 4], "float"), f.input([5, 4], "float")];
    const y = linear(x, w);
    const z = set(y);
    f.output(z);
    for (const tensor of [x, w, y, z]) tensor.setDeviceMesh(DeviceMesh.ofShape([2, 2]));
    for (const tensor of [x, y]) tensor.axis(0).parallelize("DIDx");
    z.axis(0).parallelize("DIDy");
    z.outerSplit(1, 2).parallelize("DIDx");
    await expectOracle(f, { devices: 4, backend: "cuda", deviceLoops: true, streams: 4 });
  });
});

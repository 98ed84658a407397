/**
 * Which GEMMs `ownLast` moves: those whose first signal comes later than that of a later GEMM of the same kernel, unless
 * that one waits for something to arrive.
 */
import {
  add,
  compile,
  DeviceMesh,
  Fusion,
  gelu,
  groupedMatmul,
  linear,
  neg,
  type Program,
  scaledLinear,
  set,
  sum,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { isGemmKernel } from "../../src/commands/kernel.ts";
import { isGemmLaunch } from "../../src/schedule/draft/gemm-axes.ts";
import { ownChunkLast } from "../../src/schedule/rewrites/own-chunk-last.ts";
import { at } from "../../src/support/invariant.ts";
import { combinations } from "../support/split-cases.ts";
import { hosted, type HostTensors, product, send } from "./exchanges.ts";
import { outputsOf } from "./programs.ts";

const devices = 3;
const [rows, width] = [9, 6];

/** MLPs with sequence parallelism, one after the other: each gathers rows, and scatters them again. */
function mlps(layers: number, hidden: number): Fusion {
  const f = new Fusion();
  const on = (tensor: TensorView, cut: number): TensorView => {
    tensor.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(cut, devices).parallelize("DIDx");
    return tensor;
  };
  let x = on(f.input([rows, width]), 0);
  for (let layer = 0; layer < layers; layer++) {
    const [up, down] = [on(f.input([hidden, width]), 0), on(f.input([width, hidden]), 1)];
    x = add(x, linear(gelu(linear(x, up)), down));
  }
  f.output(x);
  return f;
}

/**
 * The chunks of rows that a rank's GEMMs compute, in list order: of each MLP those that make the hidden features, then
 * those that read them.
 */
function chunksOf(program: Program, rank: number): readonly number[] {
  const launches = at(program.ranks, rank).commands.filter((command) => isGemmLaunch(command, program));
  return launches.flatMap((command, i) => {
    if (command.kind !== "launch") return [];
    const { inputs, outputs } = at(program.kernels, command.kernel);
    const makesHidden = i % (2 * devices) < devices;
    const { shape } = at(makesHidden ? outputs : inputs, 0);
    const { offset } = at(makesHidden ? command.outputs : command.inputs, 0);
    return [offset / (4 * at(shape, 0) * at(shape, 1))];
  });
}

describe("a gather's loop, then a reduce-scatter's", () => {
  /** Of a device, all chunks, beginning with the own one or the one after it. */
  const from = (first: number): readonly number[] => [0, 1, 2].map((step) => (first + step) % devices);

  // With 18 hidden features the GEMMs of both loops have one kernel.
  it.each(
    combinations<{ layers: number; hidden: number; protocol: "get" | "put" }>({
      layers: [1, 2],
      hidden: [18, 12],
      protocol: ["get", "put"],
    }),
  )(
    "$layers MLPs with $hidden hidden features, by $protocol: the own chunk is the first gathered and the last scattered",
    async ({ layers, hidden, protocol }) => {
      const options = {
        devices,
        streams: devices,
        backend: "cuda",
        protocol,
        deviceLoops: true,
        verify: "off",
      } as const;
      const { program } = compile(mlps(layers, hidden), options);
      const moved = ownChunkLast.run(program, true);
      for (const { rank } of program.ranks) {
        const each = Array.from({ length: layers });
        expect(chunksOf(program, rank)).toEqual(each.flatMap(() => [...from(rank), ...from(rank)]));
        expect(chunksOf(moved, rank)).toEqual(each.flatMap(() => [...from(rank), ...from(rank + 1)]));
      }
      expect(verify(moved, { notes: false, full: true }).findings).toEqual([]);
      expect(await outputsOf(moved, "seed:2")).toBe(await outputsOf(program, "seed:1"));
    },
  );
});

/** A Program of two ranks, and the buffers that rank 0's GEMMs write, in list order, by the names that `build` gives. */
function ordered(
  build: (tensors: HostTensors, gemm: (name: string, x: TensorView, target: TensorView) => void) => void,
  protocol: "get" | "put" = "get",
): { readonly program: Program; readonly order: (program: Program) => readonly string[] } {
  const names: string[] = [];
  const program = hosted(
    (tensors) => {
      const weight = tensors.input();
      build(tensors, (name, x, target) => {
        if (tensors.rank === 1) return;
        names.push(name);
        tensors.h.matmul(x, weight, { out: target });
      });
    },
    { world: 2, protocol },
  );
  const gemms = ({ ranks, kernels }: Program): readonly string[] =>
    at(ranks, 0).commands.flatMap((command) =>
      command.kind === "launch" && isGemmLaunch(command, { kernels })
        ? [JSON.stringify([command.inputs[0], command.outputs])]
        : [],
    );
  const recorded = gemms(program);
  expect(recorded).toHaveLength(names.length);
  return { program, order: (other) => gemms(other).map((each) => at(names, recorded.indexOf(each))) };
}

/** From rank 0 to rank 1, by the library. */
function transfer({ h, rank }: HostTensors, buffer: TensorView): void {
  h.startCoalescing();
  if (rank === 0) h.send(buffer, { peer: 1 });
  else h.recv(buffer, { peer: 0 });
  h.wait(h.endCoalescing());
}

describe("a GEMM that no peer waits for yet", () => {
  it("goes after one that a peer waits for", () => {
    const { program, order } = ordered(({ h, rank, input, output, temporary }, gemm) => {
      const [x, y, sent] = [input(), input(), temporary(product)];
      gemm("own", x, output(product));
      gemm("sent", y, sent);
      send(h, rank, 0, 1, sent);
      h.deallocate(sent);
    });
    expect(order(ownChunkLast.run(program, true))).toEqual(["sent", "own"]);
  });

  it("goes after it also where its result is sent later", async () => {
    const { program, order } = ordered(({ h, rank, input, temporary }, gemm) => {
      const [x, y, own, sent, total] = [input(), input(), temporary(product), temporary(product), temporary()];
      gemm("own", x, own);
      gemm("sent", y, sent);
      send(h, rank, 0, 1, sent);
      if (rank === 0) h.add(own, own, { out: total });
      send(h, rank, 0, 1, total);
      for (const each of [own, sent, total]) h.deallocate(each);
    });
    const moved = ownChunkLast.run(program, true);
    expect(order(moved)).toEqual(["sent", "own"]);
    expect(verify(moved, { notes: false }).findings).toEqual(verify(program, { notes: false }).findings);
    expect(await outputsOf(moved, "seed:2")).toBe(await outputsOf(program, "seed:1"));
  });

  it("takes along what reads it, and goes no further than the last that a peer waits for earlier", () => {
    const { program, order } = ordered(({ h, rank, input, output, temporary }, gemm) => {
      const [own, sent] = [temporary(product), [temporary(product), temporary(product)]] as const;
      gemm("own", input(), own);
      gemm("reads own", own, output(product));
      for (const [i, each] of sent.entries()) {
        gemm(`sent ${i}`, input(), each);
        send(h, rank, 0, 1, each);
      }
      gemm("other", input(), output(product));
      for (const each of [own, ...sent]) h.deallocate(each);
    });
    expect(order(ownChunkLast.run(program, true))).toEqual(["sent 0", "sent 1", "own", "reads own", "other"]);
  });
});

it("a GEMM that another GEMM reads stays, and that one moves", () => {
  const narrow = [3, 6, { reduced: 6 }] as const;
  const { program, order } = ordered(({ h, rank, input, output, temporary }, gemm) => {
    const [x, own, between, sent] = [input(), temporary(product), temporary(product), temporary(narrow)];
    gemm("own", x, own);
    gemm("own, narrow", h.slice(own, [0, 0], [3, 6]), output(narrow));
    gemm("between", x, between);
    gemm("sent, narrow", h.slice(between, [0, 0], [3, 6]), sent);
    send(h, rank, 0, 1, sent);
    for (const each of [own, between, sent]) h.deallocate(each);
  });
  expect(order(ownChunkLast.run(program, true))).toEqual(["own", "between", "sent, narrow", "own, narrow"]);
});

describe("a GEMM stays", () => {
  it("before one that waits for an arrival, beside which it runs", () => {
    const { program } = ordered(({ h, rank, input, output, temporary }, gemm) => {
      const [x, arrived, sent] = [input(), temporary(), temporary(product)];
      gemm("own", x, output(product));
      send(h, rank, 1, 0, rank === 1 ? x : arrived);
      gemm("sent", arrived, sent);
      send(h, rank, 0, 1, sent);
      for (const each of [arrived, sent]) h.deallocate(each);
    });
    expect(ownChunkLast.run(program, true)).toBe(program);
  });

  it("before one that reads its result", () => {
    const { program } = ordered(({ h, rank, input, temporary }, gemm) => {
      const [own, sent] = [temporary(product), temporary(product)];
      gemm("own", input(), own);
      gemm("sent", own, sent);
      send(h, rank, 0, 1, sent);
      for (const each of [own, sent]) h.deallocate(each);
    });
    expect(ownChunkLast.run(program, true)).toBe(program);
  });

  it("before one of another kernel", () => {
    const { program } = ordered(({ h, rank, input, output, temporary }, gemm) => {
      const sent = temporary([3, 6, { reduced: 6 }]);
      gemm("own", input(), output(product));
      gemm("sent", input([3, 6]), sent);
      send(h, rank, 0, 1, sent);
      h.deallocate(sent);
    });
    expect(ownChunkLast.run(program, true)).toBe(program);
  });

  it("where the library sends what a GEMM computes from it", () => {
    const { program } = ordered((tensors, gemm) => {
      const { h, input, temporary } = tensors;
      const [own, further, sent] = [temporary(product), temporary(product), temporary(product)];
      gemm("own", input(), own);
      gemm("further", own, further);
      transfer(tensors, further);
      gemm("sent", input(), sent);
      transfer(tensors, sent);
      for (const each of [own, further, sent]) h.deallocate(each);
    });
    expect(ownChunkLast.run(program, true)).toBe(program);
  });

  it("where a GEMM that overwrites its result is sent before the last one", () => {
    const { program } = ordered(({ h, rank, input, output, temporary }, gemm) => {
      const [slot, sent] = [temporary(product), temporary(product)];
      gemm("own", input(), slot);
      if (rank === 0) h.set(slot, { out: output() });
      gemm("sent from its slot", input(), slot);
      send(h, rank, 0, 1, slot);
      gemm("sent", input(), sent);
      send(h, rank, 0, 1, sent);
      for (const each of [slot, sent]) h.deallocate(each);
    }, "put");
    expect(ownChunkLast.run(program, true)).toBe(program);
  });
});

it("knows GEMMs of 8-bit floats, which are units with their scales", () => {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const a = f.input([devices, devices, 4, 16], "float8_e4m3fn");
  const b = f.input([devices, 8, 16], "float8_e4m3fn");
  const [ofA, ofB] = [f.input([devices, devices, 4]), f.input([devices, 8])];
  const partial = scaledLinear(a, b, ofA, ofB, { dtype: "bfloat16" });
  const c = sum(partial, [0]);
  f.output(c);
  for (const tensor of [a, b, ofA, ofB, partial, c]) tensor.setDeviceMesh(mesh);
  for (const tensor of [a, b, ofA, ofB]) tensor.axis(0).parallelize("DIDx");
  for (const tensor of [a, ofA]) tensor.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  for (const tensor of [partial, c]) tensor.axis(1).parallelize("DIDx");
  const schedule = { inPlace: true, ownLast: true, computeStreams: 1 };
  const options = { devices, backend: "cuda", protocol: "put", insertReshardingAfter: true, schedule } as const;
  const { program } = compile(f, options);
  for (const { rank, commands } of program.ranks) {
    const launches = commands.filter((command) => isGemmLaunch(command, program));
    const parts = launches.map((command) => (command.kind === "launch" ? at(command.inputs, 0).offset / 64 : -1));
    expect(parts).toEqual([1, 2, 0].map((step) => (rank + step) % devices));
    expect(new Set(launches.map(({ stream }) => stream)).size).toBe(1);
  }
  expect(verify(program).ok).toBe(true);
});

it("knows matmuls of groups, whose rows have arrived for an earlier one", () => {
  const f = new Fusion();
  const mesh = DeviceMesh.range(2);
  const [x, used] = [f.input([4, 2, 3, 8]), f.input([4, 2, 1], "int64")];
  const [up, down] = [f.input([4, 1, 1, 8, 6]), f.input([4, 1, 1, 6, 8])];
  const [rows, counts] = [set(x), set(used)];
  const y = set(groupedMatmul(neg(groupedMatmul(rows, up, counts)), down, counts));
  f.output(y);
  for (const tensor of [x, used, up, down, rows, counts, y]) tensor.setDeviceMesh(mesh);
  for (const tensor of [x, used, y]) tensor.axis(1).parallelize("DIDx");
  for (const tensor of [up, down, rows, counts]) tensor.outerSplit(0, 2).parallelize("DIDx");
  const schedule = { inPlace: true, ownLast: true, computeStreams: 1 };
  const { program } = compile(f, { devices: 2, backend: "cuda", protocol: "put", deviceLoops: true, schedule });
  for (const { rank, commands } of program.ranks) {
    const launches = commands.flatMap((command) =>
      command.kind === "launch" && isGemmKernel(at(program.kernels, command.kernel)) ? [command] : [],
    );
    // The chunk of a source is an index of the rows' second axis: 24 elements of 4 bytes, or 18.
    const [first, second, third, fourth] = launches.map(
      ({ inputs: [own] }, i) => (own?.offset ?? -1) / (i < 2 ? 96 : 72),
    );
    // What arrives is computed last, and what leaves first.
    expect([first, second]).toEqual([rank, 1 - rank]);
    expect([third, fourth]).toEqual([1 - rank, rank]);
  }
  expect(verify(program).ok).toBe(true);
});

it("does not place matmuls of groups among streams", () => {
  const f = new Fusion();
  const [x, w, ends] = [f.input([8, 4], "bfloat16"), f.input([2, 4, 8], "bfloat16"), f.input([2], "int")];
  f.output(groupedMatmul(x, w, ends));
  const { program } = compile(f, { devices: 1, on: "cuda" });
  const launches = at(program.ranks, 0).commands.filter(({ kind }) => kind === "launch");
  expect(launches.map((command) => isGemmLaunch(command, program))).toEqual([false]);
});

/**
 * nvFuser's hand-written host programs (test_host_irs, test_multidevice_host_ir, test_multidevice_host_ir_overlap), at
 * small sizes: built, recorded for every rank, linked, and run under several interleavings. Values are small whole
 * numbers, so that results are exact.
 */
import { add, DeviceMesh, Fusion, HostProgramBuilder, mul, sum, type TensorView } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { LoopIndex } from "../../src/host/build/options.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { counted, floats, onRanks, runPrograms } from "./run-programs.ts";

const worlds = [1, 2, 3, 4, 8];

function values(tensor: Tensor | undefined): number[] {
  return Array.from(tensor?.data ?? [], Number);
}

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("a missing value");
  return value;
}

function shardOf(rank: number): Tensor {
  return counted([1, 4], (i) => 100 * rank + i);
}

/** All ranks' shards, one after the other. */
function wholeOf(world: number): number[] {
  return Array.from({ length: world }, (_, rank) => values(shardOf(rank))).flat();
}

describe("one rank", () => {
  async function outputOf(
    build: (h: HostProgramBuilder) => void,
    inputs: readonly Tensor[],
    scalars = {},
  ): Promise<number[]> {
    const h = new HostProgramBuilder();
    build(h);
    const [[output] = []] = await runPrograms([h.build()], { inputs: [inputs], scalars });
    return values(output);
  }

  it("ThreeFusions: a diamond of host units, a unit posted twice", async () => {
    const double = new Fusion();
    const x = double.input([null, null]);
    double.output(add(x, x));
    const joined = new Fusion();
    const [a, b] = [joined.input([null, null]), joined.input([null, null])];
    joined.output(sum(mul(a, b), [0]));
    const output = await outputOf(
      (h) => {
        const input = h.input([2, 3]);
        const [once = input] = h.postOnStream(double, [input]);
        const [twice = input] = h.postOnStream(double, [once]);
        const result = h.tensor([3]);
        h.output(result);
        h.postOnStream(joined, [once, twice], [result]);
      },
      [counted([2, 3])],
    );
    // 2x * 4x, summed over rows.
    expect(output).toEqual([8 * 9, 8 * (1 + 16), 8 * (4 + 25)]);
  });

  it("ForLoops: an accumulator that is input and output", async () => {
    const output = await outputOf(
      (h) => {
        const [total, x] = [h.input([1]), h.input([8, 1])];
        h.output(total);
        h.forLoop({ start: 1, stop: 7, step: 2 }, (i) => h.add(total, h.select(x, 0, i), { out: total }));
      },
      [floats([1], [21]), counted([8, 1])],
    );
    expect(output).toEqual([21 + 1 + 3 + 5]);
  });

  it.each([
    [1, 2],
    [0, 1],
  ])("IfThenElse: predicate %i adds one %i times", async (predicate, times) => {
    const output = await outputOf(
      (h) => {
        const [x, one] = [h.input([3]), h.input([3])];
        h.output(x);
        const addOne = (): void => void h.add(x, one, { out: x });
        h.ifThenElse(
          h.scalars.named("predicate"),
          () => {
            addOne();
            addOne();
          },
          addOne,
        );
      },
      [counted([3]), floats([3], [1, 1, 1])],
      { predicate },
    );
    expect(output).toEqual([times, 1 + times, 2 + times]);
  });

  it("SingleFusionMultipleStreams: iterations on streams in turns", async () => {
    const output = await outputOf(
      (h) => {
        const [x, y] = [h.input([8, 2]), h.tensor([8, 2])];
        h.output(y);
        pipeline(h, 8, (i) => {
          const from = h.select(x, 0, i);
          h.mul(from, from, { out: h.select(y, 0, i) });
        });
      },
      [counted([8, 2])],
    );
    expect(output).toEqual(Array.from({ length: 16 }, (_, i) => i * i));
  });
});

describe.each(worlds)("%i ranks", (world) => {
  const mesh = DeviceMesh.range(world);
  const shards = Array.from({ length: world }, (_, rank) => [shardOf(rank)]);

  it("SingleFusionSingleComm: a unit on a shard, then an Allgather", async () => {
    const double = new Fusion();
    const x = double.input([null, null]);
    double.output(add(x, x));
    const programs = onRanks(world, () => {
      const h = new HostProgramBuilder();
      const input = h.input([world, 4], { mesh, parallel: ["DIDx"] });
      const local = h.tensor([world, 4], { mesh, parallel: ["DIDx"] });
      const whole = h.tensor([world, 4], { mesh });
      h.output(whole);
      h.postOnStream(double, [input], [local]);
      h.wait(h.communication("Allgather", { input: local, output: whole }));
      return h.build();
    });
    const outputs = await runPrograms(programs, { inputs: shards });
    for (const [output] of outputs) expect(values(output)).toEqual(wholeOf(world).map((value) => 2 * value));
  });

  it("CoalescedRingPairwiseExchange", async () => {
    const program = ((): HostProgram => {
      const h = new HostProgramBuilder();
      const [x, y] = [h.input([1, 4], { mesh }), h.tensor([1, 4], { mesh })];
      h.output(y);
      const { add: plus, mod, rank } = h.scalars;
      h.startCoalescing();
      h.send(x, { peer: mod(plus(rank, 1), world) });
      h.recv(y, { peer: mod(plus(rank, world - 1), world) });
      h.wait(h.endCoalescing());
      return h.build();
    })();
    const outputs = await runPrograms(
      onRanks(world, () => program),
      { inputs: shards },
    );
    outputs.forEach(([output], rank) => {
      expect(output).toEqual(shardOf((rank + world - 1) % world));
    });
  });

  it("AllgatherBasedPipelining: gather chunk j and multiply it on stream j % numberOfStreams", async () => {
    const [chunks, rows, k, n] = [4, 2, 3, 5];
    const programs = onRanks(world, () => {
      const h = new HostProgramBuilder();
      const a = h.input([chunks, world, rows, k], { mesh, parallel: ["Serial", "DIDx"] });
      const b = h.input([k, n], { mesh });
      const gathered = h.tensor([chunks, world, rows, k], { mesh });
      const c = h.tensor([chunks, world, rows, n, { reduced: k }], { mesh });
      h.output(c);
      h.allocate(gathered);
      pipeline(h, chunks, (j) => {
        const chunk = h.select(gathered, 0, j);
        h.wait(h.communication("Allgather", { input: h.select(a, 0, j), output: chunk }));
        h.matmul(chunk, b, { out: h.select(c, 0, j) });
      });
      return h.build();
    });
    const weight = counted([k, n], (i) => (i % 5) - 2);
    const inputs = Array.from({ length: world }, (_, rank) => [
      counted([chunks, 1, rows, k], (i) => (i % 7) + rank),
      weight,
    ]);
    const outputs = await runPrograms(programs, { inputs, streams: 3 });
    const expected: number[] = [];
    for (let j = 0; j < chunks; j++) {
      for (const [local] of inputs) {
        const all = values(local);
        for (let row = 0; row < rows; row++) {
          const from = all.slice((j * rows + row) * k, (j * rows + row + 1) * k);
          for (let column = 0; column < n; column++) {
            expected.push(from.reduce((total, value, i) => total + value * present(values(weight)[i * n + column]), 0));
          }
        }
      }
    }
    for (const [output] of outputs) expect(values(output)).toEqual(expected);
  });

  it("ReduceScatterBasedPipelining: a partial GEMM per stream, scattered while the next one runs", async () => {
    const [chunks, rows, k, n, streams] = [4, 2, 3, 2, 2];
    const programs = onRanks(world, () => {
      const h = new HostProgramBuilder();
      const a = h.input([chunks, world, world, rows, k], { mesh, parallel: ["Serial", "DIDx"] });
      const b = h.input([world, 1, k, n], { mesh, parallel: ["DIDx"] });
      const c = h.tensor([chunks, { reduced: world }, world, rows, n], {
        mesh,
        parallel: ["Serial", "Serial", "DIDx"],
      });
      h.output(c);
      // One partial GEMM per stream: iteration j + streams follows iteration j on its stream.
      const partials = h.tensor([streams, world, world, rows, n, { reduced: k }], {
        mesh,
        parallel: ["Serial", "DIDx"],
      });
      h.allocate(partials);
      pipeline(h, chunks, (j) => {
        const slot = h.select(partials, 0, h.scalars.mod(j, h.scalars.numberOfStreams));
        h.matmul(h.select(a, 0, j), b, { out: slot });
        h.wait(h.communication("ReduceScatter", { input: slot, output: h.select(c, 0, j) }));
      });
      return h.build();
    });
    const inputs = Array.from({ length: world }, (_, rank) => [
      counted([chunks, 1, world, rows, k], (i) => (i % 5) - rank),
      counted([1, 1, k, n], (i) => (i % 3) + rank),
    ]);
    const outputs = await runPrograms(programs, { inputs, streams });
    outputs.forEach(([output], rank) => {
      const expected: number[] = [];
      for (let j = 0; j < chunks; j++) {
        for (let row = 0; row < rows; row++) {
          for (let column = 0; column < n; column++) {
            let total = 0;
            for (const [a, b] of inputs) {
              for (let i = 0; i < k; i++) {
                const left = present(values(a)[((j * world + rank) * rows + row) * k + i]);
                total += left * present(values(b)[i * n + column]);
              }
            }
            expected.push(total);
          }
        }
      }
      expect(values(output)).toEqual(expected);
    });
  });

  it("RingAllgatherBasedPipelining, NCCL: the first step waits for nothing, the last sends nothing", async () => {
    const programs = onRanks(world, () => {
      const h = new HostProgramBuilder();
      const { add: plus, mod, ne, rank, sub } = h.scalars;
      const [x, y] = [h.input([1, 4], { mesh }), h.tensor([world, 4], { mesh })];
      const result = h.tensor([world, 4], { mesh });
      h.allocate(y);
      h.output(result);
      h.set(h.select(x, 0, 0), { out: h.select(y, 0, rank) });
      const caller = h.getCurrentStream();
      const worker = h.stream(0);
      h.setCurrentStream(worker);
      h.synchronize(caller);
      h.forLoop(world, (step) => {
        const own = h.select(y, 0, mod(plus(sub(rank, step), world), world));
        const next = h.select(y, 0, mod(plus(sub(rank, plus(step, 1)), world), world));
        h.ifThenElse(ne(step, world - 1), () => {
          h.startCoalescing();
          h.send(own, { peer: mod(plus(rank, 1), world) });
          h.recv(next, { peer: mod(plus(rank, world - 1), world) });
          h.wait(h.endCoalescing());
        });
        h.add(own, own, { out: h.select(result, 0, mod(plus(sub(rank, step), world), world)) });
      });
      h.setCurrentStream(caller);
      h.synchronize(worker);
      return h.build();
    });
    const outputs = await runPrograms(programs, { inputs: shards });
    for (const [output] of outputs) expect(values(output)).toEqual(wholeOf(world).map((value) => 2 * value));
  });
});

describe.each(worlds.filter((world) => world > 1))("%i ranks, each with another peer", (world) => {
  const mesh = DeviceMesh.range(world);
  const shards = Array.from({ length: world }, (_, rank) => [shardOf(rank)]);

  it("RingPairwiseExchange: rank 0 sends first, the others receive first", async () => {
    const programs = onRanks(world, (rank) => {
      const h = new HostProgramBuilder();
      const [x, y] = [h.input([1, 4], { mesh }), h.tensor([1, 4], { mesh })];
      h.output(y);
      const send = (): void => void h.send(x, { peer: (rank + 1) % world });
      if (rank === 0) send();
      const recv = h.recv(y, { peer: (rank + world - 1) % world });
      if (rank !== 0) send();
      h.wait(recv);
      return h.build();
    });
    const outputs = await runPrograms(programs, { inputs: shards });
    outputs.forEach(([output], rank) => {
      expect(output).toEqual(shardOf((rank + world - 1) % world));
    });
  });

  it.each(["get", "put"] as const)(
    "RingBasedOverlapTest, CUDA IPC, %s: neighbours pass chunks on",
    async (protocol) => {
      const programs = onRanks(world, () => {
        const h = new HostProgramBuilder();
        const { add: plus, mod, rank, sub } = h.scalars;
        const x = h.input([1, 4], { mesh, memory: "symmetric" });
        const y = h.tensor([world, 4], { mesh, memory: "symmetric" });
        h.output(y);
        h.set(h.select(x, 0, 0), { out: h.select(y, 0, rank) });
        h.forLoop(world - 1, (step) => {
          const slice = (back: Parameters<typeof sub>[1]): TensorView =>
            h.select(y, 0, mod(plus(sub(rank, back), world), world));
          const [recv, send] = h.shareMemHandles(
            { type: "recv", buffer: slice(plus(step, 1)), peer: mod(plus(rank, world - 1), world) },
            { type: "send", buffer: slice(step), peer: mod(plus(rank, 1), world) },
          );
          for (const half of protocol === "get" ? [send, recv] : [recv, send]) h.post(present(half));
          h.wait(present(send));
          h.wait(present(recv));
        });
        return h.build();
      });
      const outputs = await runPrograms(programs, { inputs: shards, protocol });
      for (const [output] of outputs) expect(values(output)).toEqual(wholeOf(world));
    },
  );
});

/** Two loops: every worker waits for the caller, then chunks run on workers in turns and the caller waits for each. */
function pipeline(h: HostProgramBuilder, chunks: number, body: (j: LoopIndex) => void): void {
  const caller = h.getCurrentStream();
  const { mod, numberOfStreams } = h.scalars;
  h.forLoop(chunks, (j) => {
    h.setCurrentStream(h.stream(mod(j, numberOfStreams)));
    h.synchronize(caller);
  });
  h.forLoop(chunks, (j) => {
    const worker = h.stream(mod(j, numberOfStreams));
    h.setCurrentStream(worker);
    body(j);
    h.setCurrentStream(caller);
    h.synchronize(worker);
  });
}

/** MultiDeviceExecutor: sharding and gathering, given outputs, when Programs are prepared, and errors of arguments. */
import { describe, expect, it } from "vitest";
import {
  type Backend,
  DeviceMesh,
  Fusion,
  type Group,
  MultiDeviceExecutor,
  set,
  sum,
  Tensor,
} from "@braid-compiler/braid";
import { cpuBackend } from "@braid-compiler/braid/cpu";

/** x [devices, n] sharded by DIDx -> y = x gathered, on every device. */
function allgather(devices: number, n: number | null = 3): Fusion {
  const f = new Fusion();
  const x = f.input([devices, n], "float");
  const y = set(x);
  f.output(y);
  for (const each of [x, y]) each.setDeviceMesh(DeviceMesh.range(devices));
  x.axis(0).parallelize("DIDx");
  return f;
}

function tensor(dtype: "float" | "double", shape: readonly number[], values: readonly number[]): Tensor {
  const result = Tensor.zeros(shape, dtype);
  result.data.set(values as never);
  return result;
}

const rows = (shape: readonly number[]): Tensor =>
  tensor(
    "float",
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i),
  );

/** The CPU back end, counting what it prepares and releases. */
function countingBackend(): {
  readonly backend: Backend;
  readonly counts: { prepared: number; released: number; closed: number };
} {
  const counts = { prepared: 0, released: 0, closed: 0 };
  const open = async (options: Parameters<Backend["open"]>[0]): Promise<Group> => {
    const group = await cpuBackend.open(options);
    return {
      prepare: async (program) => {
        counts.prepared++;
        const prepared = await group.prepare(program);
        return {
          ...prepared,
          release: () => {
            counts.released++;
            prepared.release();
          },
        };
      },
      close: () => {
        counts.closed++;
        return group.close();
      },
    };
  };
  return { backend: { name: "counting", open }, counts };
}

describe("run", () => {
  it("shards whole inputs and gathers whole outputs", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(4), { devices: 4 });
    const [y] = await executor.run([rows([4, 3])]);
    expect(y).toEqual(rows([4, 3]));
    await executor.close();
  });

  it("accepts one shard per rank and returns shards on demand", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 3 });
    const shards = [tensor("float", [1, 3], [1, 2, 3]), tensor("float", [1, 3], [4, 5, 6]), null];
    const whole = tensor("float", [2, 3], [1, 2, 3, 4, 5, 6]);
    expect(await executor.run([shards])).toEqual([whole]);
    expect(await executor.run([shards], { gather: false })).toEqual([[whole, whole, null]]);
    await executor.close();
  });

  it("writes into given outputs, whole or sharded, and returns them", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2 });
    const whole = tensor("float", [2, 3], [0, 0, 0, 0, 0, 0]);
    const [returned] = await executor.run([rows([2, 3])], { outputs: [whole] });
    expect(returned).toBe(whole);
    expect(whole).toEqual(rows([2, 3]));
    const shards = [rows([2, 3]), rows([2, 3])].map((each) => tensor("float", each.shape, [0, 0, 0, 0, 0, 0]));
    await executor.run([rows([2, 3])], { outputs: [shards] });
    expect(shards).toEqual([rows([2, 3]), rows([2, 3])]);
    await executor.close();
  });

  it("leaves its inputs as they were and gives the same result again", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2 });
    const x = rows([2, 3]);
    const first = await executor.run([x]);
    expect(x).toEqual(rows([2, 3]));
    expect(await executor.run([x])).toEqual(first);
    await executor.close();
  });

  it("runs that are started together follow one another", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2 });
    const inputs = [1, 2, 3].map((value) =>
      tensor(
        "float",
        [2, 3],
        Array.from({ length: 6 }, () => value),
      ),
    );
    const results = await Promise.all(inputs.map((input) => executor.run([input])));
    expect(results.map(([y]) => y)).toEqual(inputs);
    await executor.close();
  });
});

describe("preparation", () => {
  it("happens once per set of sizes, and all sets are kept", async () => {
    const { backend, counts } = countingBackend();
    const executor = await MultiDeviceExecutor.create(allgather(2, null), { devices: 2, on: backend });
    for (const n of [3, 3, 5, 3, 5]) expect(await executor.run([rows([2, n])])).toEqual([rows([2, n])]);
    expect(counts).toEqual({ prepared: 2, released: 0, closed: 0 });
    await executor.close();
    await executor.close();
    expect(counts).toEqual({ prepared: 2, released: 2, closed: 1 });
  });

  it("releases the sizes that ran longest ago to stay within the budget, and prepares them again", async () => {
    const { backend, counts } = countingBackend();
    const options = { devices: 2, on: backend, memoryBudget: 400_000 };
    const executor = await MultiDeviceExecutor.create(allgather(2, null), options);
    for (let n = 1; n <= 30; n++) {
      // The first size runs in between, and so is never the oldest.
      for (const size of [1000, n]) expect(await executor.run([rows([2, size])])).toEqual([rows([2, size])]);
      expect(executor.memory.bytes).toBeLessThanOrEqual(options.memoryBudget);
    }
    expect(counts.prepared).toBe(31);
    expect(counts.released).toBeGreaterThan(10);
    const { programs, released, budget } = executor.memory;
    expect([programs, released, budget]).toEqual([31 - counts.released, counts.released, 400_000]);
    expect(await executor.run([rows([2, 1])])).toEqual([rows([2, 1])]);
    expect(counts.prepared).toBe(32);
    await executor.close();
    expect(counts.released).toBe(32);
    expect(executor.memory).toMatchObject({ bytes: 0, programs: 0 });
  });

  it("keeps the Program that runs, however small the budget is", async () => {
    const { backend, counts } = countingBackend();
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2, on: backend, memoryBudget: 0 });
    await executor.prepare();
    for (let i = 0; i < 3; i++) expect(await executor.run([rows([2, 3])])).toEqual([rows([2, 3])]);
    expect(counts).toMatchObject({ prepared: 1, released: 0 });
    await executor.close();
  });

  it("is done without inputs where sizes are known", async () => {
    const { backend, counts } = countingBackend();
    for (const [n, prepared] of [
      [3, 1],
      [null, 1],
    ] as const) {
      const executor = await MultiDeviceExecutor.create(allgather(2, n), { devices: 2, on: backend });
      await executor.prepare();
      expect(counts.prepared).toBe(prepared);
      await executor.close();
      await expect(executor.prepare()).rejects.toThrow("closed");
    }
  });

  it("is tried again after it failed", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2, null), { devices: 2 });
    await expect(executor.run([rows([3, 3])])).rejects.toThrow(/input-shape|size-mismatch|size-contradicts-mesh/u);
    expect(await executor.run([rows([2, 3])])).toEqual([rows([2, 3])]);
    await executor.close();
  });
});

describe("errors", () => {
  const withExecutor = async (use: (executor: MultiDeviceExecutor) => Promise<unknown>): Promise<void> => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2 });
    await use(executor);
    await executor.close();
  };

  it.each<[string, (executor: MultiDeviceExecutor) => Promise<unknown>, RegExp]>([
    ["too few inputs", (executor) => executor.run([]), /input-count.*\n.*\n.*found: 0 inputs/u],
    ["too many inputs", (executor) => executor.run([rows([2, 3]), rows([2, 3])]), /input-count/u],
    [
      "another dtype",
      (executor) => executor.run([tensor("double", [2, 3], [0, 0, 0, 0, 0, 0])]),
      /input-shape.*dtype/u,
    ],
    ["another rank", (executor) => executor.run([rows([6])]), /input-shape.*axes/u],
    ["another extent", (executor) => executor.run([rows([2, 4])]), /size-mismatch|input-shape/u],
    ["another number of shards", (executor) => executor.run([[rows([1, 3])]]), /device-count/u],
    ["a missing shard", (executor) => executor.run([[rows([1, 3]), null]]), /no shard for device 1/u],
    ["a shard of the wrong shape", (executor) => executor.run([[rows([1, 3]), rows([1, 4])]]), /input-shape/u],
    ["a shard that is whole", (executor) => executor.run([[rows([2, 3]), rows([2, 3])]]), /input-shape/u],
    [
      "too many outputs",
      (executor) => executor.run([rows([2, 3])], { outputs: [rows([2, 3]), rows([2, 3])] }),
      /input-count/u,
    ],
    [
      "an output of the wrong shape",
      (executor) => executor.run([rows([2, 3])], { outputs: [rows([2, 4])] }),
      /input-shape/u,
    ],
  ])("%s", async (_, run, message) => {
    await withExecutor(async (executor) => {
      await expect(run(executor)).rejects.toThrow(message);
      // A refused run leaves the executor as it was.
      expect(await executor.run([rows([2, 3])])).toEqual([rows([2, 3])]);
    });
  });

  it.each<[string, Parameters<typeof MultiDeviceExecutor.create>[1], RegExp]>([
    ["no devices", { devices: 0 }, /bad-argument/u],
    ["a million devices", { devices: 1_000_000 }, /bad-argument[^]*at most 65536/u],
    ["half a device", { devices: 1.5 }, /bad-argument/u],
    ["a mesh that is too large", { devices: 1 }, /mesh-too-large/u],
    ["no streams", { devices: 2, streams: 0 }, /bad-option/u],
    ["half a byte", { devices: 2, memoryBudget: 0.5 }, /bad-argument/u],
    ["no time", { devices: 2, timeout: 0 }, /bad-option/u],
    ["a bad option", JSON.parse('{"devices":2,"p2p":"ring"}'), /bad-option/u],
    ["a back end of the command line alone", JSON.parse('{"devices":2,"on":"mpi"}'), /bad-option[^]*joinMpi/u],
    ["an unknown back end", JSON.parse('{"devices":2,"on":"tpu"}'), /bad-option[^]*tpu/u],
  ])("%s", async (_, options, message) => {
    await expect(MultiDeviceExecutor.create(allgather(2), options)).rejects.toThrow(message);
  });

  it("a run after close", async () => {
    const executor = await MultiDeviceExecutor.create(allgather(2), { devices: 2 });
    await executor.close();
    await expect(executor.run([rows([2, 3])])).rejects.toThrow(/closed/u);
  });
});

it("ranks outside every mesh take part with empty programs", async () => {
  const f = new Fusion();
  const x = f.input([2, 3], "float");
  const y = sum(x, [0]);
  f.output(y);
  for (const each of [x, y]) each.setDeviceMesh(new DeviceMesh([1, 3]));
  x.axis(0).parallelize("DIDx");
  const executor = await MultiDeviceExecutor.create(f, { devices: 5 });
  expect(executor.hostProgram(0).body).toEqual([]);
  expect(await executor.run([rows([2, 3])])).toEqual([tensor("float", [3], [3, 5, 7])]);
  expect(await executor.run([rows([2, 3])], { gather: false })).toEqual([
    [null, tensor("float", [3], [3, 5, 7]), null, tensor("float", [3], [3, 5, 7]), null],
  ]);
  await executor.close();
});

/** What the executor copies between the caller's tensors and the devices' memory: once in, once out, every bit. */
import { describe, expect, it } from "vitest";
import {
  type Backend,
  DeviceMesh,
  type DType,
  type ExecutorReport,
  Fusion,
  MultiDeviceExecutor,
  relu,
  Tensor,
} from "@braid-compiler/braid";
import { openMachineGroup } from "../../src/backends/cpu/machine-group.ts";
import { openThreadedGroup } from "../../src/backends/cpu/threads/threaded-group.ts";
import { packShard, shardInto, shardOf, unpackShard, unshardInto } from "../../src/executor/shard.ts";
import { dtypes as dtypeRows } from "../../src/numerics/dtype.ts";
import { emptyTensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { copyBytes } from "../../src/support/webassembly.ts";

const opens = { machine: () => openMachineGroup({}), workers: () => openThreadedGroup({ workers: 2 }) };

/** Counts copies by `write` and `read`. `views`: whether JavaScript can address the memory. */
function counting(open: () => ReturnType<typeof openMachineGroup>, views: boolean, counts: string[]): Backend {
  return {
    name: "cpu",
    open: async () => {
      const group = open();
      return {
        ...group,
        prepare: async (program) => {
          const prepared = await group.prepare(program);
          return {
            ...prepared,
            write: (buffer, bytes) => {
              counts.push("write");
              prepared.write(buffer, bytes);
            },
            read: (buffer) => {
              counts.push("read");
              return prepared.read(buffer);
            },
            view: (buffer) => (views ? prepared.view(buffer) : null),
          };
        },
      };
    },
  };
}

function columns(devices: number): Fusion {
  const f = new Fusion();
  const x = f.input([4, 6], "float");
  const y = relu(x);
  f.output(y);
  for (const tensor of [x, y]) {
    tensor.setDeviceMesh(DeviceMesh.range(devices));
    tensor.outerSplit(1, devices).parallelize("DIDx");
  }
  return f;
}

const values = Array.from({ length: 4 }, (_, i) => Array.from({ length: 6 }, (_, j) => 6 * i + j - 10));

describe.each(Object.entries(opens))("on %s", (_, open) => {
  it.each([
    { views: true, copies: [] },
    { views: false, copies: ["write", "write", "write", "read", "read", "read"] },
  ])("memory that JavaScript addresses ($views) is written and read in place", async ({ views, copies }) => {
    const counts: string[] = [];
    const executor = await MultiDeviceExecutor.create(columns(3), { devices: 3, on: counting(open, views, counts) });
    const reports: ExecutorReport[] = [];
    const [whole] = await executor.run([Tensor.from(values)], { onReport: (report) => reports.push(report) });
    expect(whole === undefined ? null : Tensor.toArray(whole)).toEqual(
      values.map((row) => row.map((v) => Math.max(v, 0))),
    );
    expect(counts).toEqual(copies);
    expect(reports.map(({ copyMilliseconds }) => copyMilliseconds >= 0)).toEqual([true]);
    await executor.close();
  });

  it("results of a run stay as they are in the next", async () => {
    const executor = await MultiDeviceExecutor.create(columns(2), { devices: 2, on: counting(open, true, []) });
    const [first] = await executor.run([Tensor.from(values)]);
    const [shards] = await executor.run([Tensor.from(values)], { gather: false });
    await executor.run([Tensor.zeros([4, 6])]);
    const expected = values.map((row) => row.map((v) => Math.max(v, 0)));
    expect(first === undefined ? null : Tensor.toArray(first)).toEqual(expected);
    const shard = shards?.[1];
    expect(shard === undefined || shard === null ? null : Tensor.toArray(shard)).toEqual(
      expected.map((row) => row.slice(3)),
    );
    await executor.close();
  });
});

const dtypes: readonly DType[] = ["double", "float", "half", "bfloat16", "int", "int64", "bool"];

describe.each(dtypes)("shards of %s", (dtype) => {
  // Device d has every third column from d on: single elements. Memory has axis 1 outermost.
  const tensor = new Fusion().input([5, 4, 7], dtype);
  tensor.setDeviceMesh(DeviceMesh.range(3));
  tensor.setAllocationDomain([tensor.axis(1), tensor.axis(0), tensor.axis(2)]);
  tensor.split(2, 3).axis(3).parallelize("DIDx");
  const data = tensor.data();
  const shape = [5, 4, 7];
  const { bytes } = dtypeRows[dtype];
  const whole = emptyTensor(dtype, shape);
  // Every byte differs from its neighbours, so that floats are NaN, infinite and denormal, too.
  tensorBytes(whole).forEach((_, i, all) => (all[i] = (37 * i) % 256));

  it.each([0, 1, 2])("have the same bits as the elements one by one: device %d", (device) => {
    const columnsOf = [0, 1, 2, 3, 4, 5, 6].filter((column) => column % 3 === device);
    const local: number[] = [];
    const rowMajor: number[] = [];
    const element = (i: number, j: number, k: number): Uint8Array =>
      tensorBytes(whole).subarray(bytes * (28 * i + 7 * j + k), bytes * (28 * i + 7 * j + k + 1));
    for (let j = 0; j < 4; j++) for (let i = 0; i < 5; i++) for (const k of columnsOf) local.push(...element(i, j, k));
    for (let i = 0; i < 5; i++)
      for (let j = 0; j < 4; j++) for (const k of columnsOf) rowMajor.push(...element(i, j, k));

    const cut = shardOf(data, shape, tensorBytes(whole), device);
    expect([...cut]).toEqual(local);

    const shard = emptyTensor(dtype, [5, 4, columnsOf.length]);
    unpackShard(data, shape, cut, shard, device);
    expect([...tensorBytes(shard)]).toEqual(rowMajor);
    expect([...packShard(data, shape, shard, device)]).toEqual(local);

    // At an odd address, words cannot be used.
    const odd = new Uint8Array(cut.length + 1).subarray(1);
    shardInto(data, shape, tensorBytes(whole), device, odd);
    expect([...odd]).toEqual(local);
  });

  it("make the whole tensor again", () => {
    const back = emptyTensor(dtype, shape);
    for (const device of [0, 1, 2]) {
      unshardInto(data, shape, shardOf(data, shape, tensorBytes(whole), device), device, tensorBytes(back));
    }
    expect([...tensorBytes(back)]).toEqual([...tensorBytes(whole)]);
  });
});

it.each([0, 1, 63, 4095, 4096, 10_001])("copies %i bytes into and out of shared memory, and no others", (count) => {
  const from = Uint8Array.from({ length: count }, (_, i) => 1 + (i % 251));
  const shared = new Uint8Array(new SharedArrayBuffer(count + 16), 3, count + 8);
  copyBytes(from, shared, 5);
  expect([...shared]).toEqual([0, 0, 0, 0, 0, ...from, 0, 0, 0]);
  const back = new Uint8Array(count + 2);
  copyBytes(shared.subarray(5, 5 + count), back, 1);
  expect([...back]).toEqual([0, ...from, 0]);
});

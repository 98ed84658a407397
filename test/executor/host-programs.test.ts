/**
 * Executors of host programs without a Fusion: one for all ranks or one per rank, with sizes and scalars from the run.
 */
import { describe, expect, it } from "vitest";
import {
  DeviceMesh,
  Fusion,
  type HostProgram,
  HostProgramBuilder,
  lower,
  MultiDeviceExecutor,
  set,
  type Tensor,
} from "@braid-compiler/braid";

function floats(...values: readonly number[]): Tensor {
  return { dtype: "float", shape: [values.length], data: Float32Array.from(values) };
}

/** y = x + x on every rank, `times` more times if `doubled`. */
function doubling(): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(2);
  const x = h.input([null], { mesh });
  const y = h.tensor(x.extents, { mesh });
  h.output(y);
  h.allocate(y);
  h.set(x, { out: y });
  h.ifThenElse(h.scalars.named("doubled"), () => {
    h.forLoop(h.scalars.named("times"), () => h.add(y, y, { out: y }));
  });
  return h.build();
}

/** Each rank sends its shard to the next one. */
function shift(rank: number, devices: number): HostProgram {
  const h = new HostProgramBuilder();
  const mesh = DeviceMesh.range(devices);
  const x = h.input([devices, 2], { mesh, parallel: ["DIDx"] });
  const y = h.tensor([devices, 2], { mesh, parallel: ["DIDx"] });
  h.output(y);
  h.allocate(y);
  h.startCoalescing();
  h.send(x, { peer: (rank + 1) % devices });
  h.recv(y, { peer: (rank + devices - 1) % devices });
  h.wait(h.endCoalescing());
  return h.build();
}

describe("an executor of host programs", () => {
  it("runs one for all ranks, whose scalars steer loops and branches", async () => {
    const executor = await MultiDeviceExecutor.create(doubling(), { devices: 2 });
    const run = async (scalars: Record<string, number>): Promise<unknown> =>
      (await executor.run([floats(1, 2, 3)], { scalars }))[0];
    expect(await run({ doubled: 1, times: 3 })).toEqual(floats(8, 16, 24));
    expect(await run({ doubled: 1, times: 1 })).toEqual(floats(2, 4, 6));
    expect(await run({ doubled: 0, times: 5 })).toEqual(floats(1, 2, 3));
    await expect(run({ doubled: 1 })).rejects.toThrow("error[scalar-missing]");
    await executor.close();
  });

  it.each([1, 2, 3, 8])("runs one of each of %i ranks", async (devices) => {
    const executor = await MultiDeviceExecutor.create((rank) => shift(rank, devices), { devices });
    const values = Float32Array.from({ length: 2 * devices }, (_, i) => i);
    const x: Tensor = { dtype: "float", shape: [devices, 2], data: values };
    const [y] = await executor.run([x]);
    const moved = values.map((_, i) => values[(i + 2 * devices - 2) % (2 * devices)] ?? 0);
    expect(y).toEqual({ ...x, data: moved });
    const listed = await MultiDeviceExecutor.create(
      Array.from({ length: devices }, (_, rank) => shift(rank, devices)),
      { devices },
    );
    expect((await listed.run([x]))[0]).toEqual(y);
    await Promise.all([executor.close(), listed.close()]);
  });

  it("takes one of each rank as it was lowered, where only the members of a mesh have a tensor in peer-visible memory", async () => {
    const f = new Fusion();
    const x = f.input([2, 3]);
    const y = set(x);
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(new DeviceMesh([1, 2]));
    x.axis(0).parallelize("DIDx");
    y.axis(0).parallelize("Stream");
    const options = { backend: "cuda", p2p: "broadcast" } as const;
    const hosts = [0, 1, 2].map((rank) => lower(f, { ...options, rank }));
    const memories = hosts.map(({ tensors, outputs }) => outputs.map((id) => tensors[id]?.memory).join());
    expect(memories).toEqual(["global", "symmetric", "symmetric"]);
    const executor = await MultiDeviceExecutor.create(hosts, { devices: 3 });
    const input: Tensor = { dtype: "float", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) };
    expect(await executor.run([input])).toEqual([input]);
    await executor.close();
  });

  it("refuses lists of another length, and ranks with other inputs or outputs", async () => {
    await expect(MultiDeviceExecutor.create([shift(0, 3), shift(1, 3)], { devices: 3 })).rejects.toThrow(
      "found: 2 host programs for 3 devices",
    );
    await expect(
      MultiDeviceExecutor.create((rank) => (rank === 1 ? doubling() : shift(rank, 2)), { devices: 2 }),
    ).rejects.toThrow(
      "error[host-programs-differ]: the host program of rank 1 has different inputs than that of rank 0",
    );
    await expect(MultiDeviceExecutor.create((rank) => shift(rank, 4), { devices: 2 })).rejects.toThrow(
      "error[mesh-too-large]",
    );
  });
});

/**
 * Compares the ring of one-sided copies with the collective pipeline on the CPU back end: allgather + matmul, and
 * allgather alone, on 8 ranks with 1 MiB per shard. The ring should take at most 1.1 times as long as the collectives.
 */
import { Bench } from "tinybench";
import {
  DeviceMesh,
  Fusion,
  link,
  lower,
  type LowerOptions,
  matmul,
  type Program,
  record,
  set,
  type TensorView,
} from "braid";
import { createCpuBackend } from "braid/cpu";

const devices = 8;
const chunks = 8;
const rows = 512;
const columns = 512;
const width = 128;

interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly sharded: number;
  readonly product: boolean;
  readonly options?: LowerOptions;
}

/** Per device `rows` x `columns` floats: 1 MiB. */
const ring = [devices, rows, columns];
const pipeline = [chunks, devices, rows / chunks, columns];

const cases: readonly Case[] = [true, false].flatMap((product): Case[] => [
  { name: "collectives", shape: pipeline, sharded: 1, product },
  { name: "ring, get", shape: ring, sharded: 0, product, options: { backend: "cuda" } },
  { name: "ring, put", shape: ring, sharded: 0, product, options: { backend: "cuda", protocol: "put" } },
  { name: "ring, sends and receives", shape: ring, sharded: 0, product },
  { name: "broadcasts", shape: ring, sharded: 0, product, options: { p2p: "broadcast" } },
]);

function fusionOf({ shape, sharded, product }: Case): Fusion {
  const f = new Fusion();
  const a = f.input(shape, "float");
  const b = product ? f.input([columns, width], "float") : null;
  const c = b === null ? set(a) : matmul(a, b);
  f.output(c);
  const tensors: readonly (TensorView | null)[] = [a, b, c];
  for (const tensor of tensors) tensor?.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(sharded).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

function programOf(each: Case): Program {
  const fusion = fusionOf(each);
  const { protocol = "get" } = each.options ?? {};
  return link(
    Array.from({ length: devices }, (_, rank) => record(lower(fusion, { ...each.options, rank }), { rank, protocol })),
  );
}

export async function benchPointToPoint(): Promise<Bench> {
  const bench = new Bench({ name: "point-to-point", iterations: 15, time: 0, warmupIterations: 3, warmupTime: 0 });
  const group = await createCpuBackend().open({
    world: devices,
    localRanks: Array.from({ length: devices }, (_, i) => i),
  });
  for (const each of cases) {
    const program = programOf(each);
    const prepared = await group.prepare(program);
    for (const { id, role, shape } of program.buffers) {
      if (role !== "input") continue;
      const data = Float32Array.from(
        { length: shape.reduce((product, extent) => product * extent, 1) },
        (_, i) => (i % 7) / 8,
      );
      prepared.write(id, new Uint8Array(data.buffer));
    }
    bench.add(`${each.product ? "allgather + matmul" : "allgather"}, ${each.name}`, async () => {
      await prepared.execute();
    });
  }
  await bench.run();
  await group.close();
  return bench;
}

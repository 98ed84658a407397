/**
 * Compares the ring of one-sided copies with the collective pipeline on the CPU back end: allgather + matmul, and
 * allgather alone, on 8 ranks with 1 MiB per shard. The ring should take at most 1.1 times as long as the collectives.
 */
import { link, lower, type LowerOptions, type Program, record } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { gathered } from "./harness/programs.ts";
import type { Suite, Task } from "./harness/suite.ts";

const devices = 8;
const chunks = 8;
const rows = 512;
const columns = 512;
const width = 128;

interface Case {
  readonly name: string;
  readonly shape: readonly number[];
  readonly sharded: 0 | 1;
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

function programOf({ shape, sharded, product, options }: Case): Program {
  const fusion = gathered(shape, sharded, product ? width : null);
  const { protocol = "get" } = options ?? {};
  return link(
    Array.from({ length: devices }, (_, rank) => record(lower(fusion, { ...options, rank }), { rank, protocol })),
  );
}

export async function pointToPointSuite(): Promise<Suite> {
  const ranks = Array.from({ length: devices }, (_, i) => i);
  const group = await createCpuBackend().open({ world: devices, localRanks: ranks });
  const tasks: Task[] = [];
  for (const each of cases) {
    const program = programOf(each);
    const prepared = await group.prepare(program);
    for (const { id, role, bytes } of program.buffers) {
      if (role !== "input") continue;
      const data = Float32Array.from({ length: bytes / 4 }, (_, i) => (i % 7) / 8);
      prepared.write(id, new Uint8Array(data.buffer));
    }
    const name = `${each.product ? "allgather + matmul" : "allgather"}, ${each.name}`;
    tasks.push({ name, run: () => prepared.execute() });
  }
  return {
    name: "point-to-point",
    options: { iterations: 15, time: 0, warmupIterations: 3, warmupTime: 0 },
    tasks,
    after: () => group.close(),
  };
}

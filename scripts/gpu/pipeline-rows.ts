/**
 * Times all-gather + matmul over all GPUs as a pipeline over the devices, and one GEMM of the whole shape. Programs are
 * prepared once and run many times without moving inputs. Times are medians over runs of the maximum over ranks, by the
 * host's clock. Host time ends when everything is with the driver.
 */
import { createCudaBackend } from "../../src/cuda.ts";
import { soloRendezvous } from "../../src/backends/cuda/world.ts";
import { link } from "../../src/commands/link/link.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { linear } from "../../src/ir/api/ops.ts";
import { sizesFromMeshes } from "../../src/ir/sizes.ts";
import type { World } from "../../src/launch/join-world.ts";
import { lower } from "../../src/compile/lower.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { record } from "../../src/compile/record.ts";
import { applySchedule } from "../../src/schedule/schedule.ts";
import { writeShards } from "./noise.ts";
import { median, type Row, rowOf, slowest } from "./rows.ts";

export interface PipelineShape {
  readonly m: number;
  readonly k: number;
  /** Columns of each GPU. */
  readonly n: number;
}

export const pipelineShapes: readonly PipelineShape[] = [
  { m: 32_768, k: 16_384, n: 8192 },
  { m: 8192, k: 8192, n: 8192 },
  { m: 16_384, k: 16_384, n: 2048 },
  { m: 2048, k: 8192, n: 8192 },
  { m: 16_384, k: 2048, n: 1024 },
];

interface Variant {
  readonly name: string;
  readonly lowering: Partial<LoweringOptions>;
  readonly onCopyStream: boolean;
  readonly streams: number;
  readonly graph: "on" | "off";
}

const get = { backend: "cuda", protocol: "get" } as const;
const put = { backend: "cuda", protocol: "put" } as const;

const variants: readonly Variant[] = [
  { name: "nccl", lowering: { backend: "nccl" }, onCopyStream: false, streams: 4, graph: "off" },
  { name: "nccl, graph", lowering: { backend: "nccl" }, onCopyStream: false, streams: 4, graph: "on" },
  { name: "get, copy stream, 2 streams", lowering: get, onCopyStream: true, streams: 2, graph: "off" },
  { name: "get, copy stream, 2 streams, graph", lowering: get, onCopyStream: true, streams: 2, graph: "on" },
  { name: "get, copy stream, 8 streams, graph", lowering: get, onCopyStream: true, streams: 8, graph: "on" },
  { name: "get, inline, 8 streams, graph", lowering: get, onCopyStream: false, streams: 8, graph: "on" },
  { name: "put, copy stream, 2 streams, graph", lowering: put, onCopyStream: true, streams: 2, graph: "on" },
];

const runs = 20;
const warmUp = 4;

/** One row per variant. All ranks run the same variant at the same time. */
export async function* pipelineRows(world: World, shape: PipelineShape): AsyncGenerator<Row> {
  const { m, k, n } = shape;
  const label = `m ${m} k ${k} n ${n}`;
  const flops = 2 * m * k * n;
  const rate = async (own: Times): Promise<string> => {
    const milliseconds = median(await slowest(world, own.runs));
    const [host, inLoop] = [
      1000 * median(await slowest(world, own.host)),
      1000 * median(await slowest(world, own.inLoop)),
    ];
    const speed = `${milliseconds.toFixed(3)} ms, ${(flops / milliseconds / 1e9).toFixed(0)} TFLOP/s`;
    return `${speed}, host ${host.toFixed(1)} us until everything is with the driver, ${inLoop.toFixed(1)} one run after the other`;
  };
  yield await rowOf(`${label}: one GEMM`, async () => {
    const rendezvous = { ...soloRendezvous(), localRank: world.localRank };
    const own = await measure(shape, 1, 0, rendezvous, {
      name: "alone",
      lowering: {},
      onCopyStream: false,
      streams: 1,
      graph: "off",
    });
    return rate(own);
  });
  for (const variant of variants) {
    yield await rowOf(`${label}: ${variant.name}`, async () =>
      rate(await measure(shape, world.worldSize, world.rank, world, variant)),
    );
    if (world.signal.aborted) return;
  }
}

type BackendRendezvous = Parameters<typeof createCudaBackend>[0]["rendezvous"];

/** Milliseconds on this rank. */
interface Times {
  /** Of each run after a barrier over TCP. */
  readonly runs: readonly number[];
  /** The host's part of `runs`, until the driver has everything. The host has slept before, so its caches are cold. */
  readonly host: readonly number[];
  /** The host's part of runs that begin when the previous run has ended. */
  readonly inLoop: readonly number[];
}

async function measure(
  { m, k, n }: PipelineShape,
  devices: number,
  rank: number,
  rendezvous: BackendRendezvous,
  { lowering, onCopyStream, streams, graph }: Variant,
): Promise<Times> {
  const f = new Fusion();
  const a = f.input([devices, m / devices, k], "bfloat16");
  const w = f.input([n, k], "bfloat16");
  const c = linear(a, w);
  f.output(c);
  if (devices > 1) {
    for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    a.axis(0).parallelize("DIDx");
    c.axis(0).parallelize("Stream");
  }
  const data = f.data();
  const { protocol = "get" } = lowering;
  const lists = Array.from({ length: devices }, (_, each) =>
    record(lower(f, { ...lowering, rank: each }), {
      rank: each,
      sizes: sizesFromMeshes(data.tensors),
      streams,
      protocol,
    }),
  );
  const linked = link(lists);
  const program = applySchedule(linked, { copyStream: onCopyStream ? "dedicated" : "inline" });
  const group = await createCudaBackend({ rendezvous, graph }).open({ world: devices, localRanks: [rank] });
  const prepared = await group.prepare(program);
  writeShards(f, data.tensors, program, prepared, rank);
  const times: number[] = [];
  const host: number[] = [];
  const inLoop: number[] = [];
  for (let i = 0; i < warmUp + runs; i++) {
    await rendezvous.barrier();
    const { milliseconds, hostMilliseconds = NaN } = await prepared.execute();
    if (i < warmUp) continue;
    times.push(milliseconds);
    host.push(hostMilliseconds);
  }
  for (let i = 0; i < runs; i++) inLoop.push((await prepared.execute()).hostMilliseconds ?? NaN);
  prepared.release();
  await group.close();
  return { runs: times, host, inLoop };
}

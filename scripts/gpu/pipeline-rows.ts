/**
 * Times all-gather + matmul over all GPUs as a pipeline over the devices, and one GEMM of the whole shape. Programs are
 * prepared once and run many times without moving inputs. Times are medians over runs of the maximum over ranks, by the
 * host's clock. Host time ends when everything is with the driver.
 */
import { median } from "../../bench/harness/figures.ts";
import { openGroup, soloBackend } from "../../bench/harness/gpu-groups.ts";
import { type Row, rowOf, slowest } from "../../bench/harness/rows.ts";
import type { World } from "../../src/launch/join-world.ts";
import { writeShards } from "./noise.ts";
import { oneGemm, pipelineProgram, type PipelineShape, type Variant, variants } from "./pipeline-programs.ts";

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
  for (const variant of [oneGemm, ...variants]) {
    yield await rowOf(`${label}: ${variant.name}`, async () => rate(await measure(world, shape, variant)));
    if (world.signal.aborted) return;
  }
}

/** Milliseconds on this rank. */
interface Times {
  /** Of each run after a barrier over TCP. */
  readonly runs: readonly number[];
  /** The host's part of `runs`, until the driver has everything. The host has slept before, so its caches are cold. */
  readonly host: readonly number[];
  /** The host's part of runs that begin when the previous run has ended. */
  readonly inLoop: readonly number[];
}

/** One GEMM runs on every rank's GPU by itself. */
async function measure(world: World, shape: PipelineShape, variant: Variant): Promise<Times> {
  const isAlone = variant === oneGemm;
  const rank = isAlone ? 0 : world.rank;
  const { fusion, program } = pipelineProgram(shape, isAlone ? 1 : world.worldSize, variant);
  const group = isAlone
    ? await soloBackend(world, variant.graph).open({ world: 1, localRanks: [0] })
    : await openGroup(world, variant);
  const prepared = await group.prepare(program);
  writeShards(fusion, fusion.data().tensors, program, prepared, rank);
  const times: number[] = [];
  const host: number[] = [];
  const inLoop: number[] = [];
  for (let i = 0; i < warmUp + runs; i++) {
    if (!isAlone) await world.barrier();
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

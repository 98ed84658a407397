/**
 * A sequence-parallel MLP over all GPUs, as one loop from the gather to the residual and as two loops with the
 * activation between them: times and exposed communication, medians of 15 runs of the slowest rank. `--out` writes all
 * figures.
 *
 *     sh braid-offline/braid --script scripts/gpu/fused-mlp.ts 2 --rows 8192 --hidden 8192 --ffn 28672 --out mlp.json
 */
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Prepared } from "../../src/backends/backend.ts";
import type { Program } from "../../src/commands/program.ts";
import { compile, type CompileOptions } from "../../src/compile/compile.ts";
import { createCudaBackend } from "../../src/cuda.ts";
import { shardOf } from "../../src/executor/shard.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { add, gelu, linear } from "../../src/ir/api/ops.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { enterWorld } from "../../src/launch/enter-world.ts";
import type { World } from "../../src/launch/join-world.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";
import { tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import { overlapOf } from "../../src/trace/overlap.ts";
import { noise } from "./noise.ts";
import { median } from "./rows.ts";
import { versions } from "./versions.ts";

const rankMark = "--as-rank";
const runs = 15;
const warmUp = 4;

interface Shape {
  readonly rows: number;
  readonly hidden: number;
  readonly ffn: number;
}

/** `fused`: the activation runs per chunk. Otherwise the user's mesh keeps Stream away from it: a barrier. */
function mlp({ rows, hidden, ffn }: Shape, devices: number, chunks: number, fused: boolean): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [
    f.input([rows, hidden], "bfloat16"),
    f.input([ffn, hidden], "bfloat16"),
    f.input([hidden, ffn], "bfloat16"),
  ];
  const up = linear(x, w1);
  const activated = gelu(up);
  const down = linear(activated, w2);
  f.output(add(x, down));
  const mesh = DeviceMesh.range(devices);
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, chunks);
  x.outerSplit(1, devices).parallelize("DIDx");
  w1.outerSplit(0, devices).parallelize("DIDx");
  w2.outerSplit(1, devices).parallelize("DIDx");
  up.outerSplit(0, chunks).parallelize("Stream");
  if (!fused) {
    activated.setDeviceMesh(mesh).outerSplit(1, devices).parallelize("DIDx");
    down.outerSplit(0, chunks).parallelize("Stream");
  }
  return f;
}

interface Figures {
  readonly name: string;
  readonly milliseconds: readonly number[];
  readonly exposed: readonly number[];
  readonly communication: readonly number[];
}

async function measure(
  world: World,
  name: string,
  f: Fusion,
  options: Omit<CompileOptions, "devices">,
): Promise<Figures> {
  const { rank, worldSize: devices } = world;
  const { program, signature } = compile(f, { ...options, devices, on: "cuda" });
  const group = await createCudaBackend({ rendezvous: world, graph: "on" }).open({
    world: devices,
    localRanks: [rank],
  });
  const prepared = await group.prepare(program);
  writeInputs(f, signature.tensors, program, prepared, rank);
  const own: number[] = [];
  for (let i = 0; i < warmUp + runs; i++) {
    await world.barrier();
    const { milliseconds } = await prepared.execute();
    if (i >= warmUp) own.push(milliseconds);
  }
  const exposed: number[] = [];
  const communication: number[] = [];
  for (let i = 0; i < warmUp + runs; i++) {
    await world.barrier();
    const { trace } = await prepared.execute({ trace: true });
    if (i < warmUp) continue;
    const mine = at(overlapOf(program, trace), rank);
    exposed.push(mine.communication - mine.hidden);
    communication.push(mine.communication);
  }
  prepared.release();
  await group.close();
  return {
    name,
    milliseconds: await slowest(world, own),
    exposed: await slowest(world, exposed),
    communication: await slowest(world, communication),
  };
}

function writeInputs(
  f: Fusion,
  tensors: readonly Parameters<typeof shardOf>[0][],
  { buffers }: Program,
  prepared: Prepared,
  rank: number,
): void {
  const data = f.data();
  const whole = noise(f);
  for (const buffer of buffers) {
    if (buffer.role !== "input" || buffer.rank !== rank || buffer.position === null) continue;
    const tensor = at(tensors, at(data.inputs, buffer.position));
    const given = at(whole, buffer.position);
    prepared.write(buffer.id, shardOf(tensor, given.shape, tensorBytes(given), rank));
  }
}

async function slowest(world: World, own: readonly number[]): Promise<readonly number[]> {
  const all = await world.allGather(new Uint8Array(Float64Array.from(own).buffer));
  const times = all.map((bytes) => new Float64Array(bytes.slice().buffer));
  return own.map((_, i) => Math.max(...times.map((each) => at(each, i))));
}

async function runRank(values: readonly string[]): Promise<number> {
  const who = rankEnvironment(process.env);
  if (who === null) throw new Error("no rank in the environment");
  const { values: given } = parseArgs({
    args: [...values],
    allowPositionals: true,
    options: { rows: { type: "string" }, hidden: { type: "string" }, ffn: { type: "string" }, out: { type: "string" } },
  });
  const world = await enterWorld(who, process.env, 120_000);
  const shape = {
    rows: Number(given.rows ?? 8192),
    hidden: Number(given.hidden ?? 8192),
    ffn: Number(given.ffn ?? 28_672),
  };
  const found: Figures[] = [];
  const say = (text: string): void => {
    if (world.rank === 0) console.log(text);
  };
  say(`rows ${shape.rows}, hidden ${shape.hidden}, ffn ${shape.ffn} over ${world.worldSize} GPUs`);
  say("form                              ms (median, least, most)     exposed ms (median)   communication ms");
  for (const chunks of [4, 8]) {
    for (const [label, options] of [
      ["nccl", { backend: "nccl", streams: 4 }],
      ["cuda", { backend: "cuda", streams: 2 }],
    ] as const) {
      for (const fused of [true, false, true, false]) {
        const name = `${fused ? "one loop" : "two loops"}, ${chunks} chunks, ${label}`;
        const figures = await measure(world, name, mlp(shape, world.worldSize, chunks, fused), options);
        found.push(figures);
        const { milliseconds: ms, exposed, communication } = figures;
        const times = `${median(ms).toFixed(3)} ${Math.min(...ms).toFixed(3)} ${Math.max(...ms).toFixed(3)}`;
        say(
          `${name.padEnd(33)} ${times.padEnd(28)} ${median(exposed).toFixed(3).padEnd(21)} ${median(communication).toFixed(3)}`,
        );
      }
    }
  }
  if (given.out !== undefined && world.rank === 0) {
    writeFileSync(
      given.out,
      `${JSON.stringify({ versions: versions(world.rank, world.localRank), shape, runs, found }, undefined, 1)}\n`,
    );
  }
  await world.leave();
  return 0;
}

async function main(values: readonly string[]): Promise<number> {
  if (values[0] === rankMark) return runRank(values.slice(1));
  const [devices = "2", ...rest] = values;
  const require = createRequire(import.meta.url);
  const jiti = path.join(path.dirname(require.resolve("jiti/package.json")), "lib/jiti-cli.mjs");
  const { end, statuses } = await spawnRanks({
    worldSize: Number(devices),
    command: [process.execPath, jiti, fileURLToPath(import.meta.url), rankMark, ...rest],
    env: process.env,
    timeout: 120_000,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
  });
  if (end !== null) console.log(`ended early by rank ${end.rank}: ${end.reason}`);
  return statuses.every((status) => status === 0) ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));

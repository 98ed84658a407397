/**
 * Replays one graph ten thousand times with changing inputs: the ring all-gather + matmul, and a matmul + all-reduce.
 * Inputs are whole numbers, so results are exact, and a signal that is taken twice or too early shows as a wrong
 * number.
 */
import { median, secondsSince } from "../../bench/harness/figures.ts";
import { openGroup } from "../../bench/harness/gpu-groups.ts";
import { type PartContext, type Row, rowOf } from "../../bench/harness/rows.ts";
import { link } from "../../src/commands/link/link.ts";
import { shardOf, unshardInto } from "../../src/executor/shard.ts";
import { DeviceMesh } from "../../src/ir/device-mesh.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { matmul, sum } from "../../src/ir/api/ops.ts";
import { shapeOf, sizesFromMeshes } from "../../src/ir/sizes.ts";
import { emptyTensor, tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { lower } from "../../src/compile/lower.ts";
import { record } from "../../src/compile/record.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { ring } from "../../test/support/peer-fusions.ts";

const replays = 10_000;
/** Runs from one change of inputs and comparison of results to the next. */
const checkedEvery = 50;
const inputSets = 8;

interface Replayed {
  readonly name: string;
  readonly build: (devices: number) => Fusion;
  readonly protocol: "get" | "put";
  readonly schedule: ScheduleOptions;
}

const gatherAndMultiply = (devices: number): Fusion => ring(devices, [16, 32, 24], "bfloat16");

const replayed: readonly Replayed[] = [
  { name: "get", build: gatherAndMultiply, protocol: "get", schedule: {} },
  { name: "put", build: gatherAndMultiply, protocol: "put", schedule: {} },
  {
    name: "all-reduce in chunks, by kernels that wait for their peers",
    build: multiplyAndReduce,
    protocol: "get",
    schedule: { computeStreams: 1, smMargin: 8 },
  },
];

export async function* replayRows({ world }: PartContext): AsyncGenerator<Row> {
  for (const each of replayed) {
    yield await rowOf(`${replays} replays, ${each.name}`, () => replay(world, each));
    if (world.signal.aborted) return;
  }
}

/** Three chunks, large enough that a kernel needs several blocks for a slice. */
function multiplyAndReduce(devices: number): Fusion {
  const f = new Fusion();
  const a = f.input([3, devices, 64 * devices, 16], "float");
  const b = f.input([devices, 16, 256], "float");
  const partial = matmul(a, b);
  const c = sum(partial, [1]);
  f.output(c);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(1).parallelize("DIDx");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

async function replay(world: PartContext["world"], { build, protocol, schedule }: Replayed): Promise<string> {
  const { rank, worldSize: devices } = world;
  const fusion = build(devices);
  const data = fusion.data();
  const sizes = sizesFromMeshes(data.tensors);
  const lists = Array.from({ length: devices }, (_, each) =>
    record(lower(fusion, { backend: "cuda", protocol, rank: each }), {
      rank: each,
      sizes,
      streams: 3,
      protocol,
    }),
  );
  const program = applySchedule(link(lists), { ...schedule, copyStream: "dedicated" });
  const shapes = data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, sizes) };
  });
  const sets = Array.from({ length: inputSets }, (_, seed) => {
    const inputs = randomInputs(shapes, createRandom(seed), "small-integers");
    return { inputs, expected: tensorBytes(at(evaluateFusion(data, inputs).outputs, 0)) };
  });
  const group = await openGroup(world, { graph: "on", timeout: 30 });
  const prepared = await group.prepare(program);
  const own = program.buffers.filter((buffer) => buffer.rank === rank);
  const output = own.find(({ role }) => role === "output");
  if (output === undefined) throw new Error("no output on this rank");
  const outputTensor = at(data.tensors, at(data.outputs, 0));
  const whole = emptyTensor(outputTensor.dtype, shapeOf(outputTensor, sizes));
  const start = performance.now();
  let busy = 0;
  const host: number[] = [];
  for (let run = 0; run < replays; run++) {
    const { inputs, expected } = at(sets, Math.floor(run / checkedEvery) % inputSets);
    if (run % checkedEvery === 0) {
      for (const { role, id, position } of own) {
        if (role !== "input" || position === null) continue;
        const given = at(inputs, position);
        const tensor = at(data.tensors, at(data.inputs, position));
        prepared.write(id, shardOf(tensor, given.shape, tensorBytes(given), rank));
      }
      // Peers read this rank's input, so no rank starts before all have written theirs.
      await world.barrier();
    }
    const { milliseconds, hostMilliseconds = NaN } = await prepared.execute();
    busy += milliseconds;
    host.push(1000 * hostMilliseconds);
    if (run % checkedEvery !== checkedEvery - 1) continue;
    unshardInto(outputTensor, whole.shape, prepared.read(output.id), rank, tensorBytes(whole));
    if (Buffer.compare(tensorBytes(whole), expected) !== 0) throw new Error(`run ${run} has a wrong result`);
    await world.barrier();
  }
  prepared.release();
  await group.close();
  return `${replays / checkedEvery} results compared, ${((busy / replays) * 1000).toFixed(1)} us per run on the host's clock, of which ${median(host).toFixed(1)} until the graph is launched (median), ${secondsSince(start)}`;
}

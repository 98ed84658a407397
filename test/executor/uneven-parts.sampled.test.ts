/**
 * Parts of ceil(size / devices) elements, later ones shorter or empty: every op and communication gives the oracle's
 * result, and the same bits on the machine, on threads, by a library's collectives and by copies from peers.
 */
import { expect, it } from "vitest";
import { compile, MultiDeviceExecutor, type ScheduleOptions, simulate, Tensor } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { roundProfile } from "../simulate/profile.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { onTwoDimensions, unevenFusion, unevenFusions, unevenPipeline } from "../support/uneven-fusions.ts";

interface Case {
  readonly name: string;
  readonly backend: "nccl" | "cuda";
  readonly devices: number;
  readonly size: number;
}

const cases = combinations<Case>({
  name: Object.keys(unevenFusions),
  backend: ["nccl", "cuda"],
  devices: [1, 2, 3, 5, 8],
  size: [0, 1, 2, 3, 5, 7, 8, 1000],
});

it.each(sample(cases, 307, 6))("$name of $size on $devices, $backend", async ({ name, backend, devices, size }) => {
  await expectOracle(unevenFusion(name, size, devices), { devices, backend, seed: size });
});

it.each(
  sample(
    combinations<Omit<Case, "name">>({ size: [0, 1, 2, 3, 5, 8], devices: [2, 3], backend: ["nccl", "cuda"] }),
    20,
  ),
)("on two dimensions: $size on 2 x $devices, $backend", async ({ size, devices, backend }) => {
  await expectOracle(onTwoDimensions(size, devices), { devices: 2 * devices, backend });
});

it("a sender that copies gives the same", async () => {
  for (const name of ["Allgather", "matmul, contraction to shares of rows"]) {
    await expectOracle(unevenFusion(name, 5, 3), { devices: 3, backend: "cuda", protocol: "put" });
  }
});

it("symbolic sizes take any input, and shards have the lengths of their parts", async () => {
  const executor = await MultiDeviceExecutor.create(unevenFusion("elementwise", null, 3), { devices: 3, on: "cpu" });
  try {
    for (const rows of [7, 0, 1, 3]) {
      const x = Tensor.zeros([rows, 3]);
      x.data.forEach((_, i) => (x.data[i] = i));
      const [shards] = await executor.run([x], { gather: false });
      const lengths = [0, 1, 2].map((rank) => shards?.[rank]?.shape[0]);
      const part = Math.ceil(rows / 3);
      expect(lengths).toEqual([0, 1, 2].map((rank) => Math.max(0, Math.min(part, rows - rank * part))));
      // Shards as inputs give the same whole.
      const [whole] = await executor.run([Array.from({ length: 3 }, (_, rank) => shards?.[rank] ?? null)]);
      expect(whole?.shape).toEqual([rows, 3]);
    }
  } finally {
    await executor.close();
  }
});

it("empty shares issue nothing on any rank", () => {
  const { program } = compile(unevenFusion("Allgather", 5, 8), { devices: 8 });
  const peers = program.ranks.map(({ commands }) =>
    commands.flatMap((each) =>
      each.kind === "transfer" && each.operation.kind === "group" ? each.operation.ops.map(({ type }) => type) : [],
    ),
  );
  // Five ranks have a column each; the others only receive.
  expect(peers.map((types) => types.filter((type) => type === "send").length)).toEqual([7, 7, 7, 7, 7, 0, 0, 0]);
  expect(peers.map((types) => types.filter((type) => type === "recv").length)).toEqual([4, 4, 4, 4, 4, 5, 5, 5]);
  const { program: empty } = compile(unevenFusion("linear, rows", 0, 3), { devices: 3 });
  expect(empty.ranks.flatMap(({ commands }) => commands.map(({ kind }) => kind))).toEqual([]);
});

const pipelines = combinations<Omit<Case, "name"> & { readonly chunks: number }>({
  chunks: [1, 2, 3, 4, 8],
  backend: ["nccl", "cuda"],
  devices: [1, 2, 3, 5, 8],
  size: [0, 1, 2, 3, 5, 7, 8, 24],
});

it.each(sample(pipelines, 401, 4))(
  "a pipeline of $size rows in $chunks chunks on $devices, $backend",
  async ({ chunks, backend, devices, size }) => {
    await expectOracle(unevenPipeline(size, chunks, devices), { devices, backend });
  },
);

const schedules: Readonly<Record<string, ScheduleOptions>> = {
  "as recorded": {},
  "in place, own chunk last": { inPlace: true, ownLast: true },
  "split chunks": { splitChunks: 2, copyStream: "inline" },
  "joined GEMMs": { computeStreams: 1, inPlace: true },
  "batched signals": { batchSignals: true, computeStreams: 2 },
};

it.each(
  sample(combinations({ name: Object.keys(schedules), size: [1, 3, 7, 12], backend: ["nccl", "cuda"] as const }), 30),
)("schedules change no bit: $name of $size rows, $backend", async ({ name, size, backend }) => {
  const source = unevenPipeline(size, 4, 3);
  const values = Tensor.zeros([size, 3]);
  values.data.forEach((_, i) => (values.data[i] = Math.sin(i)));
  const others = [Tensor.zeros([5, 3]), Tensor.zeros([4, 5])];
  for (const { data } of others) data.forEach((_, i) => (data[i] = Math.cos(i)));
  const results = [];
  for (const schedule of [{}, schedules[name] ?? {}]) {
    const on = createCpuBackend({ interleaving: { kind: "seed", seed: size } });
    const executor = await MultiDeviceExecutor.create(source, { devices: 3, backend, schedule, on });
    try {
      results.push(await executor.run([values, ...others], { gather: false }));
    } finally {
      await executor.close();
    }
  }
  expect(results[1]).toEqual(results[0]);
});

it("are simulated", () => {
  const { program } = compile(unevenPipeline(7, 4, 3), { devices: 3, backend: "nccl" });
  expect(simulate(program, roundProfile, { graph: true }).milliseconds).toBeGreaterThan(0);
});

/**
 * Slots instead of slices never change a bit and never cost memory: random fusions, and all loops over the devices,
 * lowered with and without shrink-stream-buffers and run in seeded schedules, with eager transfers and with one queue
 * per rank.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { DiagnosticError, Fusion, linear, link, lower, neg, type Program, record } from "@braid-compiler/braid";
import { type CpuOptions, createCpuBackend } from "@braid-compiler/braid/cpu";
import { tensorBytes } from "../../src/numerics/tensor/host-tensor.ts";
import { randomTensor } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import * as pointToPointFusions from "../support/point-to-point-fusions.ts";
import { type ScheduleOptions, schedules } from "../support/point-to-point-schedules.ts";
import { buildFusion, type Recipe, recipes, type Step } from "../support/random-fusion.ts";
import { draws, runs } from "../support/suite.ts";

interface Setting {
  readonly devices: number;
  readonly streams: number;
  readonly options: ScheduleOptions;
}

/** Null if lowering rejects the Fusion. */
function linked(fusion: Fusion, { devices, streams, options }: Setting, shrink: boolean): Program | null {
  const { protocol = "get" } = options;
  try {
    return link(
      Array.from({ length: devices }, (_, rank) =>
        record(lower(fusion, { ...options, rank, shrink }), {
          rank,
          streams,
          protocol,
        }),
      ),
    );
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** The outputs of the second of two runs: it finds slots and slices as the first has left them. */
async function outputsOf(program: Program, options: CpuOptions): Promise<readonly string[]> {
  const world = program.ranks.length;
  const group = await createCpuBackend(options).open({ world, localRanks: program.ranks.map(({ rank }) => rank) });
  const prepared = await group.prepare(program);
  const random = createRandom(11);
  // In the order of ranks and positions, which both Programs have.
  for (const { id, role, dtype, shape } of program.buffers) {
    if (role === "input") prepared.write(id, tensorBytes(randomTensor({ dtype, shape }, random, "uniform")));
  }
  for (let run = 0; run < 2; run++) await prepared.execute();
  const outputs = program.buffers
    .filter(({ role }) => role === "output")
    .map(({ id, rank, position }) => `${rank}.${position}: ${Buffer.from(prepared.read(id)).toString("base64")}`);
  await group.close();
  return outputs.sort();
}

function arenaBytes({ ranks }: Program): number {
  return ranks.reduce((sum, { arenaBytes: bytes }) => sum + Object.values(bytes).reduce((a, b) => a + b), 0);
}

/** Without what the arenas round up. */
function bufferBytes({ buffers }: Program): number {
  return buffers.reduce((sum, { bytes }) => sum + bytes, 0);
}

/** Whether the pass had an effect. */
async function expectSame(fusion: Fusion, setting: Setting, seed: number): Promise<boolean> {
  const whole = linked(fusion, setting, false);
  const shrunk = linked(fusion, setting, true);
  expect(shrunk === null).toBe(whole === null);
  if (whole === null || shrunk === null) return false;
  expect(arenaBytes(shrunk)).toBeLessThanOrEqual(arenaBytes(whole));
  const expected = await outputsOf(whole, {});
  const saves = bufferBytes(shrunk) < bufferBytes(whole);
  const ways: readonly CpuOptions[] = [
    { interleaving: { kind: "seed", seed }, transfers: "eager" },
    { interleaving: { kind: "seed", seed: seed + 1 }, transfers: "synchronous" },
    { queues: "ranks" },
  ];
  for (const way of saves ? ways : ways.slice(0, 1)) expect(await outputsOf(shrunk, way)).toEqual(expected);
  return saves;
}

const streams = fc.integer({ min: 1, max: 8 });

const plain: Step = {
  op: 0,
  operand: 0,
  other: 0,
  axis: 0,
  shard: 0,
  split: false,
  stream: 0,
  mesh: 0,
  reversed: false,
};

/** Here first fit needed a larger arena for the smaller buffers: none of them filled the gap that one had left. */
const fragmented: Recipe = {
  devices: 8,
  shape: [0, 0, 0],
  inputShard: 3,
  inputSplit: false,
  dtype: "float",
  steps: [
    { ...plain, op: 2 },
    { ...plain, op: 10 },
  ],
};

it("random fusions", async () => {
  await fc.assert(
    fc.asyncProperty(recipes, streams, fc.boolean(), fc.nat(), async (recipe, count, insertReshardingAfter, seed) => {
      const options = { insertReshardingAfter };
      await expectSame(buildFusion(recipe), { devices: recipe.devices, streams: count, options }, seed);
    }),
    { ...draws({ quick: 2, long: 30 }), examples: [[fragmented, 1, true, 0]] },
  );
}, 120_000);

it("chains, whose intermediates live in turn", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 3, max: 6 }),
      fc.integer({ min: 1, max: 3 }),
      streams,
      fc.nat(),
      async (chunks, length, rows, count, seed) => {
        const f = new Fusion();
        let last = f.input([chunks * rows, 64], "float");
        for (let i = 0; i < length; i++) {
          last = i % 2 === 0 ? neg(last) : linear(last, f.input([64, 64], "float"));
          last.outerSplit(0, chunks).parallelize("Stream");
        }
        f.output(last);
        await expectSame(f, { devices: 1, streams: count, options: {} }, seed);
      },
    ),
    draws({ quick: 2, long: 30 }),
  );
}, 120_000);

it("loops over the devices", async () => {
  let shrunk = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...Object.values(pointToPointFusions)),
      fc.integer({ min: 1, max: 8 }),
      streams,
      fc.constantFrom(...Object.values(schedules)),
      fc.boolean(),
      fc.nat(),
      async (build, devices, count, schedule, insertReshardingAfter, seed) => {
        const setting = { devices, streams: count, options: { ...schedule, insertReshardingAfter } };
        if (await expectSame(build(devices), setting, seed)) shrunk++;
      },
    ),
    draws({ quick: 4, long: 40 }),
  );
  expect(shrunk).toBeGreaterThan(runs({ quick: 0, long: 2 }));
}, 120_000);

/**
 * Models without Stream under `deviceLoops`: the oracle's result, and the bits of the same model without loops, under any
 * lowering, schedule and interleaving. device-loops.test.ts counts the loops.
 */
import { expect, it } from "vitest";
import type { ScheduleOptions } from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { placedData } from "../../src/compile/lower.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { builtModel, inputsOf, type ModelName, outputsOf } from "../support/model-runs.ts";
import { shardedModels } from "../support/sharded-models.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";

const lowerings = {
  "nccl, rotated": { backend: "nccl" },
  "nccl, linear": { backend: "nccl", p2p: "linear", interStreamSync: true },
  "nccl, broadcast": { backend: "nccl", p2p: "broadcast" },
  "ucc, broadcast": { backend: "ucc", p2p: "broadcast" },
  "cuda, get": { backend: "cuda", protocol: "get" },
  "cuda, put": { backend: "cuda", protocol: "put" },
} as const satisfies Record<string, Partial<LoweringOptions>>;

/** Those that change no bit. */
const schedules = {
  "as recorded": {},
  "in place": { inPlace: true },
  "own chunk last": { ownLast: true },
  "one compute stream": { inPlace: true, ownLast: true, computeStreams: 1 },
  "two compute streams": { computeStreams: 2, splitChunks: 2 },
  "sums in GEMMs": { dropSignals: true, inPlace: true, ownLast: true, gemmSums: true, computeStreams: 1 },
} as const satisfies Record<string, ScheduleOptions>;

interface Case {
  readonly name: ModelName;
  readonly devices: number;
  readonly rows: number;
  readonly dtype: "float" | "bfloat16";
  readonly lowering: keyof typeof lowerings;
  readonly schedule: keyof typeof schedules;
}

const cases = combinations<Case>({
  name: keysOf(shardedModels),
  devices: [2, 3, 4, 5],
  rows: [10, 7, 3],
  dtype: ["float", "bfloat16"],
  lowering: keysOf(lowerings),
  schedule: keysOf(schedules),
}).filter(({ name, devices }) => shardedModels[name].groups * devices <= 6);

it.each(sample(cases, 1201, 12))(
  "$name: $rows rows of $dtype on $devices, $lowering, $schedule",
  async ({ name, rows, dtype, lowering, schedule, ...sizes }) => {
    const { fusion, devices } = builtModel(name, { ...sizes, rows, dtype, hidden: 3 * sizes.devices + (rows % 2) });
    const inputs = inputsOf(fusion, rows);
    const whole = await outputsOf(fusion, { devices, overlap: false, on: createCpuBackend({ workers: 0 }) }, inputs);
    const { outputs, bounds } = evaluateFusion(placedData(fusion, {}), inputs);
    outputs.forEach((expected, i) => {
      expect(compare(at(whole, i), expected, at(bounds, i)).firstBad).toBeNull();
    });
    const on = createCpuBackend({
      interleaving: { kind: "seed", seed: rows },
      transfers: devices % 2 === 0 ? "eager" : "synchronous",
    });
    const loops = { ...lowerings[lowering], deviceLoops: true, schedule: schedules[schedule], streams: 1 + (rows % 4) };
    expect(await outputsOf(fusion, { devices, ...loops, on }, inputs)).toEqual(whole);
  },
);

/**
 * Compares this checkout with another one, whose folder the variable BESIDE names: for examples, layered programs and
 * random ones, both must record, rewrite and predict the same, to the last digit of the JSON. For changes that make
 * something faster and nothing different.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { createJiti } from "jiti";
import fc from "fast-check";
import { type compile, type CompileOptions, DiagnosticError, parseProfile, type Program } from "@braid-compiler/braid";
import { link } from "../../src/commands/link/link.ts";
import type { LoweringOptions } from "../../src/passes/options.ts";
import type { applySchedule, ScheduleOptions } from "../../src/schedule/schedule.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import type { simulate } from "../../src/simulate/simulate.ts";
import { keysOf } from "../../src/support/invariant.ts";
import { exampleFiles, loadExample } from "../support/example-program.ts";
import { layeredFusions } from "../support/layered-fusions.ts";
import { recordSetting, settings } from "../verify/random/random-setting.ts";
import type { Campaign } from "./campaign.ts";

const schedules: readonly ScheduleOptions[] = [
  {},
  { copyStream: "dedicated" },
  { computeStreams: 1 },
  { computeStreams: 2, copyStream: "dedicated" },
  { inPlace: true },
  { inPlace: true, ownLast: true },
  { earlyGathers: true },
  { earlyGathers: true, inPlace: true, computeStreams: 1 },
  { computeStreams: 1 },
  { computeStreams: 2 },
  { splitChunks: 2 },
  { splitChunks: 4, computeStreams: 1 },
  { batchSignals: true },
  { inPlace: true, computeStreams: 1, batchSignals: true },
  { inPlace: true, computeStreams: 2, batchSignals: true, smMargin: 8, copyStream: "dedicated" },
  { computeStreams: 1 },
  { inPlace: true, ownLast: true, splitChunks: 3, computeStreams: 2 },
  { inPlace: true, ownLast: true, computeStreams: 1, smMargin: 8 },
];

const lowerings: readonly Partial<LoweringOptions>[] = [
  { backend: "nccl", overlap: false },
  { backend: "nccl", p2p: "rotated" },
  { backend: "nccl", p2p: "broadcast" },
  { backend: "cuda", p2p: "rotated", protocol: "get" },
  { backend: "cuda", p2p: "rotated", protocol: "put", insertReshardingAfter: true },
];

/** The functions that both checkouts have. */
interface Checkout {
  readonly compile: (source: Parameters<typeof compile>[0], options: CompileOptions) => { readonly program: Program };
  readonly applySchedule: typeof applySchedule;
  readonly simulate: typeof simulate;
}

async function checkoutIn(folder: string): Promise<Checkout> {
  const source = (file: string): string => path.resolve(folder, "src", file);
  const alias = {
    "@braid-compiler/braid/cpu": source("cpu.ts"),
    "@braid-compiler/braid/cuda": source("cuda.ts"),
    "@braid-compiler/braid/internals": source("internals.ts"),
    "@braid-compiler/braid": source("index.ts"),
  };
  const jiti = createJiti(import.meta.url, { alias });
  const load = async <T>(file: string): Promise<T> => jiti.import<T>(source(file));
  return {
    ...(await load<Pick<Checkout, "compile">>("index.ts")),
    ...(await load<Pick<Checkout, "applySchedule">>("schedule/schedule.ts")),
    ...(await load<Pick<Checkout, "simulate">>("simulate/simulate.ts")),
  };
}

/** What is compared, by name. */
type Case = readonly [name: string, program: (checkout: Checkout) => Program | null];

async function casesOf(count: number): Promise<readonly Case[]> {
  const cases: Case[] = [];
  const add = (name: string, source: Parameters<typeof compile>[0], devices: number, streams: number): void => {
    for (const lowering of lowerings) {
      const options = { devices, streams, ...lowering, schedule: { copyStream: "inline" }, verify: "off" } as const;
      cases.push([
        `${name} on ${devices} with ${JSON.stringify(lowering)}`,
        ({ compile: compiled }) => orNull(() => compiled(source, options).program),
      ]);
    }
  };
  for (const name of exampleFiles) {
    const { build } = await loadExample(name);
    for (const devices of [2, 4]) {
      const built = orNull(() => build({ devices }));
      if (built !== null && "data" in built) add(name, built, devices, 64);
    }
  }
  for (const name of keysOf(layeredFusions)) {
    for (const [layers, devices, streams] of [
      [5, 4, 64],
      [4, 3, 2],
      [2, 8, 3],
    ] as const)
      add(`${layers} ${name}`, layeredFusions[name](layers, devices), devices, streams);
  }
  for (const [i, setting] of fc.sample(settings, { numRuns: count, seed: 1 }).entries()) {
    const lists = recordSetting(setting);
    if (lists !== null) cases.push([`random program ${i}`, () => link(lists)]);
  }
  return cases;
}

/** Null where the program cannot be built or lowered in this way. */
function orNull<T>(run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof DiagnosticError || (error instanceof Error && error.name === "DiagnosticError")) return null;
    throw error;
  }
}

/** What of the Program differs; undefined if nothing. */
function difference(program: Program, ours: Checkout, theirs: Checkout, profile: MachineProfile): string | undefined {
  const isSame = (of: (checkout: Checkout) => unknown): boolean =>
    JSON.stringify(of(ours)) === JSON.stringify(of(theirs));
  for (const options of schedules) {
    if (!isSame(({ applySchedule: apply }) => apply(program, options))) return `under ${JSON.stringify(options)}`;
    const rewritten = ours.applySchedule(program, options);
    for (const graph of rewritten === program ? [true, false] : [true]) {
      if (!isSame(({ simulate: predict }) => predict(rewritten, profile, { graph })))
        return `predicted under ${JSON.stringify(options)}, graph ${graph}`;
    }
  }
  return undefined;
}

export const beside: Campaign = {
  what: "Programs, their rewrites and predictions are those of the checkout in $BESIDE: examples, layers, random programs",
  count: 200,
  run: async (count) => {
    const folder = process.env["BESIDE"];
    if (folder === undefined) return { ok: true, text: "left out: BESIDE names no checkout" };
    const theirs = await checkoutIn(folder);
    const ours = await checkoutIn(path.resolve(import.meta.dirname, "../.."));
    const file = path.resolve(import.meta.dirname, "../../profiles/4xH200.json");
    const profile = parseProfile(readFileSync(file, "utf8"), file);
    const different: string[] = [];
    let compared = 0;
    for (const [name, programOf] of await casesOf(count)) {
      const program = programOf(ours);
      if (JSON.stringify(program) !== JSON.stringify(programOf(theirs))) different.push(`${name}: recorded`);
      if (program === null) continue;
      compared++;
      const what = difference(program, ours, theirs, profile);
      if (what !== undefined) different.push(`${name}: ${what}`);
    }
    for (const each of different.slice(0, 10)) console.log(each);
    return { ok: different.length === 0, text: `${compared} programs, ${different.length} different` };
  },
};

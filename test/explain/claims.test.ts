/**
 * What the sentence of each cause claims is checked against the run: its commands, their times, and the costs of the
 * profile, for examples at sizes that a machine is made for.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { compile, type CompileOptions, type Parameters } from "@braid-compiler/braid";
import { touchesPeers } from "../../src/commands/barriers.ts";
import { type ExplainedRun, explainRun } from "../../src/explain/explain-run.ts";
import { serialOf } from "../../src/explain/serial-program.ts";
import { linksOf } from "../../src/explain/idle/links.ts";
import type { IdlePart } from "../../src/explain/idle/idle-time.ts";
import { accesses } from "../../src/commands/region.ts";
import type { Program } from "../../src/commands/program.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { at } from "../../src/support/invariant.ts";
import { exampleFusion } from "../support/example-program.ts";

const profile = parseProfile(readFileSync(new URL("../../profiles/4xH200.json", import.meta.url), "utf8"), "4xH200");

interface Explained {
  readonly example: string;
  readonly devices: number;
  readonly params: Partial<Parameters>;
  readonly options?: Partial<CompileOptions>;
}

const large = { M: 8192, K: 8192 };
const blocks = { S: 4, B: 4, L: 2048, H: 8192, FFN: 28672, DTYPE: "bfloat16" } as const;
const cases: readonly Explained[] = [
  { example: "mlp.ts", devices: 4, params: { ...large, H: 28672 } },
  { example: "mlp.ts", devices: 4, params: { ...large, H: 28672 }, options: { schedule: { earlyGathers: true } } },
  { example: "mlp.ts", devices: 4, params: { ...large, H: 28672 }, options: { backend: "cuda" } },
  { example: "pipeline.ts", devices: 2, params: { ...large, S: 4, H: 16384, N: 8192 } },
  { example: "pipeline.ts", devices: 4, params: { ...large, S: 8, H: 16384, N: 8192 } },
  { example: "allgather-matmul.ts", devices: 4, params: { ...large, N: 8192 } },
  { example: "matmul-reduce-scatter.ts", devices: 4, params: { ...large, N: 8192 }, options: { backend: "cuda" } },
  { example: "ring-allgather-matmul.ts", devices: 4, params: { ...large, N: 8192 } },
  { example: "transformer/llama-block.ts", devices: 2, params: {} },
  { example: "transformer/mlp.ts", devices: 4, params: blocks, options: { deallocate: false } },
];

/** The sum of what launches, events and signals can cost between two commands. */
const { launch, join, event, signal } = profile.costs;
const mostLatency = (launch + join + 4 * event + 2 * signal) / 1000;

describe.each(cases)("$example on $devices devices, $params $options", ({ example, devices, params, options }) => {
  it("has causes that its streams show", async () => {
    const fusion = await exampleFusion(example, devices, params);
    const compiling: CompileOptions = { devices, on: "cuda", verify: "off", ...options };
    const { program } = compile(fusion, compiling);
    const serial = serialOf(fusion, compiling);
    const run = explainRun({ program, ...simulate(program, profile, { graph: true }) }, profile, {
      serial,
      graph: true,
    });
    expect(run.milliseconds).toBeGreaterThanOrEqual(run.floor.milliseconds - 1e-9);
    const sum = run.causes.reduce((total, { milliseconds }) => total + milliseconds, 0);
    expect(sum).toBeCloseTo(run.exposed, 9);
    for (const part of run.idle) expect(falseClaim(program, run, part)).toBeNull();
  });
});

/** Null if what the cause of the part says is so. */
function falseClaim(program: Program, run: ExplainedRun, { cause, command: number, start, end }: IdlePart): unknown {
  const { rank, index } = placeOf(program, number);
  const found = { cause, start, end, rank, index };
  const command = number < 0 ? null : at(at(program.ranks, rank).commands, index);
  const origin = number < 0 ? null : at(at(program.ranks, rank).origins, index);
  const moves = command !== null && (command.kind !== "launch" || touchesPeers(program, rank, command));
  const region = run.regions.find((each) => each.region === origin?.path[0]);
  const own = run.trace.find((each) => each.rank === rank && each.command === index);
  const kernelRuns = run.trace.some(
    (each) =>
      each.start < end && each.end > start && at(at(program.ranks, each.rank).commands, each.command).kind === "launch",
  );
  switch (cause) {
    case "latency":
      return end - start <= mostLatency ? null : found;
    case "host":
      return null;
    case "sms":
      // In the time of the wait, or in that of a transfer that ends later because of it.
      return kernelRuns || (own !== undefined && moves) ? null : found;
    case "latePeer":
      return rank !== run.rank ? null : found;
    case "linkBound":
      return moves && region !== undefined && region.load.link > region.load.kernels ? null : found;
    case "firstChunk":
    case "lastChunk":
    case "dependent":
      return moves && origin !== null && origin.iteration.length > 0 ? null : found;
    case "notInLoop":
      return moves && (region === undefined || !region.isLoop || region.load.kernels === 0) ? null : found;
    case "queued":
      // In the time of the transfer, not before it began.
      return moves && own !== undefined && own.start <= start + 1e-9 && isBesideAnother(program, run, rank, index)
        ? null
        : found;
    case "order":
    case "reuse":
    case "localCopy":
      return command === null ? found : null;
    default:
      return found;
  }
}

/** Whether another transfer of the stream or link ended while this one, or one behind it, had its data. */
function isBesideAnother(program: Program, run: ExplainedRun, rank: number, index: number): boolean {
  const { commands } = at(program.ranks, rank);
  const { stream } = at(commands, index);
  const queue = run.trace.filter((each) => each.rank === rank && at(commands, each.command).stream === stream);
  const place = queue.findIndex(({ command }) => command === index);
  return queue.slice(place, place + 8).some(({ command }) => {
    const reads = new Set(accesses(program, rank, command).reads.map(({ buffer }) => buffer));
    const made = run.trace.filter(
      (each) =>
        each.rank === rank && accesses(program, rank, each.command).writes.some(({ buffer }) => reads.has(buffer)),
    );
    const own = at(
      run.trace.filter((each) => each.rank === rank && each.command === command),
      0,
    );
    const last = Math.max(0, ...made.filter((each) => each.end <= own.start + 1e-9).map((each) => each.end));
    const links = new Set(linksOf(program, rank, command));
    const onLinks = run.trace.filter((each) =>
      linksOf(program, each.rank, each.command).some((link) => links.has(link)),
    );
    return [...queue, ...onLinks].some(
      (each) => each !== own && each.end > last + 1e-9 && each.end <= own.start + 1e-9,
    );
  });
}

function placeOf({ ranks }: Program, number: number): { readonly rank: number; readonly index: number } {
  let index = number;
  for (const { rank, commands } of ranks) {
    if (index < commands.length) return { rank, index };
    index -= commands.length;
  }
  return { rank: -1, index: -1 };
}

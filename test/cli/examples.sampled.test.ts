/** Every example lowers, and runs and checks, on 1, 2, 3, 4 and 8 devices with 8 streams and with one. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import { givenOptions, programCommand } from "../../src/cli/flags/option-flags.ts";
import { type LowerFlags, lowerFile } from "../../src/cli/lower/lower-file.ts";
import { type Building, whileBuilding } from "../../src/cli/program/apart/build-apart.ts";
import { runFile, type RunResult } from "../../src/cli/run/run-file.ts";
import type { RunFlags } from "../../src/cli/run/run-flags.ts";
import { compileNames } from "../../src/compile/options/flags-text.ts";
import { createCpuBackend } from "../../src/cpu.ts";
import { exampleFiles, examplesFolder } from "../support/example-program.ts";
import { combinations } from "../support/split-cases.ts";
import { runs, sample } from "../support/suite.ts";
import { cli } from "./captured-cli.ts";

const all = combinations({ name: exampleFiles, devices: [1, 2, 3, 4, 8] });
const cases = sample(all, 18, 4);
/** Quick contracts fewer elements than the examples do. */
const contracted = runs({ quick: 48, long: 0 });

function sizesOf(file: string): readonly string[] {
  const hasContraction = /\bprogram\(\s*\{[^}]*\bK: \d/u.test(readFileSync(file, "utf8"));
  return contracted > 0 && hasContraction ? ["--set", `K=${contracted}`] : [];
}

/** Two hosts, where an example is about hosts. */
function hostsOf(name: string, devices: number): readonly string[] {
  return name.startsWith("hosts/") && devices % 2 === 0 ? ["--devices-per-host", String(devices / 2)] : [];
}

/** The transformer's examples also give a gradient for x and for each weight. */
const outputCounts: Readonly<Record<string, number>> = {
  "transformer/attention.ts": 6,
  "transformer/data-parallel.ts": 5,
  "transformer/gpt-block.ts": 14,
  "transformer/llama-block.ts": 9,
  "transformer/mlp.ts": 6,
};

/** What programs without Stream have instead of a loop over streams. A ring of one device has no loop. */
const withoutStream = (devices: number): Readonly<Record<string, string>> => ({
  "hand-built.ts": devices === 1 ? "= matmul\\(" : "FOR i\\d+ from 0 to",
  "transformer/ring-attention.ts": "= matmul\\(",
  "transformer/weight-prefetch.ts": devices === 1 ? "= linear\\(" : "type=Allgather",
});

const step = (): void => {};

/** `work` has one build of the file for all that it does: a build starts a thread. Nothing may be printed. */
async function whileBuilt(
  file: string,
  flags: LowerFlags | RunFlags,
  work: (building: Building | null) => Promise<void>,
): Promise<void> {
  const printed: string[] = [];
  await whileBuilding(file, flags, (text) => void printed.push(text), work);
  expect(printed).toEqual([]);
}

it.each(cases)("$name lowers for the first, second and last of $devices devices", async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  const args = [file, "--devices", String(devices)];
  const flags = programCommand("lower").parse(args, { from: "user" }).opts<LowerFlags>();
  const loop = withoutStream(devices)[name] ?? "FOR streamIdx in ";
  const form = new RegExp(`^\\n(?:// T\\d+ .*\\n)*%HostIrContainer \\{ .*${loop}.*\\} // %HostIrContainer\\n`, "s");
  await whileBuilt(file, flags, async (building) => {
    for (const rank of new Set([0, 1 % devices, devices - 1])) {
      const noted: string[] = [];
      const note = (lines: readonly string[]): void => void noted.push(...lines);
      const text = await lowerFile(file, { ...flags, rank }, {}, { building, step, note, isWatched: false });
      expect(text).toMatch(form);
      expect(noted).toEqual([]);
    }
  });
});

/** Without a BLAS: its bits depend on whether a product is done in parts, which depends on who is idle. */
const onThreads = createCpuBackend({ blas: "off" });
const inTurn = createCpuBackend({ blas: "off", workers: 0 });

const title = "$name runs on $devices devices as the oracle does, with the same bits on one stream, without threads";

// Long runs every example on one or two numbers of devices; five is no multiple of four, so that all take part.
it.each(sample(all, 18, 4))(title, async ({ name, devices }) => {
  const file = path.join(examplesFolder, name);
  const args = [file, "--devices", String(devices), ...sizesOf(file), ...hostsOf(name, devices)];
  const commandOf = (own: readonly string[]) => programCommand("run").parse([...args, ...own], { from: "user" });
  await whileBuilt(file, commandOf([]).opts<RunFlags>(), async (building) => {
    const run = async (backend: Backend, ...own: readonly string[]): Promise<RunResult["outputs"]> => {
      const command = commandOf(own);
      const place = { backend, world: null, localRanks: null, holderOf: (rank: number) => rank };
      const given = givenOptions(command, compileNames);
      const result = await runFile(file, command.opts<RunFlags>(), given, { ...place, building, step });
      expect(result).toMatchObject({ notes: [], failures: [] });
      return result?.outputs ?? [];
    };
    const outputs = await run(onThreads, "--streams", "8", "--check");
    expect(outputs.map(({ check }) => check?.ok)).toEqual(Array(outputCounts[name] ?? 1).fill(true));
    const others = await run(inTurn, "--streams", "1");
    expect(others.map(({ fingerprint }) => fingerprint)).toEqual(outputs.map(({ fingerprint }) => fingerprint));
  });
});

const withAttention = ["attention", "ring-attention"];

it.each(sample(combinations({ name: withAttention, seed: ["0", "1", "2"] }), 9))(
  "transformer/$name with attention as ops gives what its reference does, seed $seed",
  async ({ name, seed }) => {
    const file = path.join(examplesFolder, "transformer", `${name}.ts`);
    const { status, out, err } = await cli(
      "run",
      file,
      "--devices",
      "4",
      "--attention",
      "ops",
      "--check",
      "--seed",
      seed,
    );
    expect([status, err], out).toEqual([0, ""]);
  },
);

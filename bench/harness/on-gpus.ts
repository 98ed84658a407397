/**
 * Runs a script as one process per GPU, and writes what it found: called without a rank, the script starts itself once
 * for each.
 */
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { enterWorld } from "../../src/launch/enter-world.ts";
import type { World } from "../../src/launch/join-world.ts";
import { rankEnvironment } from "../../src/launch/rank-environment.ts";
import { spawnRanks, type SpawnOptions, type WorldResult } from "../../src/launch/spawn-ranks.ts";
import { versions } from "./libraries.ts";

const rankMark = "--as-rank";

export interface RankWork {
  readonly world: World;
  /** The arguments that are no flags. */
  readonly names: readonly string[];
  readonly flags: Readonly<Record<string, string | undefined>>;
  /** With `--out FILE`, rank 0 writes these fields with the date, the machine and the command as JSON. */
  readonly write: (fields: Readonly<Record<string, unknown>>) => void;
}

export interface GpuScript {
  /** The script's `import.meta.url`; its first argument is the number of GPUs. */
  readonly url: string;
  /** Milliseconds for joining and each exchange. */
  readonly timeout: number;
  /** Names of flags with a value, besides `--out`. */
  readonly flags?: readonly string[];
  /** Runs in every process, and returns its exit status. */
  readonly rank: (work: RankWork) => Promise<number>;
}

/** Sets the exit status: that of the whole is 0 if that of every rank is. */
export async function onGpus({ url, timeout, flags = [], rank: run }: GpuScript): Promise<void> {
  const [first = "2", ...args] = process.argv.slice(2);
  if (first !== rankMark) {
    const say = {
      out: (text: string) => process.stdout.write(text),
      err: (text: string) => process.stderr.write(text),
    };
    const { end, statuses } = await startRanks(fileURLToPath(url), Number(first), args, timeout, say);
    if (end !== null) process.stdout.write(`ended early by rank ${end.rank}: ${end.reason}\n`);
    process.exitCode = statuses.every((status) => status === 0) ? 0 : 1;
    return;
  }
  const who = rankEnvironment(process.env);
  if (who === null) throw new Error("no rank in the environment");
  const world = await enterWorld(who, process.env, timeout);
  const text = { type: "string" } as const;
  const options = Object.fromEntries([...flags, "out"].map((name) => [name, text]));
  const { values, positionals: names } = parseArgs({ args, options, allowPositionals: true });
  const { out, ...rest } = values;
  const script = path.relative(path.resolve(import.meta.dirname, "../.."), fileURLToPath(url));
  const command = [script, world.worldSize, ...args].join(" ");
  const write: RankWork["write"] = (fields) => {
    if (out === undefined || world.rank > 0) return;
    const date = new Date().toISOString().slice(0, 10);
    const machine = { date, devices: world.worldSize, ...versions(world.rank, world.localRank), command };
    writeFileSync(out, `${JSON.stringify({ ...machine, ...fields }, undefined, 1)}\n`);
  };
  process.exitCode = await run({ world, names, flags: rest, write });
  await world.leave();
}

/** Starts a script that calls `onGpus`, or its tests do. */
export function startRanks(
  script: string,
  worldSize: number,
  args: readonly string[],
  timeout: number,
  say: Pick<SpawnOptions, "out" | "err">,
): Promise<WorldResult> {
  const require = createRequire(import.meta.url);
  const jiti = path.join(path.dirname(require.resolve("jiti/package.json")), "lib/jiti-cli.mjs");
  const command = [process.execPath, jiti, script, rankMark, ...args] as const;
  return spawnRanks({ worldSize, command: [...command], env: process.env, timeout, ...say });
}

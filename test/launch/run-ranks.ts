/** Runs ranks as processes under Braid's own launcher, and records their output, their duration and their statuses. */
import process from "node:process";
import { spawnRanks, type WorldResult } from "../../src/launch/spawn-ranks.ts";
import { nodeScript } from "../support/node-script.ts";

const rankProcess = await nodeScript("test/launch/rank-process.ts");

interface Observed extends WorldResult {
  readonly out: string;
  readonly err: string;
  readonly seconds: number;
  readonly pids: readonly number[];
}

interface RunSettings {
  readonly timeout?: number;
  readonly grace?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly onStart?: (pid: number) => void;
}

export async function runRanks(
  worldSize: number,
  args: readonly string[],
  { timeout = 5000, grace = 1500, env = {}, onStart = () => {} }: RunSettings = {},
): Promise<Observed> {
  let out = "";
  let err = "";
  const pids: number[] = [];
  const start = performance.now();
  const result = await spawnRanks({
    worldSize,
    command: [process.execPath, rankProcess, ...args],
    env: { PATH: process.env.PATH, ...env },
    timeout,
    grace,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    onStart: (_, pid) => {
      pids.push(pid);
      onStart(pid);
    },
  });
  return { ...result, out, err, pids, seconds: (performance.now() - start) / 1000 };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

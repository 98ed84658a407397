/** Ranks in processes under Braid's own launcher: work, and every way to fail, within seconds and without orphans. */
import path from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { spawnRanks, type WorldResult } from "../../src/launch/spawn-ranks.ts";
import { node, typescriptFile } from "./run-typescript.ts";

const rankProcess = typescriptFile("rank-process.ts");

interface Observed extends WorldResult {
  readonly out: string;
  readonly err: string;
  readonly seconds: number;
  readonly pids: readonly number[];
}

async function ranks(
  worldSize: number,
  args: readonly string[],
  { timeout = 5000, grace = 1500, env = {} }: { timeout?: number; grace?: number; env?: Record<string, string> } = {},
): Promise<Observed> {
  let out = "";
  let err = "";
  const pids: number[] = [];
  const start = performance.now();
  const result = await spawnRanks({
    worldSize,
    command: [node, ...rankProcess, ...args],
    env: { PATH: process.env.PATH, ...env },
    timeout,
    grace,
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    onStart: (_, pid) => pids.push(pid),
  });
  return { ...result, out, err, pids, seconds: (performance.now() - start) / 1000 };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("spawnRanks", () => {
  it.each([1, 2, 4])("runs %i ranks that exchange bytes of any length", async (worldSize) => {
    const result = await ranks(worldSize, []);
    expect(result).toMatchObject({ end: null, statuses: Array(worldSize).fill(0), err: "" });
    expect(result.out).toBe(`${worldSize} ranks did their work\n`);
  });

  it("does not believe a launcher's variables of its own environment", async () => {
    const env = { RANK: "7", WORLD_SIZE: "9", LOCAL_RANK: "7", MASTER_PORT: "1" };
    expect((await ranks(2, [], { env })).end).toBeNull();
  });

  it("ends all ranks when one is killed, and names it", async () => {
    const result = await ranks(3, ["killed", "1"]);
    expect(result.end).toMatchObject({ rank: 1 });
    expect(result.end?.reason).toMatch(/^rank 1 (ended without a word|was ended by SIGKILL)/);
    expect(result.signals[1]).toBe("SIGKILL");
    expect([result.statuses[0], result.statuses[2]]).toEqual([3, 3]);
    expect(result.err).toContain("rank 2: error[rank-failed]: rank 1 failed, so the run ended on all ranks\n");
    expect(result.seconds).toBeLessThan(5);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("ends all ranks when one leaves with a status", async () => {
    const result = await ranks(2, ["status", "0"]);
    expect(result.end?.rank).toBe(0);
    expect(result.statuses).toEqual([5, 3]);
  });

  it("names the rank that does not reach an exchange, and what the others were doing", async () => {
    const result = await ranks(3, ["hangs", "2", "1000"], { timeout: 1000 });
    expect(result.end).toEqual({
      rank: 2,
      reason: "rank 2 did not reach exchange 1, which the others have reached, within 1 s",
    });
    expect(result.lastWords.map(({ rank, text }) => `${rank}: ${text}`).toSorted()).toEqual([
      "0: rank 0 was in hangs",
      "1: rank 1 was in hangs",
      "2: rank 2 was in hangs",
    ]);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("kills a rank whose main thread does not come back", async () => {
    const result = await ranks(2, ["spins", "1", "1000"], { timeout: 1000, grace: 500 });
    expect(result.end?.rank).toBe(1);
    expect(result.signals[1]).toBe("SIGKILL");
    expect(result.seconds).toBeLessThan(5);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("tells all ranks the reason of the one that aborts", async () => {
    const result = await ranks(2, ["aborts", "1"]);
    expect(result.end).toEqual({ rank: 1, reason: "a kernel did not finish" });
    expect(result.err).toContain("found: a kernel did not finish");
  });

  it("refuses ranks with another program, with hashes and the option", async () => {
    const { err, statuses } = await ranks(2, ["differs", "1"]);
    expect(statuses).toEqual([3, 3]);
    expect(err).toContain("error[program-differs]: rank 1 has another program than rank 0");
    expect(err).toContain("found: hash aaaa on rank 1, bbbb on rank 0");
    expect(err).toContain("note: --streams: 2, on rank 0: 4");
    expect(err).not.toContain("note: --devices");
  });

  it("says that a command cannot be started", async () => {
    const result = await spawnRanks({
      worldSize: 2,
      command: [path.join(import.meta.dirname, "no-such-program")],
      env: {},
      timeout: 2000,
      out: () => {},
      err: () => {},
    });
    expect(result.end?.reason).toMatch(/^rank [01] could not be started: .*ENOENT/);
  });
});

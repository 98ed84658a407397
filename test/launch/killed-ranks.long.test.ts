/**
 * Ranks and launchers that are killed or hang: all others end within seconds and name the cause, and no process is
 * left.
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { nodeScript } from "../support/node-script.ts";
import { jobName, mpirun, rank, rankProcess } from "./rank-under.ts";
import { isAlive, runRanks } from "./run-ranks.ts";

const launcherProcess = await nodeScript("test/launch/launcher-process.ts");

describe("spawnRanks", () => {
  it("ends all ranks when one is killed, and names it", async () => {
    const result = await runRanks(3, ["killed", "1"]);
    expect(result.end).toMatchObject({ rank: 1 });
    expect(result.end?.reason).toMatch(/^rank 1 (ended without a message|was ended by SIGKILL)/);
    expect(result.signals[1]).toBe("SIGKILL");
    expect([result.statuses[0], result.statuses[2]]).toEqual([3, 3]);
    expect(result.err).toContain("rank 2: error[rank-failed]: rank 1 failed, so the run ended on all ranks\n");
    expect(result.seconds).toBeLessThan(5);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("ends all ranks when one leaves with a status", async () => {
    const result = await runRanks(2, ["status", "0"]);
    expect(result.end?.rank).toBe(0);
    expect(result.statuses).toEqual([5, 3]);
  });

  it("names the rank that does not reach an exchange, and what the others were doing", async () => {
    const result = await runRanks(3, ["hangs", "2", "1000"], { timeout: 1000 });
    expect(result.end).toEqual({
      rank: 2,
      reason: "rank 2 did not reach exchange 2, which the others have reached, within 1 s",
    });
    expect(result.lastWords.map(({ rank, text }) => `${rank}: ${text}`).toSorted()).toEqual([
      "0: rank 0 was in hangs",
      "1: rank 1 was in hangs",
      "2: rank 2 was in hangs",
    ]);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("kills a rank whose main thread does not come back", async () => {
    const result = await runRanks(2, ["spins", "1", "1000"], { timeout: 1000, grace: 500 });
    expect(result.end?.rank).toBe(1);
    expect(result.signals[1]).toBe("SIGKILL");
    expect(result.seconds).toBeLessThan(5);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });
});

describe("spawnRanks, after the last exchange", () => {
  it("kills a rank that is stopped", async () => {
    const result = await runRanks(3, ["stops", "1"], { timeout: 1000, grace: 500 });
    expect(result.end).toEqual({ rank: 1, reason: "rank 1 has been stopped for 5 s" });
    expect(result.signals).toEqual([null, "SIGKILL", null]);
    expect(result.seconds).toBeLessThan(9);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });

  it("kills a rank that has left but does not exit", async () => {
    const result = await runRanks(3, ["lingers", "1"], { timeout: 1000, grace: 500 });
    expect(result.end).toEqual({
      rank: 1,
      reason: "rank 1 has left the run, but its process did not exit within 1 s",
    });
    expect(result.signals).toEqual([null, "SIGKILL", null]);
    expect(result.seconds).toBeLessThan(5);
    expect(result.pids.filter(isAlive)).toEqual([]);
  });
});

describe("other launchers", () => {
  it("end all ranks when rank 0, which holds the hub, is killed", async () => {
    const job = jobName("killed");
    const [zero, one] = await Promise.all([0, 1].map((own) => rank(mpirun(job, own, 2), ["killed", "0"])));
    expect(zero?.status).toBeNull();
    expect(one?.status).toBe(3);
    expect(one?.err).toContain("the process that holds the rendezvous ended");
  });
});

/** Launches two ranks, of which rank 1 does `what`, and returns their process numbers once both have started. */
async function launch(what: string) {
  const launcher = spawn(process.execPath, [launcherProcess, rankProcess, what], { detached: true });
  let text = "";
  const ended = new Promise<string>((resolve) => {
    launcher.on("close", () => resolve(text));
  });
  const pids = await new Promise<readonly number[]>((resolve) => {
    launcher.stdout.on("data", (data: Buffer) => {
      text += data.toString();
      const lines = text.trim().split("\n");
      if (lines.length === 2) resolve(lines.map(Number));
    });
  });
  return { launcher, pids, ended };
}

/** Those that are alive after at most that many milliseconds. */
async function aliveAfter(pids: readonly number[], milliseconds: number): Promise<readonly number[]> {
  const deadline = Date.now() + milliseconds;
  while (pids.some(isAlive) && Date.now() < deadline) await sleep(20);
  return pids.filter(isAlive);
}

describe("a launcher that is killed", () => {
  // Late enough that the ranks have joined, and an early one too.
  it.each([
    ["SIGKILL", "hangs", 500],
    ["SIGKILL", "hangs", 0],
    ["SIGKILL", "starves", 500],
    ["SIGKILL", "spins", 500],
    ["SIGTERM", "hangs", 50],
    ["SIGTERM", "starves", 500],
  ] as const)("by %s leaves no rank behind that %s, after %i ms", async (signal, what, late) => {
    const { launcher, pids } = await launch(what);
    await sleep(late);
    launcher.kill(signal);
    expect(await aliveAfter(pids, 5000)).toEqual([]);
  });
});

describe("Ctrl-C", () => {
  it.each(["hangs", "starves", "spins"])("ends all ranks within two seconds when one %s", async (what) => {
    const { launcher, pids, ended } = await launch(what);
    await sleep(500);
    // A terminal sends the signal to all processes of the foreground.
    process.kill(-Number(launcher.pid), "SIGINT");
    expect(await aliveAfter(pids, 2000)).toEqual([]);
    expect((await ended).trim().split("\n").at(-1)).toBe("SIGINT");
  });

  it("sent to the launcher alone does so too", async () => {
    const { launcher, pids, ended } = await launch("spins");
    await sleep(500);
    launcher.kill("SIGINT");
    expect(await aliveAfter(pids, 2000)).toEqual([]);
    expect((await ended).trim().split("\n").at(-1)).toBe("SIGINT");
  });
});

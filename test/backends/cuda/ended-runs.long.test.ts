/** `braid run --on cuda` on fake GPUs whose launcher ends in the middle of many short runs: no rank stays behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { readFlights } from "../../../src/cli/verify/compare-flight.ts";
import { compareFlights } from "../../../src/trace/flight/compare-flights.ts";
import { isAlive } from "../../launch/run-ranks.ts";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const example = path.join(root, "test/fixtures/programs/ring-allgather-matmul.ts");
const sizes = ["M=2", "K=1", "N=1"].flatMap((size) => ["--set", size]);
const args = ["run", example, "--on", "cuda", "--devices", "2", ...sizes, "--repeat", "100000000"];

const fakes = ownFakes(2);

/** Starts the command in a group of processes of its own. Returns when its ranks have run for a while. */
async function start(
  ...flags: readonly string[]
): Promise<{ readonly launcher: ChildProcess; readonly pids: readonly number[] }> {
  // oxlint-disable-next-line node/no-process-env -- what the command inherits
  const env = { ...process.env, ...fakes().env, FAKE_CUDA_LOG: "" };
  const launcher = spawn(process.execPath, [path.join(root, "dist/cli/main.js"), ...args, ...flags], {
    env,
    detached: true,
  });
  const children = `/proc/${launcher.pid}/task/${launcher.pid}/children`;
  let pids: readonly number[] = [];
  while (pids.length < 2) {
    await sleep(50);
    pids = readFileSync(children, "utf8").split(" ").filter(Boolean).map(Number);
  }
  await sleep(5000);
  expect(pids.filter(isAlive)).toEqual(pids);
  return { launcher, pids };
}

async function writtenAfter(files: readonly string[], milliseconds: number): Promise<readonly string[]> {
  const deadline = Date.now() + milliseconds;
  while (!files.every((file) => existsSync(file)) && Date.now() < deadline) await sleep(20);
  return files.filter((file) => !existsSync(file));
}

async function aliveAfter(pids: readonly number[], milliseconds: number): Promise<readonly number[]> {
  const deadline = Date.now() + milliseconds;
  while (pids.some(isAlive) && Date.now() < deadline) await sleep(20);
  return pids.filter(isAlive);
}

describe.skipIf(obstacle !== null)("ranks in the middle of short runs", () => {
  it("end when their launcher is killed", async () => {
    const { launcher, pids } = await start();
    launcher.kill("SIGKILL");
    expect(await aliveAfter(pids, 5000)).toEqual([]);
  }, 60_000);

  it("end at Ctrl-C, which prints one line", async () => {
    const records = path.join(fakes().folder, "interrupted");
    const { launcher, pids } = await start("--flight", records);
    let printed = "";
    launcher.stdout?.on("data", (text: Buffer) => (printed += text.toString()));
    launcher.stderr?.on("data", (text: Buffer) => (printed += text.toString()));
    const status = new Promise((resolve) => launcher.on("close", resolve));
    process.kill(-Number(launcher.pid), "SIGINT");
    expect(await aliveAfter(pids, 2000)).toEqual([]);
    expect(await status).toBe(130);
    expect(printed).toBe("ended by SIGINT, with all ranks\n");
    expect(existsSync(records)).toBe(false);
  }, 60_000);

  it("write flight records at SIGUSR1 and go on; when a rank is killed, the others do", async () => {
    const records = path.join(fakes().folder, "records");
    const files = [0, 1].map((rank) => path.join(records, `rank-${rank}.json`));
    const { launcher, pids } = await start("--flight", records);
    expect(files.filter((file) => existsSync(file))).toEqual([]);
    let printed = "";
    launcher.stderr?.on("data", (text: Buffer) => (printed += text.toString()));
    const ended = new Promise((resolve) => launcher.on("close", resolve));
    launcher.kill("SIGUSR1");
    expect(await writtenAfter(files, 5000)).toEqual([]);
    expect(pids.filter(isAlive)).toEqual(pids);
    const asked = await readFlights(records);
    expect(asked.map(({ failed, reason }) => [failed, reason])).toEqual(Array(2).fill([false, "asked by a signal"]));
    expect(asked.every(({ run, commands }) => run > 1 && commands.length > 0)).toBe(true);

    const [, second] = pids;
    if (second !== undefined) process.kill(second, "SIGKILL");
    expect(await aliveAfter(pids, 5000)).toEqual([]);
    expect(await ended).toBe(3);
    expect(printed.split(`note: flight record: braid verify --flight ${records}`)).toHaveLength(2);
    const { findings } = compareFlights(await readFlights(records));
    expect(findings.map(({ code, message }) => `${code}: ${message}`)).toEqual([
      expect.stringMatching(/^rank-failed: rank [01] has left no record/),
    ]);
  }, 60_000);
});

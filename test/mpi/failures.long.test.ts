/** Processes under mpirun that do not agree, or of which one fails: one message, and all end. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { fingerprintOf, launchers, underMpi } from "./under-mpi.ts";

const example = "examples/ring-allgather-matmul.ts";

const [openMpi] = launchers;
const missing = openMpi?.obstacle ?? ", skipped because there is no launcher";

describe.skipIf(openMpi === undefined || missing !== "")(`processes that differ${missing}`, () => {
  const launched = async (first: readonly string[], second: readonly string[]) => {
    if (openMpi === undefined) throw new Error("no launcher");
    return underMpi(openMpi, 1, [example, "--on", "mpi", ...first], [example, "--on", "mpi", ...second]);
  };

  it("in an option end all, with one message", async () => {
    const { status, err } = await launched(["--devices", "4"], ["--devices", "4", "--set", "M=96"]);
    expect(status).toBe(2);
    expect(err.split("error[program-differs]")).toHaveLength(2);
    expect(err).toContain("--set: M=96");
  }, 60_000);

  it("in nothing but have a wrong option end all, with one message", async () => {
    const wrong = ["--devices", "2", "--chunkz", "3"];
    const { status, err } = await launched(wrong, wrong);
    expect(status).toBe(2);
    expect(err.split("error[option-unknown]")).toHaveLength(2);
  }, 60_000);

  it("in nothing but lack --on mpi end all, with one message", async () => {
    if (openMpi === undefined) throw new Error("no launcher");
    const { status, err } = await underMpi(openMpi, 2, [example, "--devices", "2"]);
    expect(status).toBe(2);
    expect(err.split("error[launcher-environment]")).toHaveLength(2);
    expect(err).toContain("add --on mpi");
  }, 60_000);

  it("in number from the devices end all, with one message", async () => {
    const { status, err } = await launched(["--devices", "1"], ["--devices", "1"]);
    expect(status).toBe(2);
    expect(err.split("error[device-count]")).toHaveLength(2);
  }, 60_000);

  it("because one fails alone end all, and the first says why", async () => {
    const { status, err } = await launched(["--devices", "4"], ["--devices", "4", "--inputs", "nothing.npy"]);
    expect(status).not.toBe(0);
    expect(err.split("error[rank-failed]: process 1 failed")).toHaveLength(2);
    expect(err).toContain("nothing.npy");
  }, 60_000);

  it("of which one is slow have the bits of one process", async () => {
    if (openMpi === undefined) throw new Error("no launcher");
    const pipeline = [example, "--devices", "4", "--repeat", "40", "--json"];
    const run = underMpi(openMpi, 2, [...pipeline, "--on", "mpi"]);
    const [slow = 0] = await processesOf([...pipeline, "--on", "mpi"], 2);
    for (let pause = 0; pause < 12 && existsSync(`/proc/${slow}`); pause++) {
      for (const signal of ["SIGSTOP", "SIGCONT"] as const) {
        if (existsSync(`/proc/${slow}`)) process.kill(slow, signal);
        await sleep(50);
      }
    }
    const { status, out, err } = await run;
    expect({ status, err }).toEqual({ status: 0, err: "" });
    expect(await fingerprintOf(out)).toEqual(await fingerprintOf(null, pipeline));
  }, 60_000);

  it("of which one is stopped end after --timeout, and say what they waited for", async () => {
    if (openMpi === undefined) throw new Error("no launcher");
    const long = ["examples/allgather-matmul.ts", "--devices", "2", "--repeat", "200000", "--timeout", "2"];
    const run = underMpi(openMpi, 2, [...long, "--on", "mpi"]);
    const [first = 0, second = 0] = await processesOf([...long, "--on", "mpi"], 2);
    await inRuns([first, second]);
    const start = performance.now();
    process.kill(second, "SIGSTOP");
    const { status, err } = await run;
    expect(status).not.toBe(0);
    expect(err).toContain("error[timed-out]");
    await gone([second], start + 7000);
  }, 120_000);

  it("of which one is killed end within 5 s, and none stays", async () => {
    if (openMpi === undefined) throw new Error("no launcher");
    const long = ["examples/allgather-matmul.ts", "--devices", "4", "--repeat", "100000", "--on", "mpi"];
    const run = underMpi(openMpi, 2, long);
    const [first = 0, second = 0] = await processesOf(long, 2);
    await inRuns([first, second]);
    const start = performance.now();
    process.kill(second, "SIGKILL");
    const { status } = await run;
    expect(status).not.toBe(0);
    await gone([first, second], start + 5000);
  }, 60_000);
});

/** Fails unless the processes have ended at `deadline`. */
async function gone(processes: readonly number[], deadline: number): Promise<void> {
  const living = (): readonly number[] => processes.filter((each) => existsSync(`/proc/${each}`));
  while (living().length > 0 && performance.now() < deadline) await sleep(50);
  expect(living()).toEqual([]);
  expect(performance.now()).toBeLessThan(deadline);
}

/**
 * Until each of the processes has computed for three seconds, of which what comes before the runs is one. The processor
 * time says so, also on a loaded machine.
 */
async function inRuns(processes: readonly number[]): Promise<void> {
  for (const each of processes) while (secondsOf(each) < 3) await sleep(50);
}

/** User and system time, fields 14 and 15 of proc(5), in hundredths; the name before may contain spaces. */
function secondsOf(id: number): number {
  const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** The ids of the processes that run the command with these arguments, once there are so many. */
async function processesOf(args: readonly string[], count: number): Promise<readonly number[]> {
  for (;;) {
    const found = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && isRun(name, args));
    if (found.length >= count) return found.map(Number);
    await sleep(50);
  }
}

/** Not the launcher, whose arguments begin with its own. */
function isRun(id: string, args: readonly string[]): boolean {
  try {
    const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
    return words[2] === "run" && args.every((arg) => words.includes(arg));
  } catch {
    return false;
  }
}

/**
 * Ranks in processes under Braid's own launcher: normal runs, and reasons not to start. killed-ranks.long.test.ts has
 * ranks that are killed or hang.
 */
import path from "node:path";
import process from "node:process";
import { describe, expect, it } from "vitest";
import { spawnRanks } from "../../src/launch/spawn-ranks.ts";
import { runRanks } from "./run-ranks.ts";

describe("spawnRanks", () => {
  it.each([1, 2, 4])("runs %i ranks that exchange bytes of any length", async (worldSize) => {
    const result = await runRanks(worldSize, []);
    expect(result).toMatchObject({ end: null, statuses: Array(worldSize).fill(0), err: "" });
    expect(result.out).toBe(`${worldSize} ranks did their work\n`);
  });

  it("does not believe a launcher's variables of its own environment", async () => {
    const env = { RANK: "7", WORLD_SIZE: "9", LOCAL_RANK: "7", MASTER_PORT: "1" };
    expect((await runRanks(2, [], { env })).end).toBeNull();
  });

  it("tells all ranks the reason of the one that aborts", async () => {
    const result = await runRanks(2, ["aborts", "1"]);
    expect(result.end).toEqual({ rank: 1, reason: "a kernel did not finish" });
    expect(result.err).toContain("found: a kernel did not finish");
  });

  it("refuses ranks with another program, with hashes and the option", async () => {
    const { err, statuses } = await runRanks(2, ["differs", "1"]);
    expect(statuses).toEqual([3, 3]);
    expect(err).toContain("error[program-differs]: rank 1 has a different program than rank 0");
    expect(err).toContain("found: hash aaaa on rank 1, bbbb on rank 0");
    expect(err).toContain("note: --schedule streams: 2, on rank 0: 4");
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

it("leaves no timer when ranks end without joining", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const before = timers();
  const { statuses, end } = await spawnRanks({
    worldSize: 2,
    command: [process.execPath, "--eval", ""],
    env: { PATH: process.env.PATH },
    timeout: 5000,
    out: () => {},
    err: () => {},
  });
  expect([statuses, end]).toEqual([[0, 0], null]);
  expect(timers()).toBeLessThanOrEqual(before);
});

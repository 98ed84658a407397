/**
 * The parts of `braid run` with a process per rank that need no GPU: where ranks run, what they gather, and the report
 * of a failure.
 */
import { describe, expect, it } from "vitest";
import type { RunReport } from "../../src/backends/backend.ts";
import { failureText } from "../../src/cli/ranks/run-in-processes.ts";
import { whereToRun } from "../../src/cli/ranks/where-to-run.ts";
import { gatherBytes, gatherReports } from "../../src/cli/run/gather.ts";

describe("whereToRun", () => {
  const torchrun = { RANK: "1", WORLD_SIZE: "4", LOCAL_RANK: "1", LOCAL_WORLD_SIZE: "4" };

  it("is here on the CPU, whatever a launcher says, and for one device", () => {
    expect(whereToRun("cpu", null, 8, torchrun)).toEqual({ kind: "here", devices: 8 });
    expect(whereToRun("cuda", 1, 8, {})).toEqual({ kind: "here", devices: 1 });
  });

  it("is a process per device on GPUs", () => {
    expect(whereToRun("cuda", null, 8, {})).toEqual({ kind: "processes", devices: 8 });
    expect(whereToRun("cuda", 2, 8, {})).toEqual({ kind: "processes", devices: 2 });
  });

  it("is one rank under a launcher, whose world counts the devices", () => {
    expect(whereToRun("cuda", null, 8, torchrun)).toMatchObject({ kind: "rank", devices: 4, supervised: false });
    expect(whereToRun("cuda", 4, 8, { ...torchrun, BRAID_HUB: "1" })).toMatchObject({ supervised: true });
    expect(() => whereToRun("cuda", 2, 8, torchrun)).toThrow("found: --devices 2, 4 ranks from torchrun");
  });
});

/** Worlds of `worldSize` ranks in this thread: an exchange resolves when all have called it. */
function worlds(worldSize: number): readonly { allGather(bytes: Uint8Array): Promise<readonly Uint8Array[]> }[] {
  const rounds: { parts: Uint8Array[]; count: number; done: (() => void)[] }[] = [];
  return Array.from({ length: worldSize }, (_, rank) => {
    let next = 0;
    return {
      allGather: (bytes) => {
        const round = (rounds[next++] ??= { parts: [], count: 0, done: [] });
        round.parts[rank] = bytes;
        round.count++;
        return new Promise((resolve) => {
          round.done.push(() => resolve(round.parts));
          if (round.count === worldSize) for (const done of round.done) done();
        });
      },
    };
  });
}

describe("what ranks gather", () => {
  it("is bytes of different lengths, longer than one exchange carries", async () => {
    const mine = [0, 3, 70_000_000].map((length, rank) => new Uint8Array(length).fill(rank + 1));
    const results = await Promise.all(
      worlds(3).map((world, rank) => gatherBytes(world, mine[rank] ?? new Uint8Array())),
    );
    for (const parts of results) {
      expect(parts.map((part, i) => Buffer.from(part).equals(mine[i] ?? new Uint8Array()))).toEqual([true, true, true]);
    }
  });

  it("is the slowest rank's time of each run, and the events of all in the last", async () => {
    const report = (rank: number, milliseconds: number, start: number): RunReport => ({
      milliseconds,
      trace: [{ rank, stream: 2, command: 7, start, end: start + 0.5 }],
    });
    const own = [
      [report(0, 3, 0), report(0, 4, 0.25)],
      [report(1, 5, 0), report(1, 2, 0.125)],
    ];
    const [first, second] = await Promise.all(worlds(2).map((world, rank) => gatherReports(world, own[rank] ?? [])));
    expect(first).toEqual(second);
    expect(first).toEqual([
      { milliseconds: 5, trace: [] },
      {
        milliseconds: 4,
        trace: [
          { rank: 1, stream: 2, command: 7, start: 0.125, end: 0.625 },
          { rank: 0, stream: 2, command: 7, start: 0.25, end: 0.75 },
        ],
      },
    ]);
  });

  it("puts events of clocks of their own on one axis", async () => {
    const report = (rank: number, zero: number): RunReport => ({
      milliseconds: 1,
      trace: [{ rank, stream: 0, command: 0, start: 0.25, end: 0.5, ...(rank === 1 ? { reached: 0.125 } : {}) }],
      origins: [{ rank, at: zero, error: 0.125 }],
    });
    const zeros = [100.5, 100];
    const [first, second] = await Promise.all(
      worlds(2).map((world, rank) => gatherReports(world, [report(rank, zeros[rank] ?? 0)])),
    );
    expect(first).toEqual(second);
    expect(first?.[0]?.origins).toEqual(zeros.map((at, rank) => ({ rank, at, error: 0.125 })));
    expect(first?.[0]?.trace.map(({ rank, start }) => [rank, start])).toEqual([
      [1, 0.25],
      [0, 0.75],
    ]);
    expect(first?.[0]?.trace.map(({ reached }) => reached)).toEqual([0.125, undefined]);
  });
});

describe("the end of a world", () => {
  const end = { rank: 1, reason: "a run did not end in time" };
  const own = {
    rank: 1,
    text: "error[timed-out]: a run did not end in time\n  note: rank 1, stream 3: waits for rank 0",
  };

  it("is told in the words of the rank that ended it, then of those that add to them", () => {
    const lastWords = [
      { rank: 2, text: "error[rank-failed]: rank 1 failed, so the run ended on all ranks" },
      { rank: 3, text: "error[rank-failed]: rank 1 failed\n  note: rank 3, stream 0: waits for rank 1" },
      own,
      { rank: 0, text: own.text },
    ];
    expect(failureText({ end, lastWords })).toBe(
      `${own.text}\nrank 3:\n  error[rank-failed]: rank 1 failed\n    note: rank 3, stream 0: waits for rank 1`,
    );
  });

  it("is told from outside where the rank left no words", () => {
    expect(failureText({ end: { rank: 2, reason: "rank 2 was ended by SIGKILL" }, lastWords: [] })).toMatch(
      /^error\[rank-failed\]: rank 2 failed, so the run ended on all ranks\n {2}found: rank 2 was ended by SIGKILL\n/,
    );
  });
});

/**
 * Ends that move: commands that share a device slow each other down, compared with times added up by hand. Resources go
 * to the queue that has waited longest.
 */
import { describe, expect, it } from "vitest";
import { createOccupancy, type DeviceUse, type Occupancy, type WaitingWork } from "../../src/simulate/occupancy.ts";

/** Begins things at their times and says when each has ended. */
function endsOf(
  things: readonly (readonly [name: string, use: DeviceUse, start: number, busy: number, rank?: number])[],
): unknown {
  const due: { readonly time: number; readonly what: WaitingWork<string> | number }[] = [];
  const ends: Record<string, number> = {};
  const occupancy: Occupancy<string> = createOccupancy<string>(2, (time, what) => {
    due.push({ time, what });
  });
  for (const [number, [, , time]] of things.entries()) due.push({ time, what: number });
  for (;;) {
    due.sort((a, b) => a.time - b.time);
    const next = due.shift();
    if (next === undefined) return ends;
    const { time, what } = next;
    if (typeof what !== "number") {
      if (occupancy.finish(what, time) !== null) ends[what.queue] = time;
      continue;
    }
    const [queue = "", deviceUse = "none", , busy = 0, rank = 0] = things[what] ?? [];
    occupancy.begin({ queue, rank, deviceUse, resources: [] }, time, busy);
  }
}

describe("beside each other, at half their rates", () => {
  it.each([
    [
      "a GEMM and a transfer that begins later",
      [
        ["p", "gemm", 0, 30],
        ["t", "beside", 10, 5],
      ],
      { t: 20, p: 35 },
    ],
    [
      "a transfer and a shorter GEMM",
      [
        ["t", "beside", 0, 30],
        ["p", "gemm", 10, 5],
      ],
      { p: 20, t: 35 },
    ],
    [
      "two transfers and a GEMM",
      [
        ["p", "gemm", 0, 30],
        ["t", "beside", 0, 5],
        ["u", "beside", 0, 10],
      ],
      { t: 10, u: 20, p: 40 },
    ],
    [
      "a transfer after a GEMM",
      [
        ["p", "gemm", 0, 30],
        ["t", "beside", 30, 5],
      ],
      { p: 30, t: 35 },
    ],
    [
      "transfers alone",
      [
        ["t", "beside", 0, 5],
        ["u", "beside", 0, 10],
      ],
      { t: 5, u: 10 },
    ],
    [
      "GEMMs of other ranks",
      [
        ["p", "gemm", 0, 30, 0],
        ["t", "beside", 10, 5, 1],
      ],
      { t: 15, p: 30 },
    ],
    [
      "copies by engines",
      [
        ["p", "gemm", 0, 30],
        ["c", "none", 10, 5],
      ],
      { c: 15, p: 30 },
    ],
    [
      "what takes no time",
      [
        ["p", "gemm", 0, 30],
        ["t", "beside", 10, 0],
      ],
      { t: 10, p: 30 },
    ],
  ] as const)("%s", (_, things, ends) => {
    expect(endsOf(things)).toEqual(ends);
  });
});

it("gives what is free to the commands that waited, in order", () => {
  const resources = ["out 0", "in 1"] as const;
  const announced: WaitingWork<string>[] = [];
  const occupancy = createOccupancy<string>(2, (_, work) => announced.push(work));
  occupancy.begin({ queue: "first", rank: 0, deviceUse: "none", resources }, 0, 7);
  expect(occupancy.held(["in 0", "in 1"])).toBe("in 1");
  occupancy.wait("second", "in 1");
  occupancy.wait("third", "in 1");
  const [work] = announced;
  expect(work?.end).toBe(7);
  if (work === undefined) return;
  expect(occupancy.finish(work, 5)).toBeNull();
  expect(occupancy.finish(work, 7)).toEqual(["second", "third"]);
  expect(occupancy.held(resources)).toBeNull();
});

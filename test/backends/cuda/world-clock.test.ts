/** One clock for ranks whose operating systems' clocks differ, and the time of a GPU event on it. */
import { describe, expect, it } from "vitest";
import { placeEvent } from "../../../src/backends/cuda/run/trace-run.ts";
import { clockOffset, hostClock, openWorldClock } from "../../../src/backends/cuda/run/world-clock.ts";

/** Exchanges of ranks in this process, which take a while. */
function exchanges(worldSize: number): (rank: number) => (bytes: Uint8Array) => Promise<readonly Uint8Array[]> {
  let parts = new Map<number, Uint8Array>();
  let waiting: ((all: readonly Uint8Array[]) => void)[] = [];
  return (rank) => (bytes) =>
    new Promise((resolve) => {
      parts.set(rank, bytes.slice());
      waiting.push(resolve);
      if (parts.size < worldSize) return;
      const all = Array.from({ length: worldSize }, (_, each) => parts.get(each) ?? new Uint8Array());
      const told = waiting;
      parts = new Map();
      waiting = [];
      for (const [i, tell] of told.entries()) setTimeout(() => tell(all), i % 2);
    });
}

describe("the world's clock", () => {
  it("is the host's where all ranks read the same one", async () => {
    const exchange = exchanges(2);
    const clocks = await Promise.all(
      [0, 1].map((rank) => openWorldClock({ rank, worldSize: 2, allGather: exchange(rank) })),
    );
    expect(clocks.map(({ error }) => error)).toEqual([0, 0]);
    expect(hostClock().name).toBe(hostClock().name);
    expect(Math.abs((clocks[0]?.now() ?? 0) - (clocks[1]?.now() ?? Infinity))).toBeLessThan(50);
  });

  it("is rank 0's, within what it says, where clocks differ", async () => {
    const exchange = exchanges(3);
    const { now } = hostClock();
    const ahead = [0, 123_456, -777];
    const clocks = await Promise.all(
      ahead.map((by, rank) =>
        openWorldClock(
          { rank, worldSize: 3, allGather: exchange(rank) },
          { name: `host ${rank}`, now: () => now() + by },
        ),
      ),
    );
    for (const clock of clocks) {
      const before = now();
      const read = clock.now();
      const after = now();
      expect(read).toBeGreaterThanOrEqual(before - clock.error);
      expect(read).toBeLessThanOrEqual(after + clock.error);
      expect(clock.error).toBeLessThan(20);
    }
  });

  it("differs by what every exchange allows, no more", () => {
    // 100 ahead; the second exchange is the quick one.
    const own = Float64Array.of(100, 112, 121, 123);
    const other = Float64Array.of(1, 11, 20.5, 23);
    expect(clockOffset(own, other)).toEqual({ offset: (98 + 102.5) / 2, error: (102.5 - 98) / 2 });
  });
});

describe("an event of the GPU", () => {
  const ready = 0;
  const notReady = 600;
  const place = (answers: readonly number[]) => {
    let time = 0;
    let asked = 0;
    const gpu = {
      call: { cuEventRecord: () => {} },
      raw: { cuEventQuery: () => answers[asked++] ?? notReady },
      check: (status: number, call: string) => {
        throw new Error(`${call}: ${status}`);
      },
    };
    return placeEvent(gpu, 1, 2, { now: () => time++, error: 0.5 });
  };

  it("took place between the last no and the first yes", () => {
    // The clock is read at the beginning, before and after every question.
    expect(place([ready])).toEqual({ at: 1, error: 1.5 });
    expect(place([notReady, notReady, ready])).toEqual({ at: 4.5, error: 2 });
  });

  it("has no place where the stream is busy, and fails where the driver does", () => {
    expect(place([])).toBeNull();
    expect(() => place([700])).toThrow("cuEventQuery: 700");
  });
});

/**
 * Timing of contenders: in turns, by the slowest rank, without the first run of a turn, and without contenders that
 * fail.
 */
import { describe, expect, it } from "vitest";
import type { Contender, Timing } from "../../bench/compare/contender.ts";
import { type Exchange, exchangeAlone, exchangeWith } from "../../src/launch/exchange.ts";
import { parseImplementations } from "../../bench/compare/implementation.ts";
import { measure, roundOrder } from "../../bench/compare/measure.ts";
import { at } from "../../src/support/invariant.ts";

/** Notes its turns; its n-th run takes what `milliseconds` says. */
function contender(name: string, log: string[], milliseconds: (run: number) => number, failsAt = Infinity): Contender {
  let run = 0;
  return {
    implementation: at(parseImplementations(name, "test"), 0),
    note: null,
    turn: async (runs) => {
      log.push(`${name} x${runs}`);
      if (run >= failsAt) return { kind: "failed", why: "out of memory" };
      const value = Array.from({ length: runs }, (): Timing => {
        const time = milliseconds(run++);
        return { milliseconds: time, hostMicroseconds: name === "serial" ? null : 2 * time };
      });
      return { kind: "done", value };
    },
    row: async (runs) => {
      log.push(`${name} row of ${runs}`);
      return { kind: "done", value: run++ };
    },
    check: async () => ({ kind: "done", value: 0.25 }),
    trace: async () => ({ kind: "done", value: null }),
    release: () => {},
  };
}

describe("the order of a round", () => {
  it("has every contender once, each after another one than in the rounds before", () => {
    const rounds = [0, 1, 2].map((round) => roundOrder(8, round));
    expect(rounds).toEqual([
      [0, 1, 2, 3, 4, 5, 6, 7],
      [1, 4, 7, 2, 5, 0, 3, 6],
      [2, 7, 4, 1, 6, 3, 0, 5],
    ]);
    for (const count of [1, 2, 3, 6, 7]) {
      for (const round of [0, 1, 5]) {
        expect(roundOrder(count, round).toSorted((a, b) => a - b)).toEqual([...Array(count).keys()]);
      }
    }
  });
});

describe("measure", () => {
  it("gives every contender a turn in every round, each round beginning with another, and leaves warm-up and first runs out", async () => {
    const log: string[] = [];
    const contenders = ["braid", "serial"].map((name) => contender(name, log, (run) => run));
    const measured = await measure(contenders, exchangeAlone, { iterations: 7, warmup: 3, validate: true });
    const turns = ["braid x3", "serial x3", "braid x6", "serial x6", "serial x3", "braid x3"];
    // Rows are for the host's time, which `serial` does not tell.
    expect(log).toEqual([...turns, ...Array.from({ length: 3 }, () => "braid row of 20")]);
    // Runs 0 to 2 are warm-up; 3 and 9 are the first of their turns.
    const milliseconds = [4, 5, 6, 7, 8, 10, 11];
    expect(measured.map(({ result }) => result)).toEqual([
      {
        kind: "done",
        value: {
          milliseconds,
          hostMicroseconds: milliseconds.map((time) => 2 * time),
          hostInRowMicroseconds: [12, 13, 14],
          partOfBound: 0.25,
          traced: null,
        },
      },
      {
        kind: "done",
        value: { milliseconds, hostMicroseconds: null, hostInRowMicroseconds: null, partOfBound: 0.25, traced: null },
      },
    ]);
  });

  it("checks a result after a run, also without warm-up, and says nothing of one that has nothing to compare with", async () => {
    const log: string[] = [];
    const options = { iterations: 1, warmup: 0, validate: true };
    await measure([contender("braid", log, () => 1)], exchangeAlone, options);
    expect(log.slice(0, 2)).toEqual(["braid x1", "braid x2"]);
    const part: Contender = { ...contender("serial", [], () => 1), check: async () => ({ kind: "done", value: null }) };
    const [found] = await measure([part], exchangeAlone, options);
    expect(found?.result).toMatchObject({ kind: "done", value: { milliseconds: [1], partOfBound: null } });
  });

  it("takes the slowest rank's time of each iteration and of each row", async () => {
    const exchange: Exchange = async (own) => {
      if (own.kind === "failed") return own;
      // Another rank, slower in every odd number.
      return { kind: "done", value: [own.value, own.value.map((value) => (value % 2 === 1 ? value + 10 : value - 1))] };
    };
    const [first] = await measure([contender("braid", [], (run) => run)], exchange, {
      iterations: 4,
      warmup: 0,
      validate: false,
    });
    const rows = { hostInRowMicroseconds: [15, 6, 17] };
    expect(first?.result).toMatchObject({ value: { milliseconds: [11, 2, 13, 4], ...rows, partOfBound: null } });
  });

  it("goes on without one that fails", async () => {
    const log: string[] = [];
    const contenders = [contender("braid", log, () => 1, 2), contender("serial", log, () => 1)];
    const measured = await measure(contenders, exchangeAlone, { iterations: 6, warmup: 1, validate: false });
    expect(log).toEqual(["braid x1", "serial x1", "braid x6", "serial x6", "serial x2", "braid x2"]);
    expect(measured.map(({ result }) => result.kind)).toEqual(["failed", "done"]);
    expect(measured[0]?.result).toEqual({ kind: "failed", why: "out of memory" });
  });

  it("ends the rows of one that fails in them, on all ranks", async () => {
    const log: string[] = [];
    const broken: Contender = {
      ...contender("braid", [], () => 1),
      row: async () => (log.push("row"), { kind: "failed", why: "stuck" }),
    };
    const [first] = await measure([broken], exchangeAlone, { iterations: 1, warmup: 0, validate: false });
    expect(first?.result).toEqual({ kind: "failed", why: "stuck" });
    expect(log).toEqual(["row"]);
  });
});

describe("exchangeWith", () => {
  it("gives all ranks the numbers of all, or the first failure", async () => {
    const world = (parts: readonly Uint8Array[]) => ({ allGather: async (own: Uint8Array) => [own, ...parts] });
    const sent: Uint8Array[] = [];
    const spy = { allGather: async (own: Uint8Array) => (sent.push(own), [own]) };
    expect(await exchangeWith(spy)({ kind: "done", value: [1.5, NaN] })).toEqual({ kind: "done", value: [[1.5, NaN]] });
    await exchangeWith(spy)({ kind: "failed", why: "no PyTorch" });
    const [numbers, failure] = [at(sent, 0), at(sent, 1)];
    expect(await exchangeWith(world([numbers]))({ kind: "done", value: [] })).toEqual({
      kind: "done",
      value: [[], [1.5, NaN]],
    });
    expect(await exchangeWith(world([numbers, failure]))({ kind: "done", value: [] })).toEqual({
      kind: "failed",
      why: "rank 2: no PyTorch",
    });
  });
});

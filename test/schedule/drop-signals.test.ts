/** Signals that others make needless are left out, and no others. combined-rewrites and random-programs verify more. */
import { link, type Program, record, verify } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { SlotId } from "../../src/commands/command.ts";
import { dropSignals } from "../../src/schedule/rewrites/drop-signals.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { makeId } from "../../src/support/invariant.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { buildPeerProgram, peerRecipe } from "../support/random-peer-programs.ts";
import { exchange, exchangeFusion, exchangeOptions, hosted, inGemms, send } from "./exchanges.ts";
import { countOf, outputsOf } from "./programs.ts";

/** Without the signal of a slot, and the wait for it. */
function withoutSlot(program: Program, slot: SlotId): Program {
  const ranks = program.ranks.map((rank) => {
    const isKept = rank.commands.map(
      (each) => (each.kind !== "signal" && each.kind !== "waitSignal") || each.slot !== slot,
    );
    const kept = <T>(list: readonly T[]): readonly T[] => list.filter((_, i) => isKept[i]);
    return {
      ...rank,
      commands: kept(rank.commands),
      origins: kept(rank.origins),
      transferOf: kept(rank.transferOf),
    };
  });
  return { ...program, ranks };
}

function isRight(program: Program): boolean {
  return verify(program, { notes: false, full: true, counterexamples: false }).ok;
}

describe("an all-reduce between two devices by put, in two outputs", () => {
  const before = exchange({ primitive: "tp-allreduce", protocol: "put", outputs: 2, dtype: "int" });
  const after = dropSignals.run(before, true);

  it("has half of its signals, numbered anew", () => {
    expect([before, after].map(({ slots }) => slots.length)).toEqual([16, 8]);
    expect(after.slots.map(({ id }) => id)).toEqual(Array.from(after.slots.keys()));
    for (const rank of [0, 1])
      expect([countOf(after, rank, "signal"), countOf(after, rank, "waitSignal")]).toEqual([4, 4]);
    const directions = after.slots.map(({ signaller, waiter }) => `${signaller} to ${waiter}`);
    expect(directions.toSorted()).toEqual(["0 to 1", "1 to 0"].flatMap((each) => [each, each, each, each]));
    expect(dropSignals.applies(before, true)).toBe(true);
    expect(dropSignals.run(after, true)).toBe(after);
  });

  it("verifies, with the same results in every order, in the runs that follow too", async () => {
    for (const program of [after, applySchedule(after, { inPlace: true, ownLast: true, computeStreams: 1 })]) {
      expect(verify(program, { notes: false, full: true }).findings).toEqual([]);
      const expected = await outputsOf(before, "seed:1");
      for (const seed of [1, 2, 3, 4]) expect(await outputsOf(program, `seed:${seed}`)).toBe(expected);
      expect(await outputsOf(program, "seed:5", { queues: "ranks" })).toBe(expected);
    }
  });

  it("has the oracle's results", async () => {
    const each = { primitive: "tp-allreduce", protocol: "put", outputs: 2 } as const;
    for (const schedule of [{ dropSignals: true }, inGemms])
      await expectOracle(exchangeFusion(each), { ...exchangeOptions(each), schedule });
  });

  it("is wrong without any of those that are left", () => {
    expect(isRight(after)).toBe(true);
    for (const slot of after.slots.keys())
      expect([slot, isRight(withoutSlot(after, makeId(slot)))]).toEqual([slot, false]);
  });
});

describe("nothing changes", () => {
  it.each(["get", "put"] as const)("where each copy needs both of its signals, by %s", (protocol) => {
    for (const primitive of ["tp-columnwise", "tp-rowwise"] as const) {
      const program = exchange({ primitive, protocol, devices: 4 });
      expect(dropSignals.run(program, true)).toBe(program);
      expect(dropSignals.applies(program, true)).toBe(false);
    }
  });

  it.each<[string, ScheduleOptions]>([
    ["the others order less", {}],
    ["only another rank's signals show that a slot is free in the next run", { computeStreams: 2 }],
  ])("where %s", (_, schedule) => {
    const program = exchange({ primitive: "tp-rowwise", protocol: "get", outputs: 2, devices: 4 }, schedule);
    expect(verify(program, { notes: false, full: true }).findings).toEqual([]);
    expect(dropSignals.run(program, true)).toBe(program);
  });

  it("without signals", () => {
    const program = hosted(({ h, input, output }) => void h.set(input(), { out: output() }));
    expect(dropSignals.run(program, true)).toBe(program);
  });
});

it("random programs of collectives, in which signals of several collectives order the same, verify without them", async () => {
  let dropped = 0;
  for (let seed = 16; seed < 32; seed++) {
    const recipe = peerRecipe(seed);
    const { world, streams, protocol } = recipe;
    const program = link(
      Array.from({ length: world }, (_, rank) =>
        record(buildPeerProgram(recipe, rank, "cuda"), { rank, streams, protocol }),
      ),
    );
    const after = dropSignals.run(program, true);
    if (after === program) continue;
    dropped++;
    expect(verify(after, { notes: false, full: true }).findings, `seed ${seed}`).toEqual([]);
    expect(await outputsOf(after, "seed:2"), `seed ${seed}`).toBe(await outputsOf(program, "seed:1"));
  }
  expect(dropped).toBeGreaterThan(3);
});

/** From rank 0 to rank 1, again and again: nothing comes back but that memory is ready. */
it("messages in one direction keep a signal each way", async () => {
  const program = hosted(
    ({ h, rank, input, output }) => {
      const tensors = Array.from({ length: 3 }, () => [input(), output()] as const);
      for (const [sent, received] of tensors) send(h, rank, 0, 1, rank === 0 ? sent : received);
      for (const [sent, received] of tensors) if (rank === 0) h.set(sent, { out: received });
    },
    { world: 2, protocol: "put" },
  );
  const after = dropSignals.run(program, true);
  expect(after.slots.length).toBeLessThan(program.slots.length);
  const directions = new Set(after.slots.map(({ signaller, waiter }) => `${signaller} to ${waiter}`));
  expect(directions).toEqual(new Set(["0 to 1", "1 to 0"]));
  expect(verify(after, { notes: false, full: true }).findings).toEqual([]);
  const expected = await outputsOf(program, "seed:1");
  for (const seed of [2, 3, 4]) expect(await outputsOf(after, `seed:${seed}`)).toBe(expected);
});

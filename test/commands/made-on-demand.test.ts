/** Which ranks' commands a long Program keeps. */
import { expect, it } from "vitest";
import { commandsOnDemand } from "../../src/commands/link/link.ts";
import type { Command } from "../../src/commands/command.ts";
import { makeId } from "../../src/support/invariant.ts";

const limits = { mostAtOnce: 8, mostKept: 6 };

/** Lists of three commands, and how often each was made. */
function lists(ranks: number) {
  const made = Array.from({ length: ranks }, () => 0);
  const make = (rank: number): readonly Command[] => {
    made[rank] = (made[rank] ?? 0) + 1;
    const event = { kind: "recordEvent", stream: makeId<Command["stream"]>(rank) } as const;
    return [0, 1, 2].map((each) => ({ ...event, event: makeId(each) }));
  };
  const of = commandsOnDemand(
    made.map(() => 3),
    make,
    limits,
  );
  return { made, of };
}

it("few commands are made at once", () => {
  expect(lists(2).of).toBeNull();
});

it("the lists that were asked for last are kept", () => {
  const { made, of } = lists(4);
  for (const rank of [0, 1, 0, 2, 0, 1]) expect(of?.(rank)[0]?.stream).toBe(rank);
  expect(made).toEqual([1, 2, 1, 0]);
});

it("all are kept once they have been made too often", () => {
  const { made, of } = lists(4);
  for (let round = 0; round < 100; round++) for (const rank of made.keys()) of?.(rank);
  const before = made.reduce((sum, count) => sum + count, 0);
  expect(before).toBeLessThan(4 * 20);
  for (const rank of made.keys()) of?.(rank);
  expect(made.reduce((sum, count) => sum + count, 0)).toBe(before);
});

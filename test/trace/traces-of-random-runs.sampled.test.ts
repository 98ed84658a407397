/** Traces of random Programs have the properties that viewers of the Chrome Trace Event format need. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import type { MachineOptions } from "../../src/machine/machine.ts";
import { createRandom } from "../../src/support/random.ts";
import { randomLists } from "../machine/random-lists.ts";
import { tracedRun } from "./traced-run.ts";
import { draws } from "../support/suite.ts";
import { checkedTrace } from "./checked-trace.ts";

describe("the trace of any run", () => {
  const modes: readonly MachineOptions[] = [{}, { transfers: "eager" }, { queues: "ranks" }];

  it("is well-formed: of every schedule, with eager and synchronous transfers", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 25 }), (seed, world, size) => {
        const program = link(randomLists(createRandom(seed), world, size).lists);
        for (const mode of [...modes, { interleaving: { kind: "seed", seed } } as const]) {
          const { arrows } = checkedTrace(program, tracedRun(program, mode));
          expect(arrows).toHaveLength(expectedArrows(program));
        }
      }),
      draws({ quick: 6, long: 60 }),
    );
  });

  it("is well-formed where clocks of threads differ and have coarse ticks", () => {
    const tick = 1 / 4096;
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 0, max: 20 }), (seed, microseconds) => {
        const random = createRandom(seed);
        const program = link(randomLists(random, 3, 20).lists);
        const blurred = (time: number): number => {
          const late = (microseconds / 1000) * (random.integer(1000) / 1000);
          // A millisecond of the run becomes a microsecond, less than clocks differ.
          return Math.floor((time / 1000 + late) / tick) * tick;
        };
        const events = tracedRun(program, { interleaving: { kind: "seed", seed } }).map((event) => ({
          ...event,
          start: blurred(event.start),
          end: blurred(event.end),
        }));
        // At most 1 ns for each slice of no length that other slices follow.
        const { arrows } = checkedTrace(program, events, 3 * events.length);
        expect(arrows).toHaveLength(expectedArrows(program));
      }),
      draws({ quick: 6, long: 60 }),
    );
  });
});

/**
 * Counted independently of the code under test: a wait has one cause, a receive one sender, a rank of a team all
 * others.
 */
function expectedArrows({ ranks, transfers }: Program): number {
  const waits = ranks.flatMap(({ commands }) =>
    commands.filter(({ kind }) => kind === "waitEvent" || kind === "waitSignal"),
  );
  const moves = transfers.map(({ participants, kind }) =>
    kind === "collective"
      ? participants.length * (participants.length - 1)
      : participants.reduce(
          (sum, { rank, operation }) =>
            operation.kind === "group"
              ? sum + operation.ops.filter(({ type, peer }) => type === "recv" && peer !== rank).length
              : sum,
          0,
        ),
  );
  return waits.length + moves.reduce((sum, count) => sum + count, 0);
}

/** Programs without races give the same bits under every schedule, with transfers of either kind, and run after run. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { randomLists } from "./random-lists.ts";
import { createReferenceCompute } from "./reference-compute.ts";
import { draws } from "../support/suite.ts";

it("the same bits under every schedule", () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 2, max: 4 }), fc.integer({ min: 1, max: 24 }), (seed, world, count) => {
      const random = createRandom(seed);
      const { lists, evaluate, inputCount } = randomLists(random, world, count);
      const program = link(lists);
      const inputBuffers = program.buffers.filter(({ role }) => role === "input");
      const outputBuffers = program.buffers.filter(({ role }) => role === "output");
      expect(inputBuffers).toHaveLength(world * inputCount);
      const rank = random.integer(world);
      const modes: readonly MachineOptions[] = [
        {},
        { queues: "ranks" },
        { transfers: "eager" },
        { queues: "ranks", transfers: "eager" },
        { interleaving: { kind: "hold", rank, command: random.integer(at(program.ranks, rank).commands.length) } },
        { interleaving: { kind: "seed", seed }, transfers: "synchronous" },
        ...[0, 1, 2, 3].map((i): MachineOptions => ({ interleaving: { kind: "seed", seed: random.uint32() ^ i } })),
      ];
      for (const options of modes) {
        const compute = createReferenceCompute(program);
        const machine = createMachine(program, compute, options);
        for (let run = 0; run < 2; run++) {
          const inputs = inputBuffers.map(() => [Math.fround(random.float()), Math.fround(random.float())]);
          for (const [i, { id }] of inputBuffers.entries()) compute.write(id, at(inputs, i));
          machine.run();
          expect(outputBuffers.map(({ id }) => compute.read(id))).toEqual(evaluate(inputs));
        }
      }
    }),
    draws({ quick: 15, long: 60 }),
  );
});

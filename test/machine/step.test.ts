/** `step` by hand, as a back end with threads calls it: over shared memory, with the queues that each step wakes. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { beginRun, type Execution } from "../../src/machine/execution.ts";
import { createMachine } from "../../src/machine/machine.ts";
import { obstacleOf, obstacleText } from "../../src/machine/obstacle.ts";
import { step, type StepResult, stepSynchronisation } from "../../src/machine/step.ts";
import { createMachineTables } from "../../src/machine/tables.ts";
import { createRandom } from "../../src/support/random.ts";
import { buildLists } from "./list-builder.ts";
import { randomLists } from "./random-lists.ts";
import { createReferenceCompute } from "./reference-compute.ts";

interface ByHand {
  /** The result of a step, and whom it woke, sorted. */
  readonly take: (queue: number) => readonly [StepResult, readonly number[]];
  readonly takeSynchronisation: (queue: number) => readonly [StepResult | "data", readonly number[]];
  readonly queues: number;
  readonly state: Int32Array;
  readonly obstacle: (queue: number) => string | null;
  readonly begin: () => void;
}

function byHand(program: Program): ByHand {
  const tables = createMachineTables(program, "streams");
  const state = new Int32Array(new SharedArrayBuffer(4 * tables.layout.words));
  let woken: number[] = [];
  const execution: Execution<unknown> = {
    tables,
    state,
    compute: createReferenceCompute(program),
    observer: null,
    eager: null,
    sharing: null,
    wake: (queue) => woken.push(queue),
  };
  return {
    queues: tables.queues.length,
    state,
    take: (queue) => {
      woken = [];
      const result = step(execution, queue);
      return [result, woken.toSorted((a, b) => a - b)];
    },
    takeSynchronisation: (queue) => {
      woken = [];
      const result = stepSynchronisation(execution, queue);
      return [result, woken.toSorted((a, b) => a - b)];
    },
    obstacle: (queue) => {
      const obstacle = obstacleOf(execution, queue);
      return obstacle === null ? null : obstacleText(tables, obstacle);
    },
    begin: () => beginRun(tables, state),
  };
}

describe("step", () => {
  it("an event wakes the queues that wait for it, in every run anew", () => {
    const program = link(
      buildLists(1, (list) => {
        for (const name of ["a", "b"]) list.stream(name);
        const event = list.record(0);
        list.wait(1, event);
        list.wait(2, event);
      }),
    );
    const { take, begin, obstacle } = byHand(program);
    for (let run = 0; run < 2; run++) {
      begin();
      expect(take(1)).toEqual(["blocked", []]);
      expect(obstacle(1)).toBe("waits for rank 0, stream 0 to record its event at: recordEvent of rank 0");
      expect(take(0)).toEqual(["progress", [1, 2]]);
      expect(obstacle(1)).toBeNull();
      expect(take(0)).toEqual(["end", []]);
      expect(take(1)).toEqual(["progress", []]);
      expect(take(1)).toEqual(["end", []]);
      expect(take(2)).toEqual(["progress", []]);
    }
  });

  it("a signal wakes its waiter, which takes it", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const peer = 1 - rank;
        const view = rank === 0 ? list.input([2]) : list.output([2]);
        const pair = list.pair("get", rank === 0 ? "send" : "recv", peer, view);
        if (rank === 0) list.signalPeer(0, pair, "ready");
        else list.waitPeer(0, pair, "ready");
      }),
    );
    const { take, begin } = byHand(program);
    for (let run = 0; run < 2; run++) {
      begin();
      expect(take(1)).toEqual(["blocked", []]);
      expect(take(0)).toEqual(["progress", [1]]);
      expect(take(1)).toEqual(["progress", []]);
    }
  });

  it("a step that only synchronises does what a step does, and nothing before data", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const random = createRandom(seed);
        const program = link(randomLists(random, 3, 15).lists);
        const [whole, parts] = [byHand(program), byHand(program)];
        const kinds = new Set<StepResult | "data">();
        for (const each of [whole, parts]) each.begin();
        for (let turn = 0; turn < 400; turn++) {
          const queue = random.integer(whole.queues);
          const [first, woken] = parts.takeSynchronisation(queue);
          kinds.add(first);
          const [result, others] = first === "data" ? parts.take(queue) : [first, woken];
          const [expected, expectedOthers] = whole.take(queue);
          if (result !== expected || others.join() !== expectedOthers.join()) expect.fail(`${first}, turn ${turn}`);
        }
        expect(parts.state).toEqual(whole.state);
        expect(kinds).toContain("data");
        expect(kinds).toContain("progress");
      }),
      { numRuns: 20 },
    );
  });

  it("a transfer's data has moved once for each participant, between its arrival and its end, before its stream can go on", () => {
    fc.assert(
      fc.property(fc.nat(), fc.boolean(), (seed, eager) => {
        const program = link(randomLists(createRandom(seed), 3, 15).lists);
        const log: string[] = [];
        const note =
          (what: string) =>
          (rank: number, command: number): void =>
            void log.push(`${what} ${rank}.${command}`);
        const observer = { start: note("start"), moved: note("moved"), end: note("end") };
        const machine = createMachine(program, createReferenceCompute(program), {
          interleaving: { kind: "seed", seed },
          transfers: eager ? "eager" : "synchronous",
          observer,
        });
        for (let run = 0; run < 2; run++) {
          log.length = 0;
          machine.run();
          const moved = log.filter((entry) => entry.startsWith("moved"));
          const members = program.transfers.flatMap((transfer) => transfer.participants);
          expect(moved.toSorted()).toEqual(members.map(({ rank, command }) => `moved ${rank}.${command}`).toSorted());
          for (const { rank, command } of members) {
            const [start, middle, end] = ["start", "moved", "end"].map((what) =>
              log.indexOf(`${what} ${rank}.${command}`),
            );
            expect(start).toBeLessThan(middle ?? -1);
            expect(middle).toBeLessThan(end ?? -1);
          }
        }
      }),
      { numRuns: 40 },
    );
  });

  it("the last participant to arrive wakes all; each then completes in a step of its own", () => {
    const program = link(
      buildLists(3, (list) => {
        const [input, output] = [list.input([2]), list.output([2])];
        list.collective(0, "Allreduce", { team: [0, 1, 2], reduceOp: "sum", input, output });
      }),
    );
    const { take, begin, obstacle } = byHand(program);
    for (let run = 0; run < 2; run++) {
      begin();
      expect(take(0)).toEqual(["progress", []]);
      expect(take(0)).toEqual(["blocked", []]);
      expect(obstacle(0)).toBe(
        "waits for rank 1, stream 0 to arrive at: transfer of rank 1; rank 2, stream 0 to arrive at: transfer of rank 2",
      );
      expect(obstacle(1)).toBeNull();
      expect(take(2)).toEqual(["progress", []]);
      expect(take(1)).toEqual(["progress", [0, 1, 2]]);
      for (const queue of [0, 1, 2]) {
        expect(take(queue)).toEqual(["progress", []]);
        expect(take(queue)).toEqual(["end", []]);
      }
    }
  });

  it("a participant of a group goes on when its direct peers have come", () => {
    // 0 -> 1 -> 2: the three exchange through each other, but 0 needs only 1.
    const program = link(
      buildLists(3, (list, rank) => {
        const [own, other] = [list.input([2]), list.output([2])];
        list.group(0, [
          ...(rank < 2 ? [{ type: "send" as const, peer: rank + 1, view: own }] : []),
          ...(rank > 0 ? [{ type: "recv" as const, peer: rank - 1, view: other }] : []),
        ]);
      }),
    );
    const { take, begin, obstacle } = byHand(program);
    for (let run = 0; run < 2; run++) {
      begin();
      expect(take(0)).toEqual(["progress", []]);
      expect(take(1)).toEqual(["progress", [0, 1]]);
      expect(take(0)).toEqual(["progress", []]);
      expect(take(0)).toEqual(["end", []]);
      expect(take(1)).toEqual(["blocked", []]);
      expect(obstacle(1)).toBe("waits for rank 2, stream 0 to arrive at: transfer of rank 2");
      expect(take(2)).toEqual(["progress", [1, 2]]);
      expect(take(1)).toEqual(["progress", []]);
      expect(take(2)).toEqual(["progress", []]);
    }
  });
});

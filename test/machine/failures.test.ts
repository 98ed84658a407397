/** Runs that cannot continue: their diagnostics, and that the machine runs again afterwards. */
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { Program } from "../../src/commands/program.ts";
import { createMachine, type MachineOptions } from "../../src/machine/machine.ts";
import { at } from "../../src/support/invariant.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { buildLists, type ListBuilder } from "./list-builder.ts";
import { createReferenceCompute } from "./reference-compute.ts";

function machineOf(program: Program, options: MachineOptions = {}): { readonly run: () => void } {
  return createMachine(program, createReferenceCompute(program), options);
}

/** Two collectives of the teams {0, 1} and {1, 0}: two communicators. `streams`: one each, or both on the caller's. */
function crossed(streams: number): Program {
  return link(
    buildLists(2, (list, rank) => {
      const lanes = streams === 1 ? [0, 0] : [list.stream("first"), list.stream("second")];
      const sides = [0, 1].map(() => ({ input: list.input([2]), output: list.output([2]) }));
      for (const [i, lane] of lanes.entries()) {
        const team = i === rank ? [0, 1] : [1, 0];
        list.statement(`Allreduce ${team.join(",")}`);
        list.collective(lane, "Allreduce", { team, reduceOp: "sum", ...at(sides, i === rank ? 0 : 1) });
      }
    }),
  );
}

describe("stuck", () => {
  it.each<MachineOptions>([
    {},
    { transfers: "eager" },
    { queues: "ranks" },
    { interleaving: { kind: "seed", seed: 3 } },
  ])("collectives in crossed order on one stream: %j", (options) => {
    const problem = diagnosticOf(() => machineOf(crossed(1), options).run());
    expect(problem.code).toBe("stuck");
    expect(problem.notes).toEqual([
      "rank 0, stream 0, command 0 (transfer) of: Allreduce 0,1: waits for rank 1, stream 0 to arrive at: Allreduce 0,1",
      "rank 1, stream 0, command 0 (transfer) of: Allreduce 1,0: waits for rank 0, stream 0 to arrive at: Allreduce 1,0",
    ]);
    expect(problem.place).toEqual({ kind: "command", rank: 0, stream: 0, text: "Allreduce 0,1" });
  });

  it("collectives in crossed order on two streams complete, but not with one queue per rank", () => {
    machineOf(crossed(2)).run();
    expect(diagnosticOf(() => machineOf(crossed(2), { queues: "ranks" }).run()).code).toBe("stuck");
  });

  it("a signal that nobody sends, and the commands that wait after it", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        if (rank === 0) {
          list.pair("get", "send", 1, list.input([2]));
          return;
        }
        const worker = list.stream("worker");
        const pair = list.pair("get", "recv", 0, list.output([2]));
        list.statement("recv from 0");
        list.waitPeer(worker, pair, "ready");
        list.copyPeer(worker, pair);
        list.statement("Synchronize worker");
        list.synchronize(0, worker);
      }),
    );
    const problem = diagnosticOf(() => machineOf(program).run());
    expect(problem.notes).toEqual([
      "rank 1, stream 0, command 3 (waitEvent) of: Synchronize worker: waits for rank 1, stream 1 to record its event at: Synchronize worker",
      "rank 1, stream 1, command 0 (waitSignal) of: recv from 0: waits for a signal that nothing sends",
    ]);
  });

  it("a signal that its rank sends only after what it waits for itself", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const peer = 1 - rank;
        const sending = list.pair("get", "send", peer, list.input([2]));
        const receiving = list.pair("get", "recv", peer, list.output([2]));
        list.statement(`recv from ${peer}`);
        list.waitPeer(0, receiving, "ready");
        list.copyPeer(0, receiving);
        list.statement(`send to ${peer}`);
        list.signalPeer(0, sending, "ready");
      }),
    );
    const problem = diagnosticOf(() => machineOf(program).run());
    expect(problem.notes).toEqual([
      "rank 0, stream 0, command 0 (waitSignal) of: recv from 1: waits for rank 1, stream 0 to signal at: send to 0",
      "rank 1, stream 0, command 0 (waitSignal) of: recv from 0: waits for rank 0, stream 0 to signal at: send to 1",
    ]);
  });

  it("a ring of lone sends before receives: each waits for its direct peer only", () => {
    const world = 3;
    const lone = (list: ListBuilder, rank: number): void => {
      const [own, other] = [list.input([2]), list.output([2])];
      list.statement("send");
      list.group(0, [{ type: "send", peer: (rank + 1) % world, view: own }]);
      list.statement("recv");
      list.group(0, [{ type: "recv", peer: (rank + 2) % world, view: other }]);
    };
    const program = link(buildLists(world, lone));
    const problem = diagnosticOf(() => machineOf(program).run());
    expect(problem.notes?.[0]).toBe(
      "rank 0, stream 0, command 0 (transfer) of: send: waits for rank 1, stream 0 to arrive at: recv",
    );
    expect(problem.notes).toHaveLength(3);
    // A library that buffers sends would let it pass; no program may rely on that.
    machineOf(program, { transfers: "eager" }).run();
  });

  it("is found again by every run", () => {
    const machine = machineOf(crossed(1), { transfers: "eager" });
    const first = diagnosticOf(() => machine.run());
    expect(diagnosticOf(() => machine.run())).toEqual(first);
  });
});

describe("slot overrun", () => {
  /** The receiver of a put never waits for the sender's `done`. */
  const program = link(
    buildLists(2, (list, rank) => {
      const pair =
        rank === 0 ? list.pair("put", "send", 1, list.input([2])) : list.pair("put", "recv", 0, list.output([2]));
      list.statement(rank === 0 ? "send to 1" : "recv from 0");
      if (rank === 1) list.signalPeer(0, pair, "ready");
      else {
        list.waitPeer(0, pair, "ready");
        list.copyPeer(0, pair);
        list.signalPeer(0, pair, "done");
      }
    }),
  );

  it("ends the second run, names the statement, and leaves a machine that runs from zeroed slots", () => {
    const machine = machineOf(program);
    for (let i = 0; i < 2; i++) {
      machine.run();
      const problem = diagnosticOf(() => machine.run());
      expect(problem.code).toBe("slot-overrun");
      expect(problem.place).toEqual({ kind: "command", rank: 0, stream: 0, text: "send to 1" });
      expect(problem.message).toBe("rank 0 signals rank 1 again before rank 1 has waited for the previous signal");
    }
  });
});

describe("a back end that throws", () => {
  const program = link(
    buildLists(2, (list, rank) => {
      const [own, all] = [list.input([2]), list.output([2, 2])];
      list.collective(0, "Allgather", { team: [0, 1], input: own, output: all });
      list.copy(0, own, { ...own, buffer: all.buffer, offset: 8 * rank });
    }),
  );

  it.each<MachineOptions>([{}, { transfers: "eager" }])("%j", (options) => {
    const compute = createReferenceCompute(program);
    let fails = true;
    const machine = createMachine(
      program,
      {
        ...compute,
        copy: (source, destination) => {
          if (fails) throw new Error("out of order");
          compute.copy(source, destination);
        },
      },
      options,
    );
    const inputs = program.buffers.filter(({ role }) => role === "input");
    for (const { id, rank } of inputs) compute.write(id, [rank, 10 + rank]);
    expect(() => machine.run()).toThrow("out of order");
    fails = false;
    machine.run();
    for (const { id, role } of program.buffers) if (role === "output") expect(compute.read(id)).toEqual([0, 10, 1, 11]);
  });
});

/**
 * The CPU back end on worker threads: streams that wait for each other, and every way a run can fail, with a new run in
 * the same group afterwards. random-pauses.sampled.test.ts runs many programs many times.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DiagnosticError, type Group, link } from "@braid-compiler/braid";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import type { KernelId } from "../../../src/commands/command.ts";
import { makeId } from "../../../src/support/invariant.ts";
import { buildLists } from "../../machine/list-builder.ts";
import { patternProgram } from "../../support/example-program.ts";
import { fillInputs } from "./inputs-and-outputs.ts";
import { smallRing } from "./small-ring.ts";

async function failureOf(run: Promise<unknown>): Promise<DiagnosticError> {
  const error: unknown = await run.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof DiagnosticError)) throw new Error(`expected a diagnostic, not ${String(error)}`);
  return error;
}

describe("a ring of coalesced sends and receives", () => {
  it.each([1, 2])("passes every rank's data on, on %i workers", async (workers) => {
    const ranks = 5;
    const group = openThreadedGroup({ workers, jitter: 3 });
    const program = link(
      buildLists(ranks, (list, rank) => {
        const own = list.input([8]);
        const got = list.output([8]);
        list.group(0, [
          { type: "recv", peer: (rank + ranks - 1) % ranks, view: got },
          { type: "send", peer: (rank + 1) % ranks, view: own },
        ]);
      }),
    );
    const prepared = await group.prepare(program);
    fillInputs(program, prepared);
    for (let run = 0; run < 50; run++) await prepared.execute({ timeout: 5 });
    const bytesOf = (role: "input" | "output", rank: number): Uint8Array => {
      const buffer = program.buffers.find((each) => each.role === role && each.rank === rank);
      return buffer === undefined ? new Uint8Array() : prepared.read(buffer.id);
    };
    for (let rank = 0; rank < ranks; rank++) {
      expect(bytesOf("output", rank)).toEqual(bytesOf("input", (rank + ranks - 1) % ranks));
    }
    await group.close();
  });
});

describe("a signal that another stream raises later", () => {
  it.each([1, 2])("never delays that stream on %i workers", async (workers) => {
    const group = openThreadedGroup({ workers });
    // Rank 0's first stream waits for what its second stream makes rank 1 send: a thread that blocked in the wait would never get there.
    const program = link(
      buildLists(2, (list, rank) => {
        const [waiting, going] = [list.stream("waiting"), list.stream("going")];
        const [a, b] = [list.input([4], "symmetric"), list.output([4], "symmetric")];
        const receive = list.pair("get", "recv", 1 - rank, b);
        const send = list.pair("get", "send", 1 - rank, a);
        list.waitPeer(waiting, receive, "ready");
        list.copyPeer(waiting, receive);
        list.signalPeer(waiting, receive, "done");
        list.signalPeer(going, send, "ready");
        list.waitPeer(going, send, "done");
        list.synchronize(0, waiting);
        list.synchronize(0, going);
      }),
    );
    const prepared = await group.prepare(program);
    for (let run = 0; run < 50; run++) await prepared.execute({ timeout: 5 });
    await group.close();
  });
});

describe("failures", () => {
  let group: Group;
  beforeAll(() => {
    group = openThreadedGroup({ workers: 2 });
  });
  afterAll(() => group.close());

  const runsAgain = async (): Promise<void> => {
    const prepared = await group.prepare(smallRing(3));
    await prepared.execute({ timeout: 5 });
    prepared.release();
  };

  it("a program that cannot go on says what every stream waits for, at once", async () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const collectives = [
          [0, 1],
          [1, 0],
        ].map((team) => ({ team, input: list.input([2]), output: list.output([2]) }));
        for (const each of rank === 0 ? collectives : collectives.toReversed()) {
          list.statement(`Allreduce ${each.team.join(",")}`);
          list.collective(0, "Allreduce", { reduceOp: "sum", ...each });
        }
      }),
    );
    const prepared = await group.prepare(program);
    for (let run = 0; run < 3; run++) {
      const { diagnostics } = await failureOf(prepared.execute({ timeout: 60 }));
      expect(diagnostics[0]?.code).toBe("stuck");
      expect(diagnostics[0]?.notes).toEqual([
        "rank 0, stream 0, command 0 (transfer) of: Allreduce 0,1: waits for rank 1, stream 0 to arrive at: Allreduce 0,1",
        "rank 1, stream 0, command 0 (transfer) of: Allreduce 1,0: waits for rank 0, stream 0 to arrive at: Allreduce 1,0",
        expect.stringMatching(/^flight record: /),
      ]);
    }
    await runsAgain();
  });

  it("a slot overrun in a worker", async () => {
    const program = link(
      buildLists(2, (list, rank) => {
        if (rank === 0) {
          const send = list.pair("get", "send", 1, list.input([2], "symmetric"));
          list.signalPeer(0, send, "ready");
          list.signalPeer(0, send, "ready");
        } else {
          list.pair("get", "recv", 0, list.output([2]));
        }
      }),
    );
    const prepared = await group.prepare(program);
    for (let run = 0; run < 2; run++) {
      expect((await failureOf(prepared.execute({ timeout: 5 }))).diagnostics[0]?.code).toBe("slot-overrun");
    }
    await runsAgain();
  });

  it("a run that takes too long, and the same Program with more time", async () => {
    const program = await patternProgram("allgather-matmul.ts", 8, 8);
    const prepared = await group.prepare(program);
    fillInputs(program, prepared);
    const { diagnostics } = await failureOf(prepared.execute({ timeout: 0.001 }));
    expect(diagnostics[0]?.code).toBe("timed-out");
    expect(diagnostics[0]?.notes?.join("\n")).toMatch(/rank \d, stream \d+, command \d+ \(\w+\) of: /u);
    await prepared.execute({ timeout: 30 });
    prepared.release();
  });

  it("a command that throws names itself, its stream and its statement", async () => {
    const program = smallRing(2);
    const ranks = program.ranks.map((each) => ({
      ...each,
      // No kernel has this number, so that the launch fails in the worker.
      commands: each.commands.map((command) =>
        command.kind === "launch" && each.rank === 1 ? { ...command, kernel: makeId<KernelId>(99) } : command,
      ),
    }));
    const prepared = await group.prepare({ ...program, ranks });
    for (let run = 0; run < 2; run++) {
      const { diagnostics } = await failureOf(prepared.execute({ timeout: 5 }));
      expect(diagnostics[0]?.code).toBe("command-threw");
      expect(diagnostics[0]?.place).toEqual({
        kind: "statement",
        text: expect.stringMatching(/^rank 1, stream 0, command \d+ \(launch\) of: /u) as string,
      });
    }
    await runsAgain();
  });
});

/** The built worker, but worker 1 exits when its third run begins. */
const dyingWorker = `
  import { parentPort, workerData } from "node:worker_threads";
  let runs = 0;
  const on = parentPort.on.bind(parentPort);
  parentPort.on = (event, listener) =>
    on(event, (message) => {
      if (workerData.number === 1 && message.kind === "run" && ++runs === 3) process.exit(7);
      listener(message);
    });
  await import(${JSON.stringify(new URL("../../../dist/backends/cpu/threads/worker.js", import.meta.url).href)});
`;

describe("a worker that dies", () => {
  it("ends the run on all ranks, and new workers take the next one", async () => {
    const worker = new URL(`data:text/javascript,${encodeURIComponent(dyingWorker)}`);
    const group = openThreadedGroup({ workers: 2, worker });
    const prepared = await group.prepare(smallRing(3));
    // The second run after every start is the last: the third finds the worker dying.
    const codes: (string | undefined)[] = [];
    for (let run = 0; run < 6; run++) {
      codes.push(
        await prepared.execute({ timeout: 10 }).then(
          () => "ran",
          (error: unknown) => (error instanceof DiagnosticError ? error.diagnostics[0]?.code : String(error)),
        ),
      );
    }
    expect(codes).toEqual(["ran", "ran", "worker-died", "ran", "ran", "worker-died"]);
    await group.close();
  });
});

describe("many runs", () => {
  it("keep memory and handles flat", { timeout: 60_000 }, async () => {
    const group = openThreadedGroup({ workers: 2 });
    const prepared = await group.prepare(smallRing(3));
    for (let run = 0; run < 100; run++) await prepared.execute();
    const before = { heap: process.memoryUsage().rss, handles: process.getActiveResourcesInfo().length };
    for (let run = 0; run < 1000; run++) await prepared.execute({ timeout: 10 });
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before.handles + 2);
    expect(process.memoryUsage().rss - before.heap).toBeLessThan(64 * 2 ** 20);
    await group.close();
  });
});

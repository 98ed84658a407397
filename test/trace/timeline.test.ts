import { describe, expect, it } from "vitest";
import type { Command, PointToPointGroup, StreamInfo } from "../../src/commands/command.ts";
import type { LinkedTransfer, Program } from "../../src/commands/program.ts";
import { makeId } from "../../src/support/invariant.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { renderTimeline, trackLabel } from "../../src/trace/timeline.ts";

const streams: readonly StreamInfo[] = [
  { id: makeId(0), role: "caller", name: "caller" },
  { id: makeId(1), role: "worker", name: "worker 0" },
  { id: makeId(2), role: "communicator", name: "nccl" },
];

/** One rank, or as many ranks with the same commands as meet in `transfer`. */
function programOf(commands: readonly Command[], transfers: readonly LinkedTransfer[] = []): Program {
  const world = Math.max(1, ...transfers.flatMap(({ participants }) => participants.map(({ rank }) => rank + 1)));
  return {
    kind: "Program",
    ranks: Array.from({ length: world }, (_, rank) => ({
      rank,
      streams,
      eventCount: 1,
      commands,
      origins: commands.map(() => ({ statement: "", path: [], iteration: [] })),
      transferOf: commands.map(({ kind }) => (kind === "transfer" ? makeId(0) : null)),
      arenaBytes: { input: 0, output: 0, temporary: 0, symmetric: 0 },
    })),
    buffers: [],
    kernels: [],
    transfers,
    slots: [],
  };
}

const operation: PointToPointGroup = { kind: "group", ops: [] };
const transferOn = (stream: number): Command => ({
  kind: "transfer",
  stream: makeId(stream),
  communicator: "nccl",
  operation,
});

const launch = (stream: number): Command => ({
  kind: "launch",
  stream: makeId(stream),
  kernel: makeId(0),
  inputs: [],
  outputs: [],
});
const recordEvent = (stream: number): Command => ({ kind: "recordEvent", stream: makeId(stream), event: makeId(0) });
const event = (command: number, stream: number, start: number, end: number, rank = 0): TraceEvent => ({
  rank,
  stream,
  command,
  start,
  end,
});

it("calls the streams of a library what they are on a CPU", () => {
  const streams = [
    { id: 0, role: "communicator" as const, name: "NCCL (0 1)" },
    { id: 1, role: "copy" as const, name: "copies" },
  ];
  expect(streams.map((stream) => trackLabel({ ...stream, id: makeId(stream.id) }, "cpu"))).toEqual([
    "transfers (0 1)",
    "copies",
  ]);
  expect(trackLabel({ id: makeId(0), role: "communicator", name: "NCCL (0 1)" }, "cuda")).toBe("NCCL (0 1)");
});

describe("renderTimeline", () => {
  it("draws each stream with work over one time axis", () => {
    const program = programOf([launch(1), recordEvent(1), transferOn(2)]);
    const lines = renderTimeline(program, 0, [event(0, 1, 0, 5), event(1, 1, 5, 5), event(2, 2, 5, 10)], {
      columns: 39,
      on: "cuda",
    });
    expect(lines).toEqual([
      "worker 0  kkkkkkkkkk..........  5.00 ms",
      "nccl      ..........tttttttttt  5.00 ms",
      "          0           10.00 ms",
      "rank 0; k kernel, c copy, t transfer, w waiting for peers, . idle",
    ]);
  });

  it("shows a command that is shorter than a cell, also at the very end", () => {
    const program = programOf([launch(0), launch(1)]);
    const [caller, worker] = renderTimeline(program, 0, [event(0, 0, 0, 100), event(1, 1, 100, 100)], {
      columns: 60,
      on: "cuda",
    });
    expect(caller).toMatch(/^caller {4}k+ {2}100\.00 ms$/);
    expect(worker).toMatch(/^worker 0 {2}\.+k {4}0\.00 ms$/);
  });

  it("leaves out commands that only order streams", () => {
    const program = programOf([launch(0), recordEvent(1)]);
    expect(renderTimeline(program, 0, [event(1, 1, 0, 1)], { columns: 80, on: "cuda" })).toEqual([
      "rank 0: nothing to run",
    ]);
    expect(renderTimeline(program, 0, [], { columns: 80, on: "cuda" })).toEqual(["rank 0: nothing to run"]);
  });

  it("gives a cell to the kind that takes most of it", () => {
    const program = programOf([launch(0), transferOn(0), launch(0)]);
    const events = [event(0, 0, 0, 40), event(1, 0, 40, 43), event(2, 0, 43, 100)];
    const [row] = renderTimeline(program, 0, events, { columns: 37, on: "cuda" });
    expect(row).toBe("caller  kkkkkkkktkkkkkkkkkkk  100.00 ms");
  });

  it("shows a transfer that waits for its participants apart from one that moves, and other ranks not at all", () => {
    const participants = [0, 1].map((rank) => ({ rank, command: 0, operation }));
    const edges = [{ from: 0, sendOp: 0, to: 1, recvOp: 0 }];
    const program = programOf(
      [transferOn(2)],
      [{ kind: "group", id: makeId(0), communicator: "nccl", participants, edges }],
    );
    const events = [event(0, 2, 0, 10), event(0, 2, 5, 10, 1)];
    expect(renderTimeline(program, 0, events, { columns: 35, on: "cuda" })[0]).toBe(
      "nccl  wwwwwwwwwwtttttttttt  5.00 ms",
    );
    expect(renderTimeline(program, 1, events, { columns: 35, on: "cuda" })[0]).toBe(
      "nccl  ..........tttttttttt  5.00 ms",
    );
  });
});

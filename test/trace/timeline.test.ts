import { describe, expect, it } from "vitest";
import type { Command, StreamInfo } from "../../src/commands/command.ts";
import type { RankProgram } from "../../src/commands/program.ts";
import { makeId } from "../../src/support/ids.ts";
import type { TraceEvent } from "../../src/trace/event.ts";
import { renderTimeline } from "../../src/trace/timeline.ts";

const streams: readonly StreamInfo[] = [
  { id: makeId(0), role: "caller", name: "caller" },
  { id: makeId(1), role: "worker", name: "worker 0" },
  { id: makeId(2), role: "communicator", name: "nccl" },
];

function rankProgram(commands: readonly Command[]): RankProgram {
  return {
    rank: 0,
    streams,
    eventCount: 1,
    commands,
    origins: commands.map(() => ({ statement: "", path: [], iteration: [] })),
    transferOf: commands.map(() => null),
    arenaBytes: { input: 0, output: 0, temporary: 0, symmetric: 0 },
  };
}

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

describe("renderTimeline", () => {
  it("draws each stream with work over one time axis", () => {
    const transfer: Command = {
      kind: "transfer",
      stream: makeId(2),
      communicator: "nccl",
      operation: { kind: "group", ops: [] },
    };
    const program = rankProgram([launch(1), recordEvent(1), transfer]);
    const lines = renderTimeline(program, [event(0, 1, 0, 5), event(1, 1, 5, 5), event(2, 2, 5, 10)], 39);
    expect(lines).toEqual([
      "worker 0  kkkkkkkkkk..........  5.00 ms",
      "nccl      ..........tttttttttt  5.00 ms",
      "          0           10.00 ms",
      "rank 0; k kernel, c copy, t transfer, . idle",
    ]);
  });

  it("shows a command that is shorter than a cell, also at the very end", () => {
    const program = rankProgram([launch(0), launch(1)]);
    const [caller, worker] = renderTimeline(program, [event(0, 0, 0, 100), event(1, 1, 100, 100)], 60);
    expect(caller).toMatch(/^caller {4}k+ {2}100\.00 ms$/);
    expect(worker).toMatch(/^worker 0 {2}\.+k {4}0\.00 ms$/);
  });

  it("leaves out other ranks and commands that only order streams", () => {
    const program = rankProgram([launch(0), recordEvent(1)]);
    expect(renderTimeline(program, [event(0, 0, 0, 1, 3), event(1, 1, 0, 1)], 80)).toEqual(["rank 0: nothing to run"]);
    expect(renderTimeline(program, [], 80)).toEqual(["rank 0: nothing to run"]);
  });

  it("gives a cell to the kind that takes most of it", () => {
    const transfer: Command = {
      kind: "transfer",
      stream: makeId(0),
      communicator: "nccl",
      operation: { kind: "group", ops: [] },
    };
    const program = rankProgram([launch(0), transfer, launch(0)]);
    const events = [event(0, 0, 0, 40), event(1, 0, 40, 43), event(2, 0, 43, 100)];
    const [row] = renderTimeline(program, events, 37);
    expect(row).toBe("caller  kkkkkkkktkkkkkkkkkkk  100.00 ms");
  });
});

/** Traces in the Chrome Trace Event format: of small Programs in full. */
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import { partOf } from "../../src/commands/view.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { chromeTrace, chromeTraceText } from "../../src/trace/chrome/chrome-trace.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { buildLists } from "../machine/list-builder.ts";
import { randomLists } from "../machine/random-lists.ts";
import { type CheckedTrace } from "./check-chrome-trace.ts";
import { checkedTrace, millisecond, parsedTrace } from "./checked-trace.ts";
import { tracedRun } from "./traced-run.ts";

/** Arrows as text: `event: rank 0 recordEvent e0 -> rank 0 waitEvent e0`. */
function arrowTexts({ arrows }: CheckedTrace): readonly string[] {
  return arrows.map(
    ({ name, from, to }) => `${name}: rank ${from.pid - 1} ${from.name} -> rank ${to.pid - 1} ${to.name}`,
  );
}

/** Two ranks: a worker adds, the communicator gathers, the caller waits for both. */
const gathering = link(
  buildLists(2, (list, rank) => {
    const own = list.input([4]);
    const sum = list.temporary([4]);
    const all = list.output([2, 4]);
    const worker = list.stream("worker 0");
    const lane = list.stream("nccl", "communicator");
    list.synchronize(worker, 0);
    list.alloc(worker, sum);
    list.statement(`T1 = add(T0, T0) on ${rank}`).binary(worker, "add", own, own, sum);
    list.synchronize(lane, worker);
    list.collective(lane, "Allgather", { team: [0, 1], input: sum, output: all });
    list.synchronize(0, lane);
    list.free(0, sum);
  }),
);

describe("chromeTrace", () => {
  it("names processes and tracks, callers first, communicators before lanes", () => {
    const program = link(
      buildLists(1, (list) => {
        const own = list.input([4]);
        const out = list.output([4, 4]);
        const streams = [
          list.stream("copies", "copy"),
          list.stream("nccl", "communicator"),
          list.stream("worker 0"),
          list.stream("unused"),
        ];
        for (const [i, stream] of [0, ...streams.slice(0, 3)].entries()) list.copy(stream, own, partOf(out, i));
      }),
    );
    const { traceEvents } = parsedTrace(program, tracedRun(program));
    const names = traceEvents.filter(({ name }) => name === "thread_name" || name === "process_name");
    expect(names.map(({ args }) => args?.["name"])).toEqual(["rank 0", "caller", "worker 0", "nccl", "copies"]);
    expect(names.slice(1).map(({ tid }) => tid)).toEqual([2, 3, 5, 6]);
    const order = traceEvents.filter(({ name }) => name === "thread_sort_index");
    expect(order.map(({ args }) => args?.["sort_index"])).toEqual([0, 1, 2, 3]);
  });

  it("shows kernels, transfers, waits and events of every stream, but no lifetime marks", () => {
    const { slices } = checkedTrace(gathering, tracedRun(gathering));
    const shown = slices.filter(({ pid }) => pid === 1).map(({ cat, name }) => `${cat}: ${name}`);
    expect(shown.filter((text) => !text.startsWith("wait: wait for e"))).toEqual([
      "order: recordEvent e0",
      "order: waitEvent e0",
      "kernel: binary add: float [4], float [4] -> float [4]",
      "order: recordEvent e1",
      "order: waitEvent e1",
      "wait: wait for peers: Allgather",
      "transfer: Allgather 32 B",
      "order: recordEvent e2",
      "order: waitEvent e2",
    ]);
  });

  it("begins a wait where the back end saw the stream come to it", () => {
    const waits = (later: number): readonly (readonly [string, number, number])[] => {
      const events = tracedRun(gathering).map((event): TraceEvent => {
        const { kind } = at(at(gathering.ranks, event.rank).commands, event.command);
        return kind === "waitEvent" ? { ...event, reached: event.start - later } : event;
      });
      const { slices } = checkedTrace(gathering, events);
      const own = slices.filter(({ pid, name }) => pid === 1 && name === "wait for e2");
      return own.map(({ name, start, end }) => [name, start / millisecond, end / millisecond]);
    };
    // e2 is recorded from 30 to 31, and the caller goes on at 36.
    expect(waits(10)).toEqual([["wait for e2", 26, 31]]);
    expect(waits(2)).toEqual([]);
  });

  it("says of each command where it came from and how much it did", () => {
    const { slices } = checkedTrace(gathering, tracedRun(gathering));
    const argsOf = (cat: string): unknown => slices.find((slice) => slice.cat === cat)?.args;
    expect(argsOf("kernel")).toEqual({ command: 3, statement: "T1 = add(T0, T0) on 0", bytes: 48, flops: 4 });
    expect(argsOf("transfer")).toMatchObject({ command: 6, bytes: 32 });
    expect(argsOf("order")).toEqual({ command: 0, statement: "recordEvent of rank 0" });
  });

  it("gives the values of the loops around a statement", () => {
    const ranks = gathering.ranks.map((rank) => ({
      ...rank,
      origins: rank.origins.map((origin) => ({ ...origin, iteration: [2, 0] })),
    }));
    const program = { ...gathering, ranks };
    const { slices } = checkedTrace(program, tracedRun(program));
    expect(slices[0]?.args).toMatchObject({ iteration: "2, 0" });
  });

  it("draws arrows from events to their waits and from participants to those that need their data", () => {
    const text = arrowTexts(checkedTrace(gathering, tracedRun(gathering)));
    expect(text.filter((line) => line.startsWith("event: rank 0"))).toEqual(
      [0, 1, 2].map((e) => `event: rank 0 recordEvent e${e} -> rank 0 waitEvent e${e}`),
    );
    expect(text.filter((line) => line.startsWith("transfer"))).toEqual([
      "transfer: rank 1 wait for peers: Allgather -> rank 0 Allgather 32 B",
      "transfer: rank 0 wait for peers: Allgather -> rank 1 Allgather 32 B",
    ]);
    expect(text).toHaveLength(8);
  });

  it("draws no arrow to a participant that needs nobody's data", () => {
    const program = link(
      buildLists(3, (list, rank) => {
        const own = list.input([4]);
        const out = rank === 1 ? list.output([4]) : null;
        list.collective(0, "Reduce", { team: [0, 1, 2], root: 1, reduceOp: "sum", input: own, output: out });
      }),
    );
    const trace = checkedTrace(program, tracedRun(program));
    expect(arrowTexts(trace)).toEqual([
      "transfer: rank 0 wait for peers: Reduce sum, root 1 -> rank 1 Reduce sum, root 1 16 B",
      "transfer: rank 2 wait for peers: Reduce sum, root 1 -> rank 1 Reduce sum, root 1 16 B",
    ]);
  });

  it("shows a group of sends and receives by its partners, its waiting apart from its moving", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const own = list.input([4]);
        const got = list.output([4]);
        const other = 1 - rank;
        list.group(0, [
          { type: "send", peer: other, view: own },
          { type: "recv", peer: other, view: got },
        ]);
      }),
    );
    const at = (rank: number, start: number, end: number): TraceEvent => ({ rank, stream: 0, command: 0, start, end });
    const { slices, arrows } = checkedTrace(program, [at(0, 0, 9), at(1, 4, 10)]);
    expect(slices.map(({ name, start, end }) => [name, start / millisecond, end / millisecond])).toEqual([
      ["wait for peers: send to 1, recv from 1", 0, 4],
      ["send to 1, recv from 1 32 B", 4, 9],
      ["wait for peers: send to 0, recv from 0", 4, 4 + 1e-6],
      ["send to 0, recv from 0 32 B", 4 + 1e-6, 10],
    ]);
    expect(arrows).toHaveLength(2);
  });

  it("draws arrows from signals to their waits, and names peers of copies", () => {
    const program = link(
      buildLists(2, (list, rank) => {
        const own = list.input([4], "symmetric");
        const got = list.output([4]);
        const lane = list.stream("copies", "copy");
        const send = list.pair("get", "send", 1 - rank, own);
        const recv = list.pair("get", "recv", 1 - rank, got);
        list.signalPeer(0, send, "ready");
        list.waitPeer(lane, recv, "ready");
        list.copyPeer(lane, recv);
        list.signalPeer(lane, recv, "done");
        list.waitPeer(0, send, "done");
        list.synchronize(0, lane);
      }),
    );
    const trace = checkedTrace(program, tracedRun(program));
    expect(trace.slices.filter(({ cat }) => cat === "copy").map(({ name }) => name)).toEqual([
      "copy from rank 1, 16 B",
      "copy from rank 0, 16 B",
    ]);
    const signals = trace.arrows.filter(({ name }) => name === "signal");
    expect(signals).toHaveLength(4);
    for (const { from, to } of signals) {
      expect(from.pid).not.toBe(to.pid);
      expect(to.name).toBe(from.name.replace("signal", "waitSignal"));
    }
    expect(trace.slices.some(({ name }) => name.startsWith("wait for slot"))).toBe(true);
  });

  it("ends a wait where its event was recorded: what follows is the want of a worker", () => {
    const program = link(
      buildLists(1, (list) => {
        list.synchronize(list.stream("worker 0"), 0);
      }),
    );
    const events: readonly TraceEvent[] = [
      { rank: 0, stream: 0, command: 0, start: 2, end: 3 },
      { rank: 0, stream: 1, command: 1, start: 8, end: 9 },
    ];
    const { slices } = checkedTrace(program, events);
    expect(slices.map(({ name, start, end }) => [name, start / millisecond, end / millisecond])).toEqual([
      ["recordEvent e0", 2, 3],
      ["wait for e0", 0, 3],
      ["waitEvent e0", 8, 9],
    ]);
  });

  it("leaves out ranks that were not traced, with their arrows", () => {
    const own = tracedRun(gathering).filter(({ rank }) => rank === 1);
    const { slices, arrows } = checkedTrace(gathering, own);
    expect(new Set(slices.map(({ pid }) => pid))).toEqual(new Set([2]));
    expect(arrows.map(({ name }) => name)).toEqual(["event", "event", "event"]);
    expect(parsedTrace(gathering, [])).toEqual({ displayTimeUnit: "ns", traceEvents: [] });
  });

  it("counts the bytes that copies and transfers have moved", () => {
    const { traceEvents } = parsedTrace(gathering, tracedRun(gathering));
    const counter = traceEvents.filter(({ ph, pid }) => ph === "C" && pid === 1);
    expect(counter.map(({ args }) => args?.["bytes"])).toEqual([0, 32]);
  });

  it("is the same as object and as text, in pieces of bounded length", () => {
    const program = link(randomLists(createRandom(3), 4, 400).lists);
    const events = tracedRun(program);
    const pieces = [...chromeTraceText(program, events)];
    expect(JSON.parse(pieces.join(""))).toEqual(chromeTrace(program, events));
    expect(pieces.length).toBeGreaterThan(3);
    expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(70_000);
  });
});

/** Times of ranks with separate clocks on one axis, and the precision that the trace reports. */
import { describe, expect, it } from "vitest";
import { alignmentError, alignTraces } from "../../src/trace/align-traces.ts";
import { chromeTrace, chromeTraceText } from "../../src/trace/chrome/chrome-trace.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { link } from "../../src/commands/link/link.ts";
import { buildLists } from "../machine/list-builder.ts";
import { tracedRun } from "./traced-run.ts";

const event = (rank: number, start: number): TraceEvent => ({ rank, stream: 0, command: 0, start, end: start + 1 });

describe("traces of several clocks", () => {
  it("are moved to one axis whose zero is the earliest", () => {
    const origins = [
      { rank: 0, at: 1000.5, error: 0.002 },
      { rank: 1, at: 1000, error: 0.003 },
    ];
    const waiting = { ...event(0, 2), reached: 1.5 };
    const aligned = alignTraces([event(0, 0), event(1, 0.25), waiting], origins);
    expect(aligned).toEqual([event(1, 0.25), event(0, 0.5), { ...event(0, 2.5), reached: 2 }]);
    expect(alignmentError(origins)).toBe(0.005);
  });

  it("stay as they are where the back end has one clock", () => {
    const events = [event(0, 0), event(1, 1)];
    expect(alignTraces(events, [])).toEqual(events);
    expect(alignmentError([{ rank: 0, at: 3, error: 1 }])).toBeNull();
  });

  it("say how precise they are, in the file and at every rank", () => {
    const gathering = link(
      buildLists(2, (list) => {
        const [input, output] = [list.input([4]), list.output([2, 4])];
        list.collective(0, "Allgather", { team: [0, 1], input, output });
      }),
    );
    const origins = [0, 1].map((rank) => ({ rank, at: rank, error: 0.0015 }));
    const trace = chromeTrace(gathering, tracedRun(gathering), origins);
    expect(trace.otherData).toEqual({ clocks: "times of different ranks fit within 3.0 us" });
    const labels = trace.traceEvents.filter(({ name }) => name === "process_labels");
    expect(labels.map(({ pid, ...rest }) => [pid, "args" in rest ? rest.args : null])).toEqual([
      [1, { labels: "clock within 1.5 us" }],
      [2, { labels: "clock within 1.5 us" }],
    ]);
    expect(JSON.parse([...chromeTraceText(gathering, tracedRun(gathering), origins)].join(""))).toEqual(trace);
  });
});

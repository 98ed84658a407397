import type { Program } from "../../src/commands/program.ts";
import { chromeTraceText } from "../../src/trace/chrome/chrome-trace.ts";
import type { TraceEvent } from "../../src/trace/event-table.ts";
import { checkChromeTrace, type CheckedTrace, type RawTrace } from "./check-chrome-trace.ts";

export const millisecond = 1e6;

export function parsedTrace(program: Program, events: readonly TraceEvent[]): RawTrace {
  return JSON.parse([...chromeTraceText(program, events)].join("")) as RawTrace;
}

/** `slack`: how many nanoseconds slices may move past the last measured time. */
export function checkedTrace(program: Program, events: readonly TraceEvent[], slack = 0): CheckedTrace {
  const end = Math.max(0, ...events.flatMap((event) => [event.start, event.end])) * millisecond;
  return checkChromeTrace(parsedTrace(program, events), end + slack);
}

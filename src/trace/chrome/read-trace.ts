/**
 * Reads a trace that `braid run --trace` wrote back into the events of a run. Slices begin and end on a grid of whole
 * nanoseconds and never overlap, so times may differ from the measured ones by as much as clocks of ranks do.
 */
import * as v from "valibot";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { TraceEvent } from "../event-table.ts";
import type { TracedRunInfo } from "./chrome-trace.ts";

export interface ReadTrace {
  readonly run: TracedRunInfo;
  /** In order of start. The Program has the streams. */
  readonly spans: readonly Omit<TraceEvent, "stream">[];
}

const number = v.pipe(v.number(), v.minValue(0));
const index = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const runInfo = v.object({
  program: v.string(),
  devices: index,
  on: v.picklist(["cpu", "cuda"]),
  milliseconds: number,
  options: v.record(v.string(), v.string()),
});

const slice = v.object({
  ph: v.literal("X"),
  cat: v.picklist(["kernel", "copy", "transfer", "wait", "order"]),
  pid: v.pipe(index, v.minValue(1)),
  ts: number,
  dur: number,
  args: v.object({ command: index }),
});

const trace = v.object({
  otherData: v.object({ run: runInfo }),
  traceEvents: v.array(v.looseObject({ ph: v.string() })),
});

/** `source`: the file. Throws `trace-invalid`. */
export function readChromeTrace(text: string, source: string): ReadTrace {
  const { success, output } = v.safeParse(trace, parseJson(text, source));
  if (!success) return invalid(source, "no description of a run (otherData.run)");
  const spans = new Map<string, ReadTrace["spans"][number]>();
  for (const [position, event] of output.traceEvents.entries()) {
    if (event.ph !== "X") continue;
    const { success: isSlice, output: read } = v.safeParse(slice, event);
    if (!isSlice) return invalid(source, `traceEvents[${position}], which is no slice of a command`);
    const { cat, pid, ts, dur, args } = read;
    const key = `${pid} ${args.command}`;
    const times = { start: ts / 1000, end: (ts + dur) / 1000 };
    const before = spans.get(key);
    // A wait's slice comes first: a transfer starts when its rank arrives.
    const start = cat === "transfer" ? (before?.start ?? times.start) : times.start;
    const reached = cat === "order" && before !== undefined ? { reached: before.start } : {};
    spans.set(key, { rank: pid - 1, command: args.command, start, end: times.end, ...reached });
  }
  return { run: output.otherData.run, spans: [...spans.values()].sort((a, b) => a.start - b.start) };
}

function parseJson(text: string, source: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (error) {
    return invalid(source, error instanceof Error ? error.message : String(error));
  }
}

function invalid(source: string, found: string): never {
  return fail("trace-invalid", "a trace cannot be read", {
    place: { kind: "option", text: source },
    found,
    expected: "a file that braid run --trace wrote",
    help: "trace the run again: braid run FILE --trace trace.json",
  });
}

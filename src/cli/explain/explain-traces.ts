/** `braid explain` of traces of PyTorch's profiler: what communication costs a step, by rank and by collective. */
import { gunzipSync } from "node:zlib";
import Table from "cli-table3";
import { fail } from "../../diagnostics/diagnostic.ts";
import {
  type CollectiveTimes,
  explainProfile,
  type ProfiledRun,
} from "../../import/profiler-traces/exposed-communication.ts";
import { profilerTraces } from "../../import/loader.ts";
import { readProfilerTrace } from "../../import/profiler-traces/profiler-trace.ts";
import { utf8Text } from "../../support/json-document.ts";
import { counted, escapeLine, timeText } from "../../support/wording.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import { readRecord } from "../program/record-files.ts";
import { plainBorders, trimmedLines } from "../terminal/table-style.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { ExplainFlags } from "./explain-file.ts";

/** Throws `file-unreadable` and `trace-invalid`. */
export async function explainTraces(
  files: readonly string[],
  { json, all }: Pick<ExplainFlags, "json" | "all">,
  terminal: Terminal,
): Promise<ExitStatus> {
  const traces = [];
  for (const [position, file] of files.entries()) {
    traces.push(readProfilerTrace(await documentOf(file), file, position));
  }
  const run = explainProfile(traces.toSorted((a, b) => a.rank - b.rank));
  terminal.out(json ? `${JSON.stringify({ traces: files.length, ...run }, undefined, 2)}\n` : profileText(run, all));
  return exitStatus.ok;
}

async function documentOf(file: string): Promise<unknown> {
  const bytes = await readRecord(file, "trace", profilerTraces);
  try {
    return JSON.parse(utf8Text(bytes[0] === 0x1f ? gunzipSync(bytes, { maxOutputLength: mostBytes }) : bytes));
  } catch (error) {
    return fail("trace-invalid", "a trace of PyTorch is no JSON", {
      place: { kind: "file", path: file },
      found: error instanceof Error ? error.message : String(error),
      expected: `what prof.export_chrome_trace writes, of at most ${mostBytes / 2 ** 20} MiB`,
      help: "profile fewer steps, or the rank again: a process that was killed leaves half a file",
    });
  }
}

/** Node 20 has no longer texts. */
const mostBytes = 511 * 2 ** 20;

/** How many rows a table has, unless all are asked for. */
const mostRows = 16;

function profileText(run: ProfiledRun, all: boolean): string {
  const { ranks, collectives, late, notes, steps } = run;
  const own = ranks.find(({ rank }) => rank === run.rank);
  const waiting = own?.waiting ?? 0;
  const [latest] = late.filter(({ milliseconds }) => milliseconds > 0);
  const share = own === undefined || own.step === 0 ? 0 : own.exposed / own.step;
  return [
    `${counted(ranks.length, "rank")}, ${steps.length === 0 ? "one stretch of time: no step was marked" : `the mean of ${counted(steps.length, "step")}`}`,
    "",
    ...rankTable(run, all),
    "",
    `collectives of rank ${run.rank}:`,
    ...collectiveTable(collectives, all),
    "",
    `no kernel hides ${(100 * share).toFixed(1)} % of ${steps.length === 0 ? "the time" : "a step"} of rank ${run.rank}: ${timeText(own?.exposed ?? 0)} of communication${
      waiting === 0 ? "" : `, of which it waits ${timeText(waiting)} for other ranks`
    }`,
    ...(latest === undefined
      ? []
      : [
          `rank ${latest.rank} is late most: others wait ${timeText(latest.milliseconds)}${steps.length === 0 ? "" : " a step"} for it`,
        ]),
    ...(ranks.length === 1 ? ["with the traces of all ranks: which rank the others wait for"] : []),
    ...notes.map((note) => `note: ${note}`),
    "",
  ].join("\n");
}

function rankTable({ ranks }: ProfiledRun, all: boolean): readonly string[] {
  const table = new Table({
    ...plainBorders,
    head: ["rank", "step", "kernels", "communication", "exposed", "waiting", "idle"],
  });
  const shown = all ? ranks : ranks.slice(0, mostRows);
  for (const { rank, step, kernels, communication, exposed, waiting, idle } of shown) {
    const times = [step, kernels, communication, exposed, waiting, idle];
    table.push([String(rank), ...times.map((time) => (time === null ? "-" : timeText(time)))]);
  }
  return [...trimmedLines(table.toString()), ...more(ranks.length - shown.length)];
}

function collectiveTable(collectives: readonly CollectiveTimes[], all: boolean): readonly string[] {
  if (collectives.length === 0) return ["none"];
  const table = new Table({
    ...plainBorders,
    head: ["", "group", "dtype", "bytes", "times", "takes", "GB/s", "exposed", "waiting"],
  });
  const shown = all ? collectives : collectives.slice(0, mostRows);
  for (const { op, group, dtype, bytes, times, milliseconds, exposed, waiting } of shown) {
    const moving = milliseconds - (waiting ?? 0);
    table.push([
      escapeLine(op),
      group === null ? "-" : escapeLine(groupText(group)),
      dtype === null ? "-" : escapeLine(dtype),
      bytes?.toLocaleString("en-US") ?? "-",
      times.toFixed(Number.isInteger(times) ? 0 : 1),
      timeText(milliseconds),
      bytes === null || moving <= 0 ? "-" : ((bytes * times) / moving / 1e6).toFixed(0),
      timeText(exposed),
      waiting === null ? "-" : timeText(waiting),
    ]);
  }
  return [...trimmedLines(table.toString()), ...more(collectives.length - shown.length)];
}

function groupText({ name, description, ranks }: NonNullable<CollectiveTimes["group"]>): string {
  const called = description === "" || description === "undefined" ? name : description;
  const few = ranks.length > 4 ? `${ranks.slice(0, 3).join(" ")} .. ${ranks.at(-1)}` : ranks.join(" ");
  return `${called} (${few})`;
}

function more(count: number): readonly string[] {
  return count === 0 ? [] : [`and ${count} more (--print all)`];
}

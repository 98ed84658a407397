/** `braid verify --flight`: compares the flight records of all ranks of a run, and says which rank is missing where. */
import type { Command } from "commander";
import { readdir } from "node:fs/promises";
import path from "node:path";
import * as v from "valibot";
import { readRegularText } from "../../backends/regular-file.ts";
import { fail, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { systemReason, counted } from "../../support/wording.ts";
import { compareFlights, type FlightReport } from "../../trace/flight/compare-flights.ts";
import { flightFormat, type FlightRecord } from "../../trace/flight/flight-record.ts";
import { type ExitStatus, exitStatus } from "../exit-status.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { VerifyFlags } from "./verify-file.ts";

/** Throws `option-value` and `file-unreadable`. */
export async function compareFlight(
  command: Command,
  file: string | undefined,
  folder: string,
  { json, verbose }: Pick<VerifyFlags, "json" | "verbose">,
  terminal: Terminal,
): Promise<ExitStatus> {
  if (file !== undefined) withFile(command.name(), file);
  const report = compareFlights(await readFlights(folder));
  const ok = report.findings.every(({ severity }) => severity !== "error");
  terminal.out(
    json ? `${JSON.stringify({ flight: folder, ok, ...report }, undefined, 2)}\n` : flightText(folder, report, verbose),
  );
  return ok ? exitStatus.ok : exitStatus.checkFailed;
}

function flightText(folder: string, { findings, ranks }: FlightReport, verbose: boolean): string {
  const reasons = new Map<string, number[]>();
  for (const { rank, reason } of ranks)
    if (reason !== null) reasons.set(reason, [...(reasons.get(reason) ?? []), rank]);
  return [
    ...findings.flatMap((finding) => [renderDiagnostic(finding), ""]),
    ...ranks.flatMap(({ text, streams }) => [
      text,
      ...streams.flatMap((stream) => [
        `  ${stream.text}`,
        ...(verbose ? stream.last.map((step) => `    ${step}`) : []),
      ]),
    ]),
    "",
    ...[...reasons].map(([reason, of]) => `rank${of.length === 1 ? "" : "s"} ${of.join(", ")}: ${reason}`),
    `${folder}: ${counted(ranks.length, "rank")}, ${findings.length === 0 ? "no rank waits for another" : counted(findings.length, "finding")}`,
    "",
  ].join("\n");
}

function withFile(name: string, file: string): never {
  return fail("option-value", "--flight compares records instead of verifying a program", {
    place: { kind: "option", text: "--flight" },
    found: `--flight with the file ${file}`,
    expected: `braid ${name} --flight FOLDER`,
    help: "leave the file out: the records have all that is compared",
  });
}

// Reads the flight records in a folder.

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const position = v.pipe(v.number(), v.safeInteger(), v.minValue(-1));

const shape = v.object({
  format: v.literal(flightFormat),
  rank: count,
  world: v.pipe(count, v.minValue(1), v.maxValue(65_536)),
  reason: v.string(),
  failed: v.boolean(),
  run: count,
  finished: count,
  posted: count,
  reached: v.array(
    v.object({
      begun: position,
      ended: position,
      orLater: v.boolean(),
      ago: v.nullable(v.pipe(v.number(), v.finite())),
    }),
  ),
  last: v.array(v.array(v.object({ step: v.picklist(["begun", "ended"]), command: count }))),
  streams: v.array(v.string()),
  statements: v.array(v.string()),
  commands: v.array(
    v.object({
      stream: count,
      kind: v.string(),
      statement: count,
      needs: v.exactOptional(v.array(v.tuple([count, position]))),
    }),
  ),
});

/** Whether every number names something that the record has. */
function isConsistent({ rank, world, streams, statements, commands, reached, last }: FlightRecord): boolean {
  return (
    rank < world &&
    reached.length === streams.length &&
    last.length === streams.length &&
    commands.every(({ stream, statement }) => stream < streams.length && statement < statements.length) &&
    reached.every(({ begun, ended }) => begun < commands.length && ended < commands.length) &&
    last.every((moments) => moments.every(({ command }) => command < commands.length))
  );
}

/** The records of one run, by rank. Throws `file-unreadable`. */
export async function readFlights(folder: string): Promise<readonly FlightRecord[]> {
  const names = await readdir(folder).catch((error: unknown) => unreadable(folder, systemReason(error)));
  const files = names.filter((name) => /^rank-\d+\.json$/.test(name));
  if (files.length === 0) unreadable(folder, "it has no rank-0.json or other flight record");
  const records = await Promise.all(files.map((name) => readRecord(path.join(folder, name))));
  return records.toSorted((a, b) => a.rank - b.rank);
}

async function readRecord(file: string): Promise<FlightRecord> {
  const text = await readRegularText(file).catch((error: unknown) => unreadable(file, systemReason(error)));
  let value: unknown = null;
  try {
    value = JSON.parse(text);
  } catch {
    unreadable(file, "it is no JSON");
  }
  const result = v.safeParse(shape, value);
  return result.success && isConsistent(result.output)
    ? result.output
    : unreadable(file, "it does not have the form of a flight record");
}

function unreadable(file: string, why: string): never {
  return fail("file-unreadable", "a flight record cannot be read", {
    place: { kind: "option", text: "--flight" },
    found: `${file}: ${why}`,
    expected: "the folder that the message of a failed run names, with a file for each rank",
    help: "name that folder, with the files of all ranks",
  });
}

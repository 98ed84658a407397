/** Reads the flight records in a folder. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import * as v from "valibot";
import { readRegularText } from "../../backends/regular-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { systemReason } from "../../support/system-reason.ts";
import { flightFormat, type FlightRecord } from "../../trace/flight/flight-record.ts";

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
  return fail({
    code: "file-unreadable",
    message: "a flight record cannot be read",
    place: { kind: "option", text: "--flight" },
    found: `${file}: ${why}`,
    expected: "the folder that the message of a failed run names, with a file for each rank",
    help: "name that folder, with the files of all ranks",
  });
}

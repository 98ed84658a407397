/**
 * Loads a dump of host programs, nvFuser's or Braid's: any file that is not a program file. `braid run` and `braid
 * verify` treat a dump like the host programs that a program file returns.
 */
import path from "node:path";
import { readRegularText } from "../../backends/regular-file.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { parseContainers, type ParsedContainer } from "../../host/parse/parse.ts";
import { rankContainers } from "../../host/parse/rank-containers.ts";
import type { Options } from "../../compile/options.ts";
import { dumpExtensions } from "./dump-file.ts";
import { systemReason } from "../../support/wording.ts";

type DumpFlags = Options<"entry" | "as">;

export interface LoadedDump {
  readonly text: string;
  /** The host program of each rank. */
  readonly hosts: readonly HostProgram[];
  /** The parsed container of each rank, with the lines of its statements in the file. */
  readonly containers: readonly ParsedContainer[];
}

/** `devices` null: as many as the dump names. Throws `file-unreadable`, `device-count` and what `parse` throws. */
export async function loadDump(file: string, devices: number | null, flags: DumpFlags): Promise<LoadedDump> {
  const text = await readText(file);
  const roots = flags.as?.roots ?? "era";
  const request = { file, devices, container: containerOf(flags) };
  const containers = rankContainers(parseContainers(text, { file, roots }), request);
  return { text, hosts: containers.map(({ program }) => program), containers };
}

/** Throws `option-value` for a name: containers have none. */
function containerOf({ entry }: Options<"entry">): number | null {
  if (entry === undefined) return null;
  if (/^\d+$/u.test(entry)) return Number(entry);
  return fail("option-value", "the containers of a dump have no names", {
    place: { kind: "option", text: "--entry" },
    found: entry,
    expected: "a whole number of at least 0",
    help: "write it like --entry 0: containers are counted from 0",
  });
}

async function readText(file: string): Promise<string> {
  try {
    return await readRegularText(file);
  } catch (error) {
    return fail("file-unreadable", "the dump cannot be read", {
      place: { kind: "file", path: file },
      found: systemReason(error),
      expected: `a readable file that ends in ${dumpExtensions.join(", ")}`,
      help: `check the path; it resolves to ${path.resolve(file)}`,
    });
  }
}

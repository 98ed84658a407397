/**
 * Loads a dump of host programs, nvFuser's or Braid's: any file that is not a program file. `braid run` and `braid
 * verify` treat a dump like the host programs that a program file returns.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import { parseContainers, type ParsedContainer } from "../../host/parse/parse.ts";
import { rankContainers } from "../../host/parse/rank-containers.ts";
import { flagOf, type GivenOptions, type LoweringName, loweringNames, type Options } from "../../compile/options.ts";
import { systemReason } from "../../support/system-reason.ts";

/** `.log` and `.txt`: a dump may be surrounded by other output. */
const extensions = [".hir", ".txt", ".log", ".out"] as const;

type DumpFlags = Options<"container" | "roots">;

export interface LoadedDump {
  /** The host program of each rank. */
  readonly hosts: readonly HostProgram[];
  /** The parsed container of each rank, with the lines of its statements in the file. */
  readonly containers: readonly ParsedContainer[];
}

export function isDumpFile(file: string): boolean {
  const extension = path.extname(file);
  return extensions.some((known) => known === extension);
}

/**
 * `devices`: null for the number that the dump names. Throws `file-unreadable`, `device-count` and what `parse` throws.
 */
export async function loadDump(file: string, devices: number | null, flags: DumpFlags): Promise<LoadedDump> {
  const text = await readText(file);
  const { container = null, roots } = flags;
  const containers = rankContainers(parseContainers(text, { file, roots }), { file, devices, container });
  return { hosts: containers.map(({ program }) => program), containers };
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    return fail({
      code: "file-unreadable",
      message: "the dump cannot be read",
      place: { kind: "file", path: file },
      found: systemReason(error),
      expected: `a readable file that ends in ${extensions.join(", ")}`,
      help: `check the path; it resolves to ${path.resolve(file)}`,
    });
  }
}

/** The number of devices, from the command line or else from a dump; null if neither has it. */
export async function givenDevices(
  command: Command,
  file: string,
  flags: Options<"devices" | "container" | "roots">,
): Promise<number | null> {
  if (command.getOptionValueSource("devices") === "cli") return flags.devices;
  if (!isDumpFile(file)) return null;
  const { hosts } = await loadDump(file, null, flags);
  return hosts.length;
}

/**
 * Throws `option-value` for lowering options of a dump, which is already lowered. The protocol is allowed, because
 * `record` needs it.
 */
export function requireNotLowered(file: string, given: GivenOptions<LoweringName>): void {
  if (!isDumpFile(file)) return;
  const name = loweringNames.find((each) => each !== "protocol" && given[each] !== undefined);
  if (name === undefined) return;
  const flag = flagOf(name);
  fail({
    code: "option-value",
    message: "a dump is already lowered",
    place: { kind: "option", text: flag },
    found: `${flag} for the dump ${file}`,
    expected: `no lowering option other than ${flagOf("protocol")}`,
    help: `leave ${flag} out, or pass the program file that the dump was made from`,
  });
}

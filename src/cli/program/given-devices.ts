import type { Command } from "commander";
import type { Options } from "../../compile/options.ts";
import { isDumpFile } from "./dump-file.ts";

/** The number of devices, from the command line or else from a dump; null if neither has it. */
export async function givenDevices(
  command: Command,
  file: string,
  flags: Options<"devices" | "container" | "roots">,
): Promise<number | null> {
  if (command.getOptionValueSource("devices") === "cli") return flags.devices;
  if (!isDumpFile(file)) return null;
  const { loadDump } = await import("./load-dump.ts");
  const { hosts } = await loadDump(file, null, flags);
  return hosts.length;
}

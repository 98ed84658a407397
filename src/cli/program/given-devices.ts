import type { Command } from "commander";
import type { Options } from "../../compile/options.ts";
import type { ModelFlags } from "./built-program.ts";
import { isDumpFile, isModelFile } from "./dump-file.ts";

/** The number of devices, from the command line or else from a dump or a model file; null if none has it. */
export async function givenDevices(
  command: Command,
  file: string,
  flags: ModelFlags & Options<"as">,
): Promise<number | null> {
  if (command.getOptionValueSource("devices") === "cli") return flags.devices;
  if (isModelFile(file)) {
    const { devicesOfModel } = await import("./program-of-model.ts");
    return devicesOfModel(file, flags);
  }
  if (!isDumpFile(file)) return null;
  const { loadDump } = await import("./load-dump.ts");
  const { hosts } = await loadDump(file, null, flags);
  return hosts.length;
}

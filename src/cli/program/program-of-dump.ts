/** Loads a dump as a program. A program file does not load this module. */
import { lowerAll } from "../../compile/lower-all.ts";
import type { BuildFlags, BuiltProgram } from "./build-program.ts";
import { requireKnownParameters } from "./known-parameters.ts";
import { loadDump } from "./load-dump.ts";
import { dumpLines } from "./statement-lines.ts";

/** Throws what `loadDump` throws, and `option-unknown`. */
export async function programOfDump(file: string, flags: BuildFlags): Promise<BuiltProgram> {
  requireKnownParameters(file, {}, flags.set);
  const { hosts, containers } = await loadDump(file, flags.devices, flags);
  const { signature } = lowerAll(hosts, { devices: flags.devices });
  return { source: hosts, signature, reference: null, lineOf: dumpLines(containers), containers, params: {} };
}

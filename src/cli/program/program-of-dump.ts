/** Loads a dump as a program. A program file does not load this module. */
import { lowerAll } from "../../compile/lower-all.ts";
import type { HasFusionData } from "../../compile/lower.ts";
import type { ApartBuilding } from "./apart/build-apart.ts";
import { type BuildFlags, type BuiltProgram, fusionSource } from "./built-program.ts";
import { badReference } from "./dump-file.ts";
import { requireKnownParameters } from "../../compile/program/known-parameters.ts";
import { loadDump } from "./load-dump.ts";
import { revived } from "../../compile/program/revive.ts";
import { dumpLines } from "../../host/print/statement-lines.ts";

/**
 * `building`: of the reference; null without one. Throws what `loadDump` and `building` throw, and `option-unknown`.
 */
export async function programOfDump(
  file: string,
  flags: BuildFlags,
  building: ApartBuilding | null,
): Promise<BuiltProgram> {
  if (building === null) requireKnownParameters(file, {}, flags.set);
  const { text, hosts, containers } = await loadDump(file, flags.devices, flags);
  const { signature } = lowerAll(hosts, { devices: flags.devices });
  const { reference, params } =
    building === null ? { reference: null, params: {} } : await referenceFrom(building, flags);
  return {
    source: hosts,
    signature,
    layers: null,
    reference,
    lineOf: dumpLines(containers),
    text,
    containers,
    model: null,
    params,
  };
}

async function referenceFrom(
  building: ApartBuilding,
  { set }: BuildFlags,
): Promise<{ readonly reference: HasFusionData } & Pick<BuiltProgram, "params">> {
  const { source, reference, defaults } = revived(await building.result());
  const fusion = "kind" in source ? source : reference;
  if (fusion === null) {
    return badReference(
      "a file of host programs without a reference",
      "a program file that returns a Fusion",
      "return the Fusion that the dump was made from",
    );
  }
  return { reference: fusionSource(fusion), params: { ...defaults, ...Object.fromEntries(set) } };
}

/**
 * Loads a program file or a dump and builds its program for the given devices and parameters. Diagnostics name the
 * option that gave a bad value.
 */
import { placedWithWarnings } from "../../compile/annotation-warnings.ts";
import { lowerStreams } from "../../compile/lower.ts";
import { lowerAll, requireMeshDevices } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName } from "../../compile/options.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { Building } from "./apart/build-apart.ts";
import { type BuildFlags, type BuiltProgram, sourceOf } from "./built-program.ts";
import { isDumpFile } from "./dump-file.ts";
import { requireKnownScalars } from "./known-scalars.ts";
import { revived } from "../../compile/program/revive.ts";

/**
 * `building`: of a program file, or of a dump's reference. Host programs that have Stream axes left are lowered with
 * `lowering`. Throws what `buildHere`, `loadDump` and `lowerStreams` throw, `program-threw`, `option-unknown` and
 * `mesh-too-large`.
 */
export async function buildProgram(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
  building: Building | null,
): Promise<BuiltProgram> {
  const built = await builtFrom(file, flags, lowering, building);
  const hosts = "data" in built.source ? [] : built.source;
  requireKnownScalars(file, hosts, flags.scalar);
  return built;
}

async function builtFrom(
  file: string,
  flags: BuildFlags,
  lowering: GivenOptions<LoweringName>,
  building: Building | null,
): Promise<BuiltProgram> {
  if (building !== null && !isDumpFile(file)) return fromProgram(building, flags, lowering);
  const { programOfDump } = await import("./program-of-dump.ts");
  return programOfDump(file, flags, building);
}

async function fromProgram(
  building: Building,
  { devices, set }: BuildFlags,
  lowering: GivenOptions<LoweringName>,
): Promise<BuiltProgram> {
  const { source, reference, defaults } = revived(await building.result());
  const used = { lineOf: null, containers: null, params: { ...defaults, ...Object.fromEntries(set) } };
  if ("kind" in source) {
    requireMeshDevices(source.tensors, devices);
    const fusion = sourceOf(source);
    const { placed, warnings } = placedWithWarnings(fusion, lowering);
    for (const warning of warnings) building.print(`${renderDiagnostic(warning)}\n`);
    return { source: fusion, signature: placed, reference: fusion, ...used };
  }
  const lowered = source.map((host, rank) => lowerStreams(host, { ...lowering, rank }));
  const { signature } = lowerAll(lowered, { devices });
  requireMeshDevices(signature.tensors, devices);
  return { source: lowered, signature, reference: reference === null ? null : sourceOf(reference), ...used };
}

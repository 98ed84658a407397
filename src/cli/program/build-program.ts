/**
 * Loads a program file, a dump or a model file and builds its program for the given devices and parameters. Diagnostics name the
 * option that gave a bad value.
 */
import { placedWithWarnings } from "../../compile/annotation-warnings.ts";
import { lowerStreams } from "../../compile/lower.ts";
import { lowerAll, requireMeshDevices } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName } from "../../compile/options.ts";
import { type Diagnostic, DiagnosticError, fail, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { withConstants } from "../../ir/tensor-names.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { Building } from "./apart/build-apart.ts";
import { type BuildFlags, type BuiltProgram, sourceOf } from "./built-program.ts";
import { constantsOf } from "./constants.ts";
import { isDumpFile, isModelFile } from "./dump-file.ts";
import { validateHostProgram } from "../../host/validate/validate.ts";
import { requireKnownScalars } from "./known-scalars.ts";
import { revived } from "../../compile/program/revive.ts";

/**
 * `building`: of a program file, or of a dump's reference. Host programs that have Stream axes left are lowered with
 * `lowering`. Throws what `buildHere`, `loadDump`, `loadModel` and `lowerStreams` throw, `program-threw`, `option-unknown` and
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
  if (isModelFile(file)) return (await import("./program-of-model.ts")).programOfModel(file, flags, lowering);
  if (building !== null && !isDumpFile(file)) return fromProgram(file, building, flags, lowering);
  const { programOfDump } = await import("./program-of-dump.ts");
  return programOfDump(file, flags, building);
}

/** Throws `program-invalid` for host programs that are not of the builder's form, and their findings. */
function requireHosts(file: string, hosts: readonly HostProgram[]): void {
  for (const host of new Set(hosts)) {
    let findings: readonly Diagnostic[] = [];
    try {
      findings = validateHostProgram(host);
    } catch (error) {
      // A program that the builder made was validated there: only one written by hand has another form.
      fail({
        code: "program-invalid",
        message: "the program returns a HostProgram that was not made by a builder",
        place: { kind: "file", path: file },
        found: error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error),
        expected: "a HostProgram as HostProgramBuilder or parse makes it",
        help: "build the host program with HostProgramBuilder",
      });
    }
    if (findings.length > 0) throw new DiagnosticError(findings);
  }
}

async function fromProgram(
  file: string,
  building: Building,
  { devices, set }: BuildFlags,
  lowering: GivenOptions<LoweringName>,
): Promise<BuiltProgram> {
  const { source, reference, defaults } = revived(await building.result());
  const used = { lineOf: null, containers: null, model: null, params: { ...defaults, ...Object.fromEntries(set) } };
  if ("kind" in source) {
    requireMeshDevices(source.tensors, devices);
    const fusion = sourceOf(withConstants(source, await constantsOf(source.tensors)));
    const { placed, warnings } = placedWithWarnings(fusion, lowering);
    for (const warning of warnings) building.print(`${renderDiagnostic(warning)}\n`);
    return { source: fusion, signature: placed, reference: fusion, ...used };
  }
  requireHosts(file, source);
  const lowered = source.map((host, rank) => lowerStreams(host, { ...lowering, rank }));
  const { signature } = lowerAll(lowered, { devices });
  requireMeshDevices(signature.tensors, devices);
  return { source: lowered, signature, reference: reference === null ? null : sourceOf(reference), ...used };
}

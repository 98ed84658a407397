/**
 * Loads a program file or a dump and builds its program for the given devices and parameters. Diagnostics name the
 * option that gave a bad value.
 */
import { placedWithWarnings } from "../../compile/annotation-warnings.ts";
import { type HasFusionData, lowerStreams } from "../../compile/lower.ts";
import { lowerAll, requireMeshDevices, type Signature } from "../../compile/lower-all.ts";
import type { GivenOptions, LoweringName, Options } from "../../compile/options.ts";
import { renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import type { HostProgram } from "../../host/nodes.ts";
import type { Parameters } from "../../host/program-file.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Building } from "./apart/build-apart.ts";
import { isDumpFile } from "./dump-file.ts";
import { requireKnownScalars } from "./known-scalars.ts";
import { revived } from "./apart/revive.ts";
import type { ParsedContainer } from "../../host/parse/parse.ts";
import type { LineOf } from "./statement-lines.ts";

export type BuildFlags = Options<"devices" | "set" | "scalar" | "container" | "roots">;

export interface BuiltProgram {
  /** A Fusion, or the host program of each rank. */
  readonly source: HasFusionData | readonly HostProgram[];
  readonly signature: Signature;
  /** What a check compares with: the Fusion itself, or the one that the program names. */
  readonly reference: HasFusionData | null;
  /** Where the statements stand in a dump; null for a program file. */
  readonly lineOf: LineOf | null;
  /** The containers of a dump, by rank; null for a program file. */
  readonly containers: readonly ParsedContainer[] | null;
  /** The parameters in use, including defaults. */
  readonly params: Parameters;
}

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

export function sourceOf(data: FusionData): HasFusionData {
  return { data: () => data };
}

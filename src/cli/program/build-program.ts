/**
 * Loads a program file or a dump and builds its program for the given devices and parameters. Diagnostics name the
 * option that gave a bad value.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { lowerAll, requireMeshDevices, type Signature } from "../../compile/lower-all.ts";
import type { Options } from "../../compile/options.ts";
import { type HostProgram, isHostProgram } from "../../host/nodes.ts";
import type { ProgramFile } from "../../host/program-file.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { isDumpFile, loadDump } from "./load-dump.ts";
import { loadProgram } from "./load-program.ts";
import { nearest } from "../../support/nearest.ts";
import { dumpLines, type LineOf } from "./statement-lines.ts";
import { inUserCode } from "./user-code.ts";

type BuildFlags = Options<"devices" | "set" | "container" | "roots">;

export interface BuiltProgram {
  /** A Fusion, or the host program of each rank. */
  readonly source: Fusion | readonly HostProgram[];
  readonly signature: Signature;
  /** The reference for `--check`: the Fusion itself, or the one that the program names. */
  readonly reference: Fusion | null;
  /** The lines of statements in a dump; null for a program file. */
  readonly lineOf: LineOf | null;
  /** The parameters in use, including defaults. */
  readonly params: Readonly<Record<string, number>>;
}

/**
 * Throws what `loadProgram` and `loadDump` throw, `option-unknown`, `mesh-too-large`, and diagnostics of the program's
 * calls.
 */
export async function buildProgram(file: string, flags: BuildFlags): Promise<BuiltProgram> {
  return isDumpFile(file) ? fromDump(file, flags) : fromProgram(file, flags);
}

async function fromDump(file: string, flags: BuildFlags): Promise<BuiltProgram> {
  requireKnownParameters(file, {}, flags.set);
  const { hosts, containers } = await loadDump(file, flags.devices, flags);
  const { signature } = lowerAll(hosts, { devices: flags.devices });
  return { source: hosts, signature, reference: null, lineOf: dumpLines(containers), params: {} };
}

async function fromProgram(file: string, { devices, set }: BuildFlags): Promise<BuiltProgram> {
  const { program, maps } = await loadProgram(file);
  requireKnownParameters(file, program.defaults, set);
  const params = Object.fromEntries(set);
  const used = { ...program.defaults, ...params };
  const built = await inUserCode(file, maps, () => program.build({ devices, params }));
  if (!isHostProgram(built)) {
    requireMeshDevices(built.data().tensors, devices);
    return { source: built, signature: built.data(), reference: built, lineOf: null, params: used };
  }
  const { hosts, reference } = await inUserCode(file, maps, () => ({
    hosts: Array.from({ length: devices }, (_, rank) => hostOf(program, { devices, rank, params })),
    reference: program.reference?.({ devices, params }) ?? null,
  }));
  const { signature } = lowerAll(hosts, { devices });
  requireMeshDevices(signature.tensors, devices);
  return { source: hosts, signature, reference, lineOf: null, params: used };
}

function hostOf(program: ProgramFile, request: Parameters<ProgramFile["build"]>[0]): HostProgram {
  const built = program.build(request);
  if (isHostProgram(built)) return built;
  return fail({
    code: "program-invalid",
    message: "the program returns a HostProgram for some ranks and a Fusion for others",
    place: { kind: "call", text: `program.build({ rank: ${request.rank ?? 0} })` },
    found: "a Fusion",
    expected: "a HostProgram for every rank",
    help: "return the same kind of program for all ranks",
  });
}

function requireKnownParameters(
  file: string,
  defaults: ProgramFile["defaults"],
  set: ReadonlyMap<string, number>,
): void {
  const known = Object.keys(defaults);
  const unknown = [...set.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const candidate = nearest(unknown, known);
  fail({
    code: "option-unknown",
    message: `${file} has no parameter ${unknown}`,
    place: { kind: "option", text: `--set ${unknown}=${set.get(unknown)}` },
    found: unknown,
    expected:
      known.length === 0
        ? "no --set, since the program has no parameters"
        : `one of ${known.map((name) => `${name} (default ${defaults[name]})`).join(", ")}`,
    help: candidate === undefined ? "set only parameters that the program declares" : `did you mean ${candidate}?`,
  });
}

/**
 * From a program file to a Fusion: loads the file and builds its program for the asked devices and parameters. What is
 * wrong with them names the option that gave them.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireMeshDevices } from "../executor/mesh-devices.ts";
import type { Fusion } from "../ir/api/fusion.ts";
import type { Program } from "../ir/api/program.ts";
import { loadProgram } from "./load-program.ts";
import { nearest } from "./nearest.ts";
import type { ProgramFlags } from "./program-flags.ts";
import { inUserCode } from "./user-code.ts";

export interface BuiltFusion {
  readonly fusion: Fusion;
  /** The parameters that were used, defaults included. */
  readonly params: Readonly<Record<string, number>>;
}

/** Throws what `loadProgram` throws, `option-unknown`, `mesh-too-large`, and diagnostics of the program's own calls. */
export async function buildFusion(file: string, { devices, set }: ProgramFlags): Promise<BuiltFusion> {
  const { program, maps } = await loadProgram(file);
  requireKnownParameters(file, program, set);
  const params = Object.fromEntries(set);
  const fusion = await inUserCode(file, maps, () => program.build({ devices, params }));
  requireMeshDevices(fusion.data().tensors, devices);
  return { fusion, params: { ...program.defaults, ...params } };
}

function requireKnownParameters(file: string, program: Program, set: ReadonlyMap<string, number>): void {
  const known = Object.keys(program.defaults);
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
        : `one of ${known.map((name) => `${name} (default ${program.defaults[name]})`).join(", ")}`,
    help: candidate === undefined ? "set only parameters that the program declares" : `did you mean ${candidate}?`,
  });
}

/** Evaluates a program file in this thread, and builds its program for the requested devices and parameters. */
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type HostProgram, isHostProgram } from "../../../host/nodes.ts";
import type { ProgramFile } from "../../../host/program-file.ts";
import type { BuiltData } from "../../../compile/program/revive.ts";
import type { BuildRequest } from "./build-request.ts";
import { requireKnownParameters } from "../../../compile/program/known-parameters.ts";
import { mappedSources } from "../mapped-sources.ts";
import { loadProgram } from "../load-program.ts";
import { inUserCode } from "../user-code.ts";

/** Throws what `loadProgram` throws, `option-unknown`, `option-value`, and diagnostics of the program's own calls. */
export async function buildHere({ file, devices, hosts, set }: BuildRequest): Promise<BuiltData> {
  const { program, maps } = await loadProgram(file);
  const { defaults } = program;
  const sources = mappedSources(maps);
  requireKnownParameters(file, defaults, set);
  const params = Object.fromEntries(set);
  return inUserCode(file, maps, () => {
    const built = program.build({ devices, hosts, params });
    if (!isHostProgram(built)) return { source: sources.fusion(built.data()), reference: null, defaults };
    const rest = Array.from({ length: devices - 1 }, (_, i) =>
      hostOf(program, { devices, hosts, rank: i + 1, params }),
    );
    const reference = program.reference?.({ devices, hosts, params }).data() ?? null;
    return {
      source: [built, ...rest].map(sources.host),
      reference: reference === null ? null : sources.fusion(reference),
      defaults,
    };
  });
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

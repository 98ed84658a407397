/** Evaluates a program file in this thread, and builds its program for the requested devices and parameters. */
import { requireKnownParameters } from "../../../compile/program/known-parameters.ts";
import type { BuiltData } from "../../../compile/program/revive.ts";
import { DiagnosticError, fail } from "../../../diagnostics/diagnostic.ts";
import { type HostProgram, isHostProgram } from "../../../host/nodes.ts";
import type { ProgramFile } from "../../../host/program-file.ts";
import { snapshotFusion } from "../../../ir/api/fusion-builder.ts";
import { fusionState } from "../../../ir/api/handle.ts";
import type { Tensor } from "../../../ir/domain.ts";
import type { FusionData } from "../../../ir/fusion-data.ts";
import { type CallSite, siteText } from "../../../support/call-site.ts";
import { type ImportedModules, loadProgram } from "../load-program.ts";
import type { SourceMaps } from "../source-maps.ts";
import { displayPath, inUserCode, UnreadableError } from "../user-code.ts";
import type { BuildAnswer, ThreadRequest } from "./build-request.ts";
import { getOrMake } from "../../../support/invariant.ts";

/** The program, or why there is none. `modules`: what its file imports by these names, the running Braid if omitted. */
export async function answerTo(request: ThreadRequest, modules?: ImportedModules): Promise<BuildAnswer> {
  try {
    return { kind: "built", built: await buildHere(request, modules) };
  } catch (error) {
    if (error instanceof DiagnosticError) return { kind: "refused", diagnostics: error.diagnostics };
    if (error instanceof UnreadableError) return unreadable(request.file);
    return { kind: "failed", stack: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

function unreadable(file: string): BuildAnswer {
  const diagnostic = {
    code: "program-threw",
    message: "the program file threw something that cannot be read",
    place: { kind: "file", path: file },
    found: "a value whose text or whose stack is an error itself, or a method of the language that it replaced",
    expected: "code that runs without an error",
    help: 'throw new Error("what is wrong")',
  } as const;
  return { kind: "refused", diagnostics: [diagnostic] };
}

/** Throws what `loadProgram` throws, `option-unknown`, `option-value`, and diagnostics of the program's own calls. */
async function buildHere({ file, devices, hosts, set }: ThreadRequest, modules?: ImportedModules): Promise<BuiltData> {
  const { program, maps } = await loadProgram(file, modules);
  const { defaults } = program;
  const sources = mappedSources(maps);
  requireKnownParameters(file, defaults, set);
  const params = Object.fromEntries(set);
  return inUserCode(file, maps, () => {
    const built = program.build({ devices, hosts, params });
    if (!isHostProgram(built))
      return { source: sources.fusion(snapshotFusion(built[fusionState])), reference: null, defaults };
    const rest = Array.from({ length: devices - 1 }, (_, i) =>
      hostOf(program, { devices, hosts, rank: i + 1, params }),
    );
    const reference = program.reference?.({ devices, hosts, params }) ?? null;
    return {
      source: [built, ...rest].map(sources.host),
      reference: reference === null ? null : sources.fusion(snapshotFusion(reference[fusionState])),
      defaults,
    };
  });
}

function hostOf(program: ProgramFile, request: Parameters<ProgramFile["build"]>[0]): HostProgram {
  const built = program.build(request);
  if (isHostProgram(built)) return built;
  return fail("program-invalid", "the program returns a HostProgram for some ranks and a Fusion for others", {
    place: { kind: "call", text: `program.build({ rank: ${request.rank ?? 0} })` },
    found: "a Fusion",
    expected: "a HostProgram for every rank",
    help: "return the same kind of program for all ranks",
  });
}

// The lines of a built program's tensors, in the file that the user wrote and as a path that the user would write.

interface MappedSources {
  readonly fusion: (fusion: FusionData) => FusionData;
  readonly host: (host: HostProgram) => HostProgram;
}

function mappedSources(maps: SourceMaps): MappedSources {
  // A loop calls from one place many times.
  const known = new Map<string, CallSite>();
  const mapped = (site: CallSite): CallSite => {
    const key = siteText(site);
    return getOrMake(known, key, () => ({ path: displayPath(site.path), ...maps.original(site.path, site) }));
  };
  const tensor = (each: Tensor): Tensor => {
    if (each.origin === undefined) return each;
    const { source, annotations, ...origin } = each.origin;
    const lines = {
      ...(source === undefined ? {} : { source: mapped(source) }),
      ...(annotations === undefined
        ? {}
        : { annotations: annotations.map((call) => ({ ...call, source: mapped(call.source) })) }),
    };
    return { ...each, origin: { ...origin, ...lines } };
  };
  const fusion = (data: FusionData): FusionData => ({ ...data, tensors: data.tensors.map(tensor) });
  return {
    fusion,
    host: (host) => ({
      ...host,
      ...(host.calls === undefined ? {} : { calls: host.calls.map((site) => (site === null ? null : mapped(site))) }),
      tensors: host.tensors.map(tensor),
      units: host.units.map((unit) => ({ ...unit, fusion: fusion(unit.fusion) })),
    }),
  };
}

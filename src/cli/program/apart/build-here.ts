/** Evaluates a program file in this thread, and builds its program for the requested devices and parameters. */
import { requireKnownParameters } from "../../../compile/program/known-parameters.ts";
import type { BuiltData } from "../../../compile/program/revive.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type HostProgram, isHostProgram } from "../../../host/nodes.ts";
import type { ProgramFile } from "../../../host/program-file.ts";
import { snapshotFusion } from "../../../ir/api/fusion-builder.ts";
import { fusionState } from "../../../ir/api/handle.ts";
import type { Tensor } from "../../../ir/domain.ts";
import type { FusionData } from "../../../ir/fusion-data.ts";
import { type CallSite, siteText } from "../../../support/call-site.ts";
import { loadProgram } from "../load-program.ts";
import type { SourceMaps } from "../source-maps.ts";
import { displayPath, inUserCode } from "../user-code.ts";
import type { ThreadRequest } from "./build-request.ts";
import { getOrMake } from "../../../support/invariant.ts";

/** Throws what `loadProgram` throws, `option-unknown`, `option-value`, and diagnostics of the program's own calls. */
export async function buildHere({ file, devices, hosts, set }: ThreadRequest): Promise<BuiltData> {
  const { program, maps } = await loadProgram(file);
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
      tensors: host.tensors.map(tensor),
      units: host.units.map((unit) => ({ ...unit, fusion: fusion(unit.fusion) })),
    }),
  };
}

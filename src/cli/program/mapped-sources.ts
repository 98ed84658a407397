/** The lines of a built program's tensors, in the file that the user wrote and as a path that the user would write. */
import type { HostProgram } from "../../host/nodes.ts";
import type { Tensor } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type CallSite, siteText } from "../../support/call-site.ts";
import type { SourceMaps } from "./source-maps.ts";
import { displayPath } from "./user-code.ts";

export interface MappedSources {
  readonly fusion: (fusion: FusionData) => FusionData;
  readonly host: (host: HostProgram) => HostProgram;
}

export function mappedSources(maps: SourceMaps): MappedSources {
  // A loop calls from one place many times.
  const known = new Map<string, CallSite>();
  const mapped = (site: CallSite): CallSite => {
    const key = siteText(site);
    const found = known.get(key) ?? { path: displayPath(site.path), ...maps.original(site.path, site) };
    known.set(key, found);
    return found;
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

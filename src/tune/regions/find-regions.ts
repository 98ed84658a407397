/** The regions of a source whose schedules can be chosen apart: those of a Fusion. */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import type { FusionRegion } from "../../compile/lower-regions.ts";
import { decomposedData, type HasFusionData, resolveLoweringOptions } from "../../compile/lower.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Statement } from "../../host/nodes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { segment } from "../../passes/segment/segment.ts";
import { exchangeReductions } from "../../passes/stream-loops/exchange-reductions.ts";
import type { StreamLoop } from "../../passes/stream-loops/group/group-loops.ts";
import { loopsOf } from "../../passes/stream-loops/stream-parallel-type.ts";
import { type Decomposed, placingNames } from "../../passes/pipeline.ts";
import { withLoopGathers } from "./loop-gathers.ts";
import { splitRegions } from "./split-regions.ts";

export interface FoundRegions {
  readonly placed: FusionData;
  readonly regions: readonly FusionRegion[];
}

/** Null for a Fusion that cannot be lowered with these options. */
export function findRegions(fusion: HasFusionData, given: Partial<LoweringOptions>): FoundRegions | null {
  try {
    const { placed, decomposed } = withGathers(decomposedData(fusion, given), given);
    const groups = loopForms(given).flatMap((form) => groupsOf(decomposed, { ...given, ...form }));
    return { placed, regions: splitRegions({ placed, decomposed, groups }) };
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

function withGathers(lowered: Decomposed, given: Partial<LoweringOptions>): Decomposed {
  const placed = withLoopGathers(lowered.placed, lowered.decomposed);
  if (placed === lowered.placed) return lowered;
  const disablePass = [...(given.disablePass ?? []), ...placingNames];
  return { ...decomposedData({ data: () => placed }, { ...given, disablePass }), placed };
}

/** Loops of collectives may have other ops than loops of sends and receives. */
function loopForms({ p2p }: Partial<LoweringOptions>): readonly Partial<LoweringOptions>[] {
  return p2p === undefined ? [{ p2p: "broadcast" }, { p2p: "rotated" }] : [{}];
}

function groupsOf(decomposed: FusionData, given: Partial<LoweringOptions>): readonly (Statement | StreamLoop)[] {
  const context = { rank: 0, options: resolveLoweringOptions(given) };
  const segmented = exchangeReductions.run(segment.run(decomposed, context), context);
  try {
    return loopsOf(segmented, context.options);
  } catch (error) {
    if (error instanceof DiagnosticError) return [];
    throw error;
  }
}

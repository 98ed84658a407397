/** The communication that shardings make necessary, before it becomes a host program. */
import type { FusionData } from "../ir/fusion-data.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import { listReshardings, type Resharding } from "../passes/reshard/list-reshardings.ts";
import { decomposedData, type HasFusionData, type LowerOptions, lowerRanks } from "./lower.ts";
import { type NamedNumbers, numbersByName } from "./record.ts";

export interface ReshardingsOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** Sizes of symbolic extents in elements, by printed name (`i0`). */
  readonly sizes?: NamedNumbers;
}

/**
 * What moves between devices and why, in the order of the ops: each entry is one collective, or one per chunk. Bytes
 * are null where a size is unknown. Throws what `lower` throws.
 */
export function reshardings(fusion: HasFusionData, options: ReshardingsOptions = {}): readonly Resharding[] {
  const { sizes, ...lowering } = options;
  return listed(fusion, lowerRanks(fusion, 1, lowering).decomposed, sizes);
}

/** The same of a Fusion that lowering takes with these options: not all of its passes run again. */
export function reshardingsOfLowered(fusion: HasFusionData, options: ReshardingsOptions): readonly Resharding[] {
  const { sizes, ...lowering } = options;
  return listed(fusion, decomposedData(fusion, lowering).decomposed, sizes);
}

function listed(fusion: HasFusionData, decomposed: FusionData, sizes: NamedNumbers = {}): readonly Resharding[] {
  const before = fusion.data();
  const known = new Map([...sizesFromMeshes(before.tensors), ...numbersByName(sizes)]);
  return listReshardings(decomposed, before, (name) => known.get(name));
}

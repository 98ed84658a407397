/** The communication that shardings make necessary, before it becomes a host program. */
import { sizesFromMeshes } from "../ir/sizes.ts";
import { listReshardings, type Resharding } from "../passes/reshard/list-reshardings.ts";
import { type HasFusionData, type LowerOptions, lowerRanks } from "./lower.ts";
import { type NamedNumbers, numbersByName } from "./record.ts";

export interface ReshardingsOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** Sizes of symbolic extents in elements, by printed name (`i0`). */
  readonly sizes?: NamedNumbers;
}

/**
 * What moves between devices and why, in the order of the ops: each entry is one collective, or one per chunk. Bytes
 * are null where a size is unknown. Throws what `lower` throws.
 */
export function reshardings(
  fusion: HasFusionData,
  { sizes = {}, ...options }: ReshardingsOptions = {},
): readonly Resharding[] {
  const before = fusion.data();
  const { decomposed } = lowerRanks(fusion, 1, options);
  const known = new Map([...sizesFromMeshes(before.tensors), ...numbersByName(sizes)]);
  return listReshardings(decomposed, before, (name) => known.get(name));
}

/**
 * Chunks of an axis, as ShardByStream binds them: ceil(extent / parts) long; later ones may be shorter or empty.
 *
 *   axis without a DID type        chunk i of the whole axis
 *   [Stream parts, DID, ..]        chunk i of the whole axis, of which each device has its share
 *   [DID, ..]                      chunk i of the device's share, counted as if that were the longest share
 */
import { countIn, heldRuns, intersection, onPositions, type Runs, runsBetween } from "../ir/axis-runs.ts";
import { sizedParts } from "../ir/axis-shards.ts";
import { isDID, type Tensor, withoutReductions } from "../ir/domain.ts";
import { at } from "../support/invariant.ts";
import type { Chunk } from "./actual-sizes.ts";
import { indicesOn } from "./local-layout.ts";
import type { Recorder } from "./recorder.ts";
import { extentsOf, tensorOf } from "./tensors.ts";

/** The indices of an axis of the declared tensor that lie below `extent` and on `rank`. */
export function declaredRuns(recorder: Recorder, tensor: Tensor, axis: number, extent: number, rank: number): Runs {
  const own = at(withoutReductions(tensor.domain.logical), axis);
  const size = at(extentsOf(recorder, tensor), axis);
  const runs = indicesOn(tensor, own, size, rank);
  return extent < size ? intersection(runs, runsBetween(0, extent)) : runs;
}

/** The indices of the chunk on `rank`, as indices of the axis that it is a chunk of. */
export function chunkRuns(recorder: Recorder, { of, extent, axis, parts, indexOn }: Chunk, rank: number): Runs {
  const tensor = tensorOf(recorder, of);
  const index = indexOn(rank);
  const share = declaredRuns(recorder, tensor, axis, extent, rank);
  const own = at(withoutReductions(tensor.domain.logical), axis);
  const size = at(extentsOf(recorder, tensor), axis);
  const [first, ...inner] = sizedParts(tensor.domain, own, size);
  const isOutermost = first !== undefined && !isDID(first.parallelType) && first.extent === parts;
  if ((first !== undefined && isDID(first.parallelType)) || inner.some(({ parallelType }) => isDID(parallelType))) {
    if (!isOutermost) {
      const length = Math.ceil(countIn(indicesOn(tensor, own, size, null)) / parts);
      return onPositions(share, index * length, (index + 1) * length);
    }
    const second = heldRuns(tensor.domain, own, size, ({ id }) => (id === first.id ? 1 : null))[0];
    const length = second?.start ?? size;
    return intersection(share, runsBetween(index * length, (index + 1) * length));
  }
  const length = Math.ceil(size / parts);
  return intersection(share, runsBetween(index * length, (index + 1) * length));
}

/** How many elements the chunk has over all devices. */
export function chunkExtent(recorder: Recorder, chunk: Chunk): number {
  const { domain, mesh } = tensorOf(recorder, chunk.of);
  const axis = at(withoutReductions(domain.logical), chunk.axis);
  const types = sizedParts(domain, axis, 0).flatMap(({ parallelType }) => (isDID(parallelType) ? [parallelType] : []));
  const seen = new Set<string>();
  let count = 0;
  for (const device of mesh?.devices ?? [0]) {
    const share = types.map((type) => mesh?.coordinate(device, type)).join(",");
    if (seen.has(share)) continue;
    seen.add(share);
    count += countIn(chunkRuns(recorder, chunk, device));
  }
  return count;
}

/**
 * Chunks of an axis, as ShardByStream binds them: ceil(extent / parts) long; later ones may be shorter or empty.
 *
 *   axis without a DID type        chunk i of the whole axis
 *   [Stream parts, DID, ..]        chunk i of the whole axis, of which each device has its share
 *   [DID, ..]                      chunk i of the block that the outermost DID types leave each device, counted as if
 *                                  that were the longest block
 *
 * The axis of a chunk tensor has the longest chunk's length, in every block if there are several:
 *
 *   [i{13} split outer 2 DIDx, outer 2]      blocks 0 .. 6 | 7 .. 12, chunks of 4: 0 .. 3, 4 .. 6 | 7 .. 10, 11 .. 12
 *   chunk 1                                  [i{8} split outer 2 DIDx], of which 0 .. 2 | 4 .. 5 exist
 */
import { cutOf, heldRuns, sizedCut } from "../ir/parts.ts";
import { countIn, intersection, onPositions, type Runs, runsBetween } from "../ir/runs.ts";
import { didTypesOf, outermostTypes } from "../ir/shards.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../ir/domain.ts";
import { at } from "../support/invariant.ts";
import { isShared } from "./actual.ts";
import type { Chunk, ChunkNumber } from "./actual-sizes.ts";
import { coordinateOn } from "./local-layout.ts";
import type { Recorder } from "./recorder.ts";
import { extentsOf, tensorOf } from "./tensors.ts";

/** The indices of an axis of the declared tensor that exist for `rank`: all, but for chunks and what comes from them. */
export function existing(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  const actual = recorder.actuals.get(tensor.id);
  const size = at(extentsOf(recorder, tensor), axis);
  return actual?.exists.get(axis)?.(rank) ?? runsBetween(0, Math.min(size, actual?.extents[axis] ?? size));
}

/** The indices of an axis of the declared tensor that `rank` holds. */
export function runsOn(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  return intersection(declaredRuns(recorder, tensor, axis, rank), existing(recorder, tensor, axis, rank));
}

/** The indices of an axis of the declared tensor that `rank` holds, if they exist. */
export function declaredRuns(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  return recorder.common.shares(tensor, axisOf(tensor, axis), at(extentsOf(recorder, tensor), axis), rank);
}

/** The chunk of the tensor's axis as it is now. */
export function chunkOf(recorder: Recorder, tensor: Tensor, number: ChunkNumber): Chunk {
  const { axis, parts, indexOn } = number;
  const size = at(extentsOf(recorder, tensor), axis);
  const own = axisOf(tensor, axis);
  const cut = sizedCut(tensor.domain, own, size);
  const types = outermostTypes(cut);
  const actual = recorder.actuals.get(tensor.id);
  const [extent, exists] = [Math.min(size, actual?.extents[axis] ?? size), actual?.exists.get(axis)];
  const blockOn = (rank: number | null): Runs =>
    heldRuns(cut, (type) => (isDID(type) && types.includes(type) ? coordinateOn(tensor, type, rank) : null));
  const length = Math.ceil(countIn(blockOn(null)) / parts);
  const share = (rank: number): Runs => recorder.common.shares(tensor, own, size, rank);
  const blocks = (rank: number): Runs => intersection(blockOn(rank), exists?.(rank) ?? runsBetween(0, extent));
  const inBlock = (rank: number): Runs => {
    const start = indexOn(rank) * length;
    return onPositions(blocks(rank), start, start + length);
  };
  const runs = (rank: number): Runs => intersection(share(rank), inBlock(rank));
  // Where no DID type cuts the axis, all ranks have the same indices of a chunk.
  const isWhole = number.isSameOnAll && exists === undefined && !isShared(tensor, own);
  const whole = isWhole ? runs(0) : null;
  return {
    ...number,
    of: tensor.id,
    inBlock,
    share: (rank) => intersection(share(rank), blocks(rank)),
    runs: whole === null ? runs : () => whole,
    exists: (rank) => {
      const block = types.reduce(
        (outer, type) => outer * (tensor.mesh?.size(type) ?? 1) + coordinateOn(tensor, type, rank),
        0,
      );
      return runsBetween(block * length, block * length + countIn(inBlock(rank)));
    },
  };
}

/** How many elements the chunk has over all devices. */
export function chunkExtent(recorder: Recorder, { of, axis, runs, inBlock, isSameOnAll }: Chunk): number {
  const { domain, mesh } = tensorOf(recorder, of);
  const own = at(withoutReductions(domain.logical), axis);
  const cut = cutOf(domain, own);
  // The devices have each index of the axis once.
  if (isSameOnAll && outermostTypes(cut).length === 0) return countIn(inBlock(0));
  const types = didTypesOf(cut);
  const seen = new Set<string>();
  let count = 0;
  for (const device of mesh?.devices ?? [0]) {
    const share = types.map((type) => mesh?.coordinate(device, type)).join(",");
    if (seen.has(share)) continue;
    seen.add(share);
    count += countIn(runs(device));
  }
  return count;
}

function axisOf({ domain }: Tensor, axis: number): IterDomain {
  return at(withoutReductions(domain.logical), axis);
}

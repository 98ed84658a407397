/**
 * Views of views: cut, permute, broadcast or reshape a strided box without moving an element. Axis numbers count the
 * view's axes.
 */
import { contiguousStrides, isEmpty, narrowView, sameNumbers, type View, endOfView } from "../commands/view.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../ir/domain.ts";
import { cutOf, heldRuns, sizedCut } from "../ir/parts.ts";
import { countIn, intersection, onPositions, type Runs, runsBetween } from "../ir/runs.ts";
import { didTypesOf, outermostTypes } from "../ir/shards.ts";
import { dtypes } from "../numerics/dtype.ts";
import { at } from "../support/invariant.ts";
import type { Chunk, ChunkNumber } from "./actual-sizes.ts";
import { isCutByDevices } from "./actual.ts";
import { movedView, requireSameDistance } from "./alike/alike.ts";
import { coordinateOn } from "./local-layout.ts";
import type { Recorder } from "./recorder.ts";
import { localExtents, tensorOf } from "./tensors.ts";

/** The view at one valid index of `axis`, without that axis. */
export function selectView(view: View, axis: number, index: number): View {
  return {
    ...view,
    offset: view.offset + index * at(view.strides, axis) * dtypes[view.dtype].bytes,
    shape: view.shape.toSpliced(axis, 1),
    strides: view.strides.toSpliced(axis, 1),
  };
}

/** As `selectView`, at one index for each rank that is recorded at once. */
export function selectOnEach(view: View, axis: number, indices: readonly number[]): View {
  const first = at(indices, 0);
  const selected = selectView(view, axis, first);
  if (indices.every((index) => index === first)) return selected;
  const step = at(view.strides, axis) * dtypes[view.dtype].bytes;
  return movedView(
    selected,
    indices.map((index) => (index - first) * step),
  );
}

/** As `narrowView`, at one start for each rank that is recorded at once. */
export function narrowOnEach(view: View, axis: number, starts: readonly number[], length: number): View {
  const first = at(starts, 0);
  const narrowed = narrowView(view, axis, first, length);
  if (starts.every((start) => start === first)) return narrowed;
  const step = at(view.strides, axis) * dtypes[view.dtype].bytes;
  return movedView(
    narrowed,
    starts.map((start) => (start - first) * step),
  );
}

/** The view of which an index along `axis` is as far from the next as `step` were. */
export function strideView(view: View, axis: number, step: number): View {
  return step === 1 ? view : { ...view, strides: view.strides.with(axis, at(view.strides, axis) * step) };
}

/** Axis i of the result is axis `order[i]` of the view. */
export function permuteView(view: View, order: readonly number[]): View {
  return {
    ...view,
    shape: order.map((axis) => at(view.shape, axis)),
    strides: order.map((axis) => at(view.strides, axis)),
  };
}

/** Inserts an axis of one element before `axis`. */
export function insertAxis(view: View, axis: number): View {
  return { ...view, shape: view.shape.toSpliced(axis, 0, 1), strides: view.strides.toSpliced(axis, 0, 1) };
}

/** Drops axes of one element, except among the first `kept`. */
export function squeezeView(view: View, kept = 0): View {
  if (!view.shape.includes(1, kept)) return view;
  const axes = view.shape.flatMap((extent, axis) => (axis < kept || extent !== 1 ? [axis] : []));
  return permuteView(view, axes);
}

/** Splits `axis` in three: `outer` runs of `count` equal blocks. */
export function cutAxis(view: View, axis: number, outer: number, count: number): View {
  const inner = at(view.shape, axis) / (outer * count);
  const stride = at(view.strides, axis);
  return {
    ...view,
    shape: view.shape.toSpliced(axis, 1, outer, count, inner),
    strides: view.strides.toSpliced(axis, 1, stride * count * inner, stride * inner, stride),
  };
}

/** Moves `axis` outermost and drops all other axes of one element. */
export function splitView(view: View, axis: number): View {
  const others = view.shape.flatMap((_, other) => (other === axis ? [] : [other]));
  return squeezeView(permuteView(view, [axis, ...others]), 1);
}

/**
 * Broadcasts axes of one element, and missing leading axes, to `shape` with stride 0. Null if another axis differs in
 * extent from `shape`.
 */
export function stretchView(view: View, shape: readonly number[]): View | null {
  const missing = shape.length - view.shape.length;
  if (missing < 0) return null;
  const strides: number[] = [];
  for (const [axis, extent] of shape.entries()) {
    const own = axis < missing ? 1 : at(view.shape, axis - missing);
    if (own !== extent && own !== 1) return null;
    strides.push(own !== extent || axis < missing ? 0 : at(view.strides, axis - missing));
  }
  return { ...view, shape, strides };
}

/**
 * The same elements in row-major order under another shape with as many elements, or null if that needs a copy. Each
 * run of axes that is contiguous in memory is regrouped separately, as in PyTorch's computeStride
 * (aten/src/ATen/TensorUtils.cpp).
 */
export function reshapeView(view: View, shape: readonly number[]): View | null {
  if (isEmpty(view)) return isEmpty({ shape }) ? { ...view, shape, strides: contiguousStrides(shape) } : null;
  const strides = shape.map(() => 1);
  let target = shape.length - 1;
  let base = view.strides.at(-1) ?? 1;
  let run = 1;
  let taken = 1;
  for (let source = view.shape.length - 1; source >= 0; source--) {
    run *= at(view.shape, source);
    const outer = source - 1;
    if (outer >= 0 && (view.shape[outer] === 1 || view.strides[outer] === run * base)) continue;
    while (target >= 0 && (taken < run || shape[target] === 1)) {
      strides[target] = taken * base;
      taken *= at(shape, target);
      target--;
    }
    if (taken !== run) return null;
    if (outer < 0) break;
    base = at(view.strides, outer);
    run = 1;
    taken = 1;
  }
  // The remaining axes of the new shape must have one element, as in the new shape of a scalar.
  return shape.slice(0, target + 1).every((extent) => extent === 1) ? { ...view, shape, strides } : null;
}

/** Whether two views list the same elements in the same order. The stride of an axis of one element is ignored. */
export function sameElements(a: View, b: View): boolean {
  requireSameDistance(a, b);
  const sameStride = (extent: number, axis: number): boolean => extent === 1 || a.strides[axis] === b.strides[axis];
  const sameStart = a.buffer === b.buffer && a.offset === b.offset && a.dtype === b.dtype;
  return sameStart && sameNumbers(a.shape, b.shape) && a.shape.every(sameStride);
}

/** Whether two views may share a byte: whether their spans in one buffer overlap. */
export function mayOverlap(a: View, b: View): boolean {
  if (isEmpty(a) || isEmpty(b)) return false;
  requireSameDistance(a, b);
  return a.buffer === b.buffer && a.offset < endOfView(b, b.offset) && b.offset < endOfView(a, a.offset);
}

// Chunks of an axis, as ShardByStream binds them: ceil(extent / parts) long; later ones may be shorter or empty.
//
//   axis without a DID type        chunk i of the whole axis
//   [Stream parts, DID, ..]        chunk i of the whole axis, of which each device has its share
//   [DID, ..]                      chunk i of the block that the outermost DID types leave each device, counted as if
//                                  that were the longest block
//
// The axis of a chunk tensor has the longest chunk's length, in every block if there are several:
//
//   [i{13} split outer 2 DIDx, outer 2]      blocks 0 .. 6 | 7 .. 12, chunks of 4: 0 .. 3, 4 .. 6 | 7 .. 10, 11 .. 12
//   chunk 1                                  [i{8} split outer 2 DIDx], of which 0 .. 2 | 4 .. 5 exist

/** The indices of an axis of the declared tensor that exist for `rank`: all, but for chunks and what comes from them. */
export function existing(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  const actual = recorder.actuals.get(tensor.id);
  const size = at(localExtents(recorder, tensor), axis);
  return actual?.exists.get(axis)?.(rank) ?? runsBetween(0, Math.min(size, actual?.extents[axis] ?? size));
}

/** The indices of an axis of the declared tensor that `rank` holds. */
export function runsOn(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  return intersection(declaredRuns(recorder, tensor, axis, rank), existing(recorder, tensor, axis, rank));
}

/** The indices of an axis of the declared tensor that `rank` holds, if they exist. */
export function declaredRuns(recorder: Recorder, tensor: Tensor, axis: number, rank: number): Runs {
  return recorder.common.shares(tensor, axisOf(tensor, axis), at(localExtents(recorder, tensor), axis), rank);
}

/** The chunk of the tensor's axis as it is now. */
export function chunkOf(recorder: Recorder, tensor: Tensor, number: ChunkNumber): Chunk {
  const { axis, parts, indexOn } = number;
  const size = at(localExtents(recorder, tensor), axis);
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
  const isWhole = number.isSameOnAll && exists === undefined && !isCutByDevices(tensor, own);
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

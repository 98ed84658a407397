/**
 * Converts whole tensors to local buffers and back, according to the tensor's sharding. Of each axis a device holds the
 * runs of indices that ir/axis-runs.ts says, in ascending order. Local buffers are contiguous in the order of the
 * allocation domain.
 */
import { elementCount, type Tensor, tensorBytes } from "../numerics/tensor/host-tensor.ts";
import { contiguousStrides } from "../commands/view.ts";
import type { Runs } from "../ir/runs.ts";
import { shardsOf } from "../ir/shards.ts";
import { type Tensor as IrTensor, withoutReductions } from "../ir/domain.ts";
import { dtypes } from "../numerics/dtype.ts";
import { indicesOn, layoutOfShape } from "../record/local-layout.ts";
import { at } from "../support/invariant.ts";
import { copyBytes } from "../support/webassembly.ts";

/** The shape of the device's shard: the number of indices of each axis that it holds. */
export function shardShape(tensor: IrTensor, shape: readonly number[], rank: number): readonly number[] {
  return layoutOfShape(tensor, shape, rank).shape;
}

/** Cuts `rank`'s local buffer out of the bytes of the whole row-major tensor of shape `shape`. */
export function shardInto(
  tensor: IrTensor,
  shape: readonly number[],
  whole: Uint8Array,
  rank: number,
  local: Uint8Array,
): void {
  const { bytes } = dtypes[tensor.dtype];
  for (const box of boxesOf(tensor, shape, rank)) {
    copyBox({ bytes: whole, ...box.whole }, { bytes: local, ...box.local }, box.shape, bytes);
  }
}

/** The same as new bytes. */
export function shardOf(tensor: IrTensor, shape: readonly number[], whole: Uint8Array, rank: number): Uint8Array {
  const local = new Uint8Array(elementCount(shardShape(tensor, shape, rank)) * dtypes[tensor.dtype].bytes);
  shardInto(tensor, shape, whole, rank, local);
  return local;
}

/** Writes `rank`'s local buffer into its place in the whole row-major tensor. */
export function unshardInto(
  tensor: IrTensor,
  shape: readonly number[],
  local: Uint8Array,
  rank: number,
  whole: Uint8Array,
): void {
  const { bytes } = dtypes[tensor.dtype];
  for (const box of boxesOf(tensor, shape, rank)) {
    copyBox({ bytes: local, ...box.local }, { bytes: whole, ...box.whole }, box.shape, bytes);
  }
}

/**
 * Sets of devices, each of which holds every part once. The k-th replica of a part, in mesh order, is in the k-th set.
 */
export function replicas(tensor: IrTensor): readonly (readonly number[])[] {
  const { mesh } = tensor;
  if (mesh === null) return [[0]];
  const types = shardsOf(tensor).map(({ type }) => type);
  const counts = new Map<string, number>();
  const sets: number[][] = [];
  for (const device of mesh.devices) {
    const part = types.map((type) => mesh.coordinate(device, type)).join(",");
    const earlier = counts.get(part) ?? 0;
    counts.set(part, earlier + 1);
    (sets[earlier] ??= []).push(device);
  }
  return sets;
}

/** The first set of `replicas`. */
export function holders(tensor: IrTensor): readonly number[] {
  return at(replicas(tensor), 0);
}

/** A box of elements in both layouts; offsets and strides in bytes. */
interface Box {
  readonly shape: readonly number[];
  readonly whole: Omit<BoxSide, "bytes">;
  readonly local: Omit<BoxSide, "bytes">;
}

/** The local part of a whole tensor on one device: a box for each combination of the runs of its axes. */
function boxesOf(tensor: IrTensor, shape: readonly number[], rank: number): readonly Box[] {
  const { bytes } = dtypes[tensor.dtype];
  const layout = layoutOfShape(tensor, shape, rank);
  const local = byteStrides(layout.strides, bytes);
  const whole = byteStrides(contiguousStrides(shape), bytes);
  const start: Box = { shape: [], whole: { offset: 0, strides: whole }, local: { offset: 0, strides: local } };
  return withoutReductions(tensor.domain.logical).reduce<readonly Box[]>(
    (made, axis, position) => {
      const runs = indicesOn(tensor, axis, at(shape, position), rank);
      return made.flatMap((box) => cutBox(box, runs, at(whole, position), at(local, position)));
    },
    [start],
  );
}

/** The box with one more axis, for each of its runs. */
function cutBox(box: Box, runs: Runs, whole: number, local: number): readonly Box[] {
  let position = 0;
  return runs.map(({ start, stop }) => {
    const made = {
      shape: [...box.shape, stop - start],
      whole: { ...box.whole, offset: box.whole.offset + start * whole },
      local: { ...box.local, offset: box.local.offset + position * local },
    };
    position += stop - start;
    return made;
  });
}

/** Fills `rank`'s local buffer from its row-major shard of a tensor whose whole shape is `shape`. */
export function packShardInto(
  tensor: IrTensor,
  shape: readonly number[],
  shard: Tensor,
  rank: number,
  local: Uint8Array,
): void {
  const { rowMajor, buffer } = shardSides(tensor, shape, tensorBytes(shard), local, rank);
  copyBox(rowMajor, buffer, shard.shape, dtypes[tensor.dtype].bytes);
}

/** The same as new bytes. */
export function packShard(tensor: IrTensor, shape: readonly number[], shard: Tensor, rank: number): Uint8Array {
  const local = new Uint8Array(tensorBytes(shard).length);
  packShardInto(tensor, shape, shard, rank, local);
  return local;
}

/** Fills `rank`'s row-major shard from the bytes of its local buffer; `shape` is the whole tensor's. */
export function unpackShard(
  tensor: IrTensor,
  shape: readonly number[],
  local: Uint8Array,
  shard: Tensor,
  rank: number,
): void {
  const { rowMajor, buffer } = shardSides(tensor, shape, tensorBytes(shard), local, rank);
  copyBox(buffer, rowMajor, shard.shape, dtypes[tensor.dtype].bytes);
}

function shardSides(
  tensor: IrTensor,
  shape: readonly number[],
  shard: Uint8Array,
  local: Uint8Array,
  rank: number,
): { readonly rowMajor: BoxSide; readonly buffer: BoxSide } {
  const { bytes } = dtypes[tensor.dtype];
  const layout = layoutOfShape(tensor, shape, rank);
  return {
    rowMajor: { bytes: shard, offset: 0, strides: byteStrides(contiguousStrides(layout.shape), bytes) },
    buffer: { bytes: local, offset: 0, strides: byteStrides(layout.strides, bytes) },
  };
}

function byteStrides(strides: readonly number[], elementBytes: number): readonly number[] {
  return strides.map((stride) => stride * elementBytes);
}

/** A box of a byte array. */
interface BoxSide {
  readonly bytes: Uint8Array;
  /** In bytes. */
  readonly offset: number;
  /** Strides in bytes, one per axis of the box. */
  readonly strides: readonly number[];
}

/** Runs of fewer bytes are copied word by word, because `TypedArray.set` costs more than it saves. */
const shortRun = 64;

/**
 * Copies a strided box between two byte arrays, which must not overlap. `shape` counts elements of `elementBytes`
 * bytes. Trailing axes that are contiguous on both sides are one run.
 */
function copyBox(from: BoxSide, to: BoxSide, shape: readonly number[], elementBytes: number): void {
  let run = elementBytes;
  let rank = shape.length;
  while (rank > 0) {
    const extent = shape[rank - 1] ?? 1;
    const joins = from.strides[rank - 1] === run && to.strides[rank - 1] === run;
    if (extent !== 1 && !joins) break;
    run *= extent;
    rank--;
  }
  const copyRuns = run < shortRun ? shortRuns(from.bytes, to.bytes, elementBytes) : longRuns(from.bytes, to.bytes);
  const walk = (axis: number, source: number, target: number): void => {
    const extent = axis < rank ? (shape[axis] ?? 0) : 1;
    const [sourceStride, targetStride] = [from.strides[axis] ?? 0, to.strides[axis] ?? 0];
    if (axis >= rank - 1) {
      copyRuns(source, sourceStride, target, targetStride, extent, run);
      return;
    }
    for (let i = 0; i < extent; i++) walk(axis + 1, source + i * sourceStride, target + i * targetStride);
  };
  walk(0, from.offset, to.offset);
}

/** Copies `count` runs of `run` bytes; places and strides in bytes. */
type CopyRuns = (
  source: number,
  sourceStride: number,
  target: number,
  targetStride: number,
  count: number,
  run: number,
) => void;

function longRuns(from: Uint8Array, to: Uint8Array): CopyRuns {
  return (source, sourceStride, target, targetStride, count, run) => {
    for (let i = 0; i < count; i++) {
      const start = source + i * sourceStride;
      copyBytes(from.subarray(start, start + run), to, target + i * targetStride);
    }
  };
}

/** In words of up to four bytes, as integers, so that no bit of a NaN changes. */
function shortRuns(from: Uint8Array, to: Uint8Array, elementBytes: number): CopyRuns {
  const aligned = Math.min(4, elementBytes);
  const word = from.byteOffset % aligned === 0 && to.byteOffset % aligned === 0 ? aligned : 1;
  const [source, target] = [inWords(from, word), inWords(to, word)];
  return (start, sourceStride, end, targetStride, count, run) => {
    const words = run / word;
    for (let i = 0; i < count; i++) {
      const [first, firstTo] = [(start + i * sourceStride) / word, (end + i * targetStride) / word];
      for (let k = 0; k < words; k++) target[firstTo + k] = source[first + k] ?? 0;
    }
  };
}

function inWords(bytes: Uint8Array, word: number): Uint8Array | Uint16Array | Uint32Array {
  if (word === 1) return bytes;
  const count = Math.floor(bytes.length / word);
  return word === 2
    ? new Uint16Array(bytes.buffer, bytes.byteOffset, count)
    : new Uint32Array(bytes.buffer, bytes.byteOffset, count);
}

/**
 * Converts whole tensors to local buffers and back, according to the tensor's sharding. A device holds one index of
 * every part of an axis with a DID type, its coordinate in the mesh, and all indices of other parts. Local buffers are
 * contiguous in the order of the allocation domain.
 */
import { contiguousStrides } from "../commands/view.ts";
import { axisShards, sizedParts } from "../ir/axis-shards.ts";
import { isDID, type Tensor as IrTensor, withoutReductions } from "../ir/domain.ts";
import { dtypes } from "../numerics/dtype.ts";
import { type Tensor, tensorBytes } from "../numerics/tensor/host-tensor.ts";
import { layoutOfShape } from "../record/local-layout.ts";
import { at } from "../support/invariant.ts";

/**
 * The local part of a whole tensor on one device, as boxes in both layouts. A box has one axis for every part that the
 * device holds whole.
 */
interface Part {
  readonly shape: readonly number[];
  readonly wholeOffset: number;
  readonly wholeStrides: readonly number[];
  readonly localStrides: readonly number[];
  readonly localBytes: number;
}

/**
 * The shape of a device's shard: the extent of each sharded axis divided by its number of devices, other axes whole.
 */
export function shardShape(tensor: IrTensor, shape: readonly number[]): readonly number[] {
  return layoutOfShape(tensor, shape).shape;
}

/** The bytes of `rank`'s local buffer, cut from the bytes of the whole row-major tensor of shape `shape`. */
export function shardOf(tensor: IrTensor, shape: readonly number[], whole: Uint8Array, rank: number): Uint8Array {
  const part = partOf(tensor, shape, rank);
  const local = new Uint8Array(part.localBytes);
  copyBox(wholeSide(part, whole), localSide(part, local), part.shape, dtypes[tensor.dtype].bytes);
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
  const part = partOf(tensor, shape, rank);
  copyBox(localSide(part, local), wholeSide(part, whole), part.shape, dtypes[tensor.dtype].bytes);
}

/**
 * Sets of devices, each of which holds every part once. The k-th replica of a part, in mesh order, is in the k-th set.
 */
export function replicas(tensor: IrTensor): readonly (readonly number[])[] {
  const { mesh } = tensor;
  if (mesh === null) return [[0]];
  const types = axisShards(tensor).map(({ type }) => type);
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

function wholeSide(part: Part, bytes: Uint8Array): BoxSide {
  return { bytes, offset: part.wholeOffset, strides: part.wholeStrides };
}

function localSide(part: Part, bytes: Uint8Array): BoxSide {
  return { bytes, offset: 0, strides: part.localStrides };
}

function partOf(tensor: IrTensor, shape: readonly number[], rank: number): Part {
  const { bytes } = dtypes[tensor.dtype];
  const local = layoutOfShape(tensor, shape);
  const wholeStrides = contiguousStrides(shape);
  const box: { size: number; whole: number; local: number }[] = [];
  let wholeOffset = 0;
  withoutReductions(tensor.domain.logical).forEach((axis, position) => {
    let whole = at(wholeStrides, position) * bytes;
    let own = at(local.strides, position) * bytes;
    const pieces: typeof box = [];
    for (const { extent, parallelType } of sizedParts(tensor.domain, axis, at(shape, position)).toReversed()) {
      if (!isDID(parallelType)) {
        pieces.unshift({ size: extent, whole, local: own });
        own *= extent;
      } else if (tensor.mesh !== null) wholeOffset += tensor.mesh.coordinate(rank, parallelType) * whole;
      whole *= extent;
    }
    box.push(...pieces);
  });
  return {
    shape: box.map(({ size }) => size),
    wholeOffset,
    wholeStrides: box.map(({ whole }) => whole),
    localStrides: box.map((piece) => piece.local),
    localBytes: local.shape.reduce((product, extent) => product * extent, bytes),
  };
}

/** The bytes of a local buffer, from a row-major shard of a tensor whose whole shape is `shape`. */
export function packShard(tensor: IrTensor, shape: readonly number[], shard: Tensor): Uint8Array {
  const bytes = tensorBytes(shard);
  const local = new Uint8Array(bytes.length);
  const { rowMajor, buffer } = shardSides(tensor, shape, bytes, local);
  copyBox(rowMajor, buffer, shard.shape, dtypes[tensor.dtype].bytes);
  return local;
}

/** Fills a row-major shard from the bytes of a local buffer of a tensor whose whole shape is `shape`. */
export function unpackShard(tensor: IrTensor, shape: readonly number[], local: Uint8Array, shard: Tensor): void {
  const { rowMajor, buffer } = shardSides(tensor, shape, tensorBytes(shard), local);
  copyBox(buffer, rowMajor, shard.shape, dtypes[tensor.dtype].bytes);
}

function shardSides(
  tensor: IrTensor,
  shape: readonly number[],
  shard: Uint8Array,
  local: Uint8Array,
): { readonly rowMajor: BoxSide; readonly buffer: BoxSide } {
  const { bytes } = dtypes[tensor.dtype];
  const layout = layoutOfShape(tensor, shape);
  return {
    rowMajor: { bytes: shard, offset: 0, strides: byteStrides(contiguousStrides(layout.shape), bytes) },
    buffer: { bytes: local, offset: 0, strides: byteStrides(layout.strides, bytes) },
  };
}

function byteStrides(strides: readonly number[], elementBytes: number): readonly number[] {
  return strides.map((stride) => stride * elementBytes);
}

/**
 * Copies a strided box of bytes between two byte arrays. Trailing axes that are contiguous on both sides are copied as
 * one run; short runs byte by byte, because `TypedArray.set` costs more than it saves below about 64 bytes.
 */
interface BoxSide {
  readonly bytes: Uint8Array;
  /** In bytes. */
  readonly offset: number;
  /** Strides in bytes, one per axis of the box. */
  readonly strides: readonly number[];
}

const shortRun = 64;

/** `shape` counts elements of `elementBytes` bytes. The sides must not overlap. */
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
  const walk = (axis: number, source: number, target: number): void => {
    if (axis === rank) {
      if (run < shortRun) for (let i = 0; i < run; i++) to.bytes[target + i] = from.bytes[source + i] ?? 0;
      else to.bytes.set(from.bytes.subarray(source, source + run), target);
      return;
    }
    const extent = shape[axis] ?? 1;
    const sourceStride = from.strides[axis] ?? 0;
    const targetStride = to.strides[axis] ?? 0;
    for (let i = 0; i < extent; i++) walk(axis + 1, source + i * sourceStride, target + i * targetStride);
  };
  walk(0, from.offset, to.offset);
}

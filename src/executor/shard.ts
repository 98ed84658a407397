/**
 * Whole tensors to local buffers and back, by the tensor's annotation: along a DID axis a device holds the one index that is its
 * coordinate in the mesh. Local buffers are contiguous in the order of the allocation domain.
 */
import { contiguousStrides, stridesInOrder } from "../commands/view.ts";
import { isDID, type Tensor as IrTensor, withoutReductions } from "../ir/domain.ts";
import { dtypes } from "../numerics/dtype.ts";
import { type Tensor, tensorBytes } from "../numerics/host-tensor.ts";
import { at } from "../support/invariant.ts";
import { type BoxSide, copyBox } from "../support/box-copy.ts";

/** The local part of a whole tensor on one device, as boxes in both layouts. */
interface Part {
  readonly shape: readonly number[];
  readonly wholeOffset: number;
  readonly wholeStrides: readonly number[];
  readonly localStrides: readonly number[];
  readonly localBytes: number;
}

/** The shape of a device's shard: 1 along DID axes, the whole extent elsewhere. */
export function shardShape(tensor: IrTensor, shape: readonly number[]): readonly number[] {
  return withoutReductions(tensor.domain.logical).map((axis, i) => (isDID(axis.parallelType) ? 1 : at(shape, i)));
}

/** The bytes of `rank`'s local buffer, from the bytes of the whole row-major tensor of shape `shape`. */
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

/** Devices that together hold every part once: of the replicas of a part, the first in the mesh. */
export function holders(tensor: IrTensor): readonly number[] {
  const { mesh } = tensor;
  if (mesh === null) return [0];
  const types = withoutReductions(tensor.domain.logical)
    .map((axis) => axis.parallelType)
    .filter(isDID);
  const seen = new Set<string>();
  return mesh.devices.filter((device) => {
    const part = types.map((type) => mesh.coordinate(device, type)).join(",");
    if (seen.has(part)) return false;
    seen.add(part);
    return true;
  });
}

function wholeSide(part: Part, bytes: Uint8Array): BoxSide {
  return { bytes, offset: part.wholeOffset, strides: part.wholeStrides };
}

function localSide(part: Part, bytes: Uint8Array): BoxSide {
  return { bytes, offset: 0, strides: part.localStrides };
}

function partOf(tensor: IrTensor, shape: readonly number[], rank: number): Part {
  const logical = withoutReductions(tensor.domain.logical);
  const { bytes } = dtypes[tensor.dtype];
  const local = shardShape(tensor, shape);
  const wholeStrides = byteStrides(contiguousStrides(shape), bytes);
  const order = withoutReductions(tensor.domain.allocation ?? tensor.domain.logical).map((axis) =>
    logical.findIndex((candidate) => candidate.id === axis.id),
  );
  const wholeOffset = logical.reduce(
    (offset, { parallelType }, i) =>
      isDID(parallelType) && tensor.mesh !== null
        ? offset + tensor.mesh.coordinate(rank, parallelType) * at(wholeStrides, i)
        : offset,
    0,
  );
  const localBytes = local.reduce((product, extent) => product * extent, bytes);
  return {
    shape: local,
    wholeOffset,
    wholeStrides,
    localStrides: byteStrides(stridesInOrder(local, order), bytes),
    localBytes,
  };
}

function byteStrides(strides: readonly number[], elementBytes: number): readonly number[] {
  return strides.map((stride) => stride * elementBytes);
}

/** The bytes of a local buffer from a row-major shard. */
export function packShard(tensor: IrTensor, shard: Tensor): Uint8Array {
  return shardOf({ ...tensor, mesh: null }, shard.shape, tensorBytes(shard), 0);
}

/** Fills a row-major shard from the bytes of a local buffer. */
export function unpackShard(tensor: IrTensor, local: Uint8Array, shard: Tensor): void {
  unshardInto({ ...tensor, mesh: null }, shard.shape, local, 0, tensorBytes(shard));
}

/**
 * The inputs of a block: whole tensors of random numbers, from which each device gets its part. Their sizes keep
 * activations and gradients near 1: a weight is scaled by the number of elements that a dot product reads.
 */
import { indicesOn } from "../../../src/record/local-layout.ts";
import { shardOf } from "../../../src/executor/shard.ts";
import { type Tensor, withoutReductions } from "../../../src/ir/domain.ts";
import { at } from "../../../src/support/invariant.ts";
import { createMatrices, type Matrices } from "../../../src/numerics/tensor/random-matrices.ts";

/** The power of two by which random numbers in [-1, 1) are multiplied. */
export function scaleOf(name: string, shape: readonly number[]): number {
  if (name.startsWith("w_")) return 2 ** Math.round(Math.log2(Math.sqrt(3 / (shape[1] ?? 1))));
  return name.startsWith("b_") || name.startsWith("shift") ? 1 / 8 : 1;
}

/** How PyTorch's process makes the same tensor from the repeated block. */
export interface TensorStart {
  readonly start: number;
  readonly scale: number;
}

export interface BlockMatrices {
  /** The repeated block of random numbers. */
  piece(dtype: Tensor["dtype"]): Uint8Array;
  startOf(name: string, dtype: Tensor["dtype"], shape: readonly number[]): TensorStart;
  /** The whole tensor named `name`, row-major. */
  whole(name: string, dtype: Tensor["dtype"], shape: readonly number[]): Uint8Array;
  /** A device's part of the whole tensor. */
  part(name: string, tensor: Tensor, shape: readonly number[], rank: number): Uint8Array;
}

export function createBlockMatrices(seed: number): BlockMatrices {
  const byScale = new Map<string, Matrices>();
  const parts = new Map<string, Uint8Array>();
  const scaled = (dtype: Tensor["dtype"], scale: number): Matrices => {
    const key = `${dtype} ${scale}`;
    const matrices = byScale.get(key) ?? createMatrices(dtype, seed, scale);
    byScale.set(key, matrices);
    return matrices;
  };
  const whole: BlockMatrices["whole"] = (name, dtype, shape) => {
    const matrices = scaled(dtype, scaleOf(name, shape));
    const count = shape.reduce((product, extent) => product * extent, 1);
    const bytes = new Uint8Array(count * matrices.width);
    matrices.fill(name, 0, count, bytes, 0);
    return bytes;
  };
  return {
    piece: (dtype) => scaled(dtype, 1).piece,
    startOf: (name, dtype, shape) => ({ start: scaled(dtype, 1).start(name), scale: scaleOf(name, shape) }),
    whole,
    // Contenders share most parts, which may be gigabytes together.
    part: (name, tensor, shape, rank) => {
      const runs = withoutReductions(tensor.domain.logical).map((axis, i) =>
        indicesOn(tensor, axis, at(shape, i), rank),
      );
      const key = JSON.stringify([name, tensor.dtype, shape, runs]);
      const made = parts.get(key) ?? shardOf(tensor, shape, whole(name, tensor.dtype, shape), rank);
      parts.set(key, made);
      return made;
    },
  };
}

/**
 * Compares a result as a whole where the bounds of its elements say little. Worst-case bounds through softmax and norms
 * grow until even zeros would pass. The exact result then comes from the same Fusion in double, and the measure is the
 * oracle's own result, which has one rounding per op in the program's dtypes: a correct back end is about as far from
 * the exact result, since its errors are as many and of the same size.
 */
import { doZerosPass } from "./compare.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { Op } from "../ir/ops/op.ts";
import { type DType, dtypes } from "../numerics/dtype.ts";
import { emptyTensor, type Tensor } from "../numerics/tensor/host-tensor.ts";
import { elementsOf } from "../numerics/tensor/storage.ts";

export interface NormComparison {
  /** The Euclidean norm of the errors, relative to that of the exact result. */
  readonly error: number;
  /** The largest that is accepted. */
  readonly limit: number;
  /** Whether zeros in place of the result would be accepted. */
  readonly zerosPass: boolean;
}

/**
 * How many times the oracle's error is accepted. Back ends accumulate 16-bit floats in float, so that only partial sums
 * of devices round more often than the oracle's. A float accumulates in float, with a rounding per addition.
 */
const accepted: { readonly [K in DType]: number } = {
  half: 4,
  bfloat16: 4,
  float: 16,
  double: 16,
  int: 0,
  int64: 0,
  bool: 0,
};

/**
 * Whether most elements of a float result have no bound, or one above a tenth of the root mean square of them all, or
 * zeros would pass. Not of a result that is all zeros.
 */
export function areBoundsWide(tensor: Tensor, bounds: Float64Array): boolean {
  if (dtypes[tensor.dtype].family !== "float") return false;
  const elements = elementsOf(tensor.dtype, tensor.data);
  let squares = 0;
  for (let i = 0; i < elements.length; i++) squares += finite(Number(elements.get(i))) ** 2;
  if (squares === 0) return false;
  const largest = 0.1 * Math.sqrt(squares / elements.length);
  const wide = bounds.reduce((count, bound) => count + (bound > largest ? 1 : 0), 0);
  return wide > elements.length / 2 || doZerosPass(tensor, bounds);
}

function finite(x: number): number {
  return Number.isFinite(x) ? x : 0;
}

/** The Fusion with double for all floats. */
export function inDouble(fusion: FusionData): FusionData {
  const tensors = fusion.tensors.map((tensor) => ({ ...tensor, dtype: widened(tensor.dtype) }));
  const ops = fusion.ops.map((op): Op => (op.kind === "Cast" ? { ...op, to: widened(op.to) } : op));
  return { ...fusion, tensors, ops };
}

/** The tensor with double for its float dtype. */
export function toDouble(tensor: Tensor): Tensor {
  const wide = emptyTensor(widened(tensor.dtype), tensor.shape);
  const [from, to] = [elementsOf(tensor.dtype, tensor.data), elementsOf(wide.dtype, wide.data)];
  for (let i = 0; i < from.length; i++) to.set(i, from.get(i));
  return wide;
}

function widened(dtype: DType): DType {
  return dtypes[dtype].family === "float" ? "double" : dtype;
}

/** Over the elements that are finite in both references. Null if there are none, or their squares overflow. */
export function compareNorms(actual: Tensor, oracle: Tensor, exact: Tensor): NormComparison | null {
  const elements = (tensor: Tensor): ((i: number) => number) => {
    const stored = elementsOf(tensor.dtype, tensor.data);
    return (i) => Number(stored.get(i));
  };
  const [own, rounded, wanted] = [elements(actual), elements(oracle), elements(exact)];
  let [size, error, rounding, count] = [0, 0, 0, 0];
  for (let i = 0; i < actual.data.length; i++) {
    const [x, y, z] = [own(i), rounded(i), wanted(i)];
    if (!Number.isFinite(y) || !Number.isFinite(z)) continue;
    size += z ** 2;
    error += (x - z) ** 2;
    rounding += (y - z) ** 2;
    count += 1;
  }
  if (count === 0 || !Number.isFinite(size) || !Number.isFinite(rounding)) return null;
  const unit = size === 0 ? 1 : Math.sqrt(size);
  const relative = Math.sqrt(error) / unit;
  const limit = (accepted[actual.dtype] * Math.sqrt(rounding)) / unit;
  return {
    error: Number.isNaN(relative) ? Infinity : relative,
    limit,
    zerosPass: Math.sqrt(size) / unit <= limit,
  };
}

/**
 * The operands of an attention as cuDNN takes them: [batch, heads, rows, columns]. Axes in front of the matrices are
 * merged, those along which heads share keys last:
 *
 *   q [B, G, r, Lq, d], k [B, G, 1, Lk, d]   ->   [B, G r, Lq, d], [B, G, Lk, d]
 *
 * Lengths of keys are stretched to the axes in front.
 *
 * An operand whose axes do not merge, whose columns are not contiguous, or which is not aligned, is copied.
 */
import { type AttentionKernel, biasOf, hasKeyLengths } from "../../../commands/attention.ts";
import type { Operand } from "../../../commands/kernel.ts";
import { stridesInOrder } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

export type Four = readonly [number, number, number, number];

export interface PlacedOperand {
  readonly dims: Four;
  /** In elements. */
  readonly strides: Four;
  /** The place in the scratch, and the strides of the operand's own axes there; null for the operand's own memory. */
  readonly copy: { readonly offset: number; readonly strides: readonly number[] } | null;
}

export interface AttentionLayout {
  readonly inputs: readonly PlacedOperand[];
  readonly outputs: readonly PlacedOperand[];
  /** Scratch bytes of the copies. */
  readonly copyBytes: number;
}

/** Bytes to which cuDNN's tensors, and the rows of matrices, are aligned. */
export const cudnnAlignment = 16;
const scratchAlignment = 256;

/**
 * The operands, inputs first. By steps of 0, lengths of keys have the axes in front of the queries, and so has a bias
 * that some of the heads share. For gradients it has the rows of the queries, too: cuDNN 9.19 takes one row for all
 * without a word, and returns other numbers.
 */
export function laidOperands(kernel: AttentionKernel): readonly Operand[] {
  const rows = at(kernel.inputs, 0).shape.slice(0, -1);
  const front = rows.slice(0, -1);
  const bias = biasOf(kernel);
  return [...kernel.inputs, ...kernel.outputs].map((operand, i): Operand => {
    if (isLengths(kernel, i)) return stretched(operand, front);
    if (operand !== bias) return operand;
    if (kernel.kind === "sdpaBackward") return stretched(operand, rows);
    const isShared = front.some((extent, axis) => extent > 1 && at(bias.shape, axis) === extent);
    return isShared ? stretched(operand, front) : operand;
  });
}

/** With axes of extent 1 stretched to `front`, by steps of 0. */
function stretched({ dtype, shape, strides }: Operand, front: readonly number[]): Operand {
  const own = shape.map((extent, axis) => front[axis] ?? extent);
  return { dtype, shape: own, strides: strides.map((stride, axis) => (at(shape, axis) === 1 ? 0 : stride)) };
}

function isLengths(kernel: AttentionKernel, operand: number): boolean {
  return hasKeyLengths(kernel) && operand === 3;
}

/** What follows q, k, v and what is known of them is read one by one: its rows may lie anywhere. */
function isMatrix(kernel: AttentionKernel, operand: number): boolean {
  return operand >= kernel.inputs.length || operand < (kernel.kind === "sdpa" ? 3 : 6);
}

/** `alignments` of the operands' addresses, inputs first. */
export function attentionLayout(kernel: AttentionKernel, alignments: readonly number[]): AttentionLayout {
  const operands = laidOperands(kernel);
  const splits = splitsOf(kernel);
  const places = splits.map((split) =>
    operands.map((operand, i) => {
      const alignment = isLengths(kernel, i) ? cudnnAlignment : at(alignments, i);
      return placedInMemory(operand, split, alignment, isMatrix(kernel, i));
    }),
  );
  const copies = places.map((each) => each.filter((place) => place === null).length);
  const best = copies.indexOf(Math.min(...copies));
  const split = at(splits, best);
  let copyBytes = 0;
  const placed = operands.map((operand, i): PlacedOperand => {
    const place = at(at(places, best), i);
    if (place !== null) return { ...place, copy: null };
    const strides = stridesInOrder(operand.shape, [...split.batch, ...split.heads, ...split.matrix(operand)]);
    const copied = placedInMemory({ ...operand, strides }, split, scratchAlignment, isMatrix(kernel, i));
    invariant(copied !== null, "cuDNN takes contiguous operands", { operand });
    const offset = copyBytes;
    copyBytes += aligned(elementCount(operand.shape) * dtypes[operand.dtype].bytes);
    return { ...copied, copy: { offset, strides } };
  });
  const count = kernel.inputs.length;
  return { inputs: placed.slice(0, count), outputs: placed.slice(count), copyBytes };
}

/** The next multiple of the alignment of places in the scratch. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / scratchAlignment) * scratchAlignment;
}

/** Which axes in front become the batch, and which the heads. */
interface Split {
  readonly batch: readonly number[];
  readonly heads: readonly number[];
  /** The other axes of an operand: rows and columns, or rows. */
  readonly matrix: (operand: Operand) => readonly number[];
}

/** The usual one first: the last axis is the heads. */
function splitsOf(kernel: AttentionKernel): readonly Split[] {
  const [q, k] = kernel.kind === "sdpa" ? [0, 1] : [1, 2];
  const [queries, keys] = [at(kernel.inputs, q).shape, at(kernel.inputs, k).shape];
  const front = queries.slice(0, -2).map((_, axis) => axis);
  const isShared = (axis: number): boolean => at(keys, axis) !== at(queries, axis);
  const [own, shared] = [front.filter((axis) => !isShared(axis)), front.filter(isShared)];
  const matrix = ({ shape }: Operand): readonly number[] => shape.map((_, axis) => axis).slice(front.length);
  const usual = Math.max(0, own.length - 1);
  const others = own.map((_, count) => count).concat(own.length);
  return [usual, ...others.filter((count) => count !== usual)].map((count) => ({
    batch: own.slice(0, count),
    heads: [...own.slice(count), ...shared],
    matrix,
  }));
}

interface Axis {
  readonly extent: number;
  readonly stride: number;
}

/** Null if the operand cannot be taken where it lies. */
function placedInMemory(
  operand: Operand,
  split: Split,
  alignment: number,
  isAligned: boolean,
): Pick<PlacedOperand, "dims" | "strides"> | null {
  const [batch, heads] = [mergedAxes(operand, split.batch), mergedAxes(operand, split.heads)];
  if (batch === null || heads === null || alignment < cudnnAlignment) return null;
  const [row, column] = split.matrix(operand);
  const rows = axisOf(operand, row);
  const columns = axisOf(operand, column);
  const hasColumns = column !== undefined;
  const inner = hasColumns ? columns : rows;
  const step = hasColumns ? cudnnAlignment / dtypes[operand.dtype].bytes : 1;
  const outer = hasColumns ? [batch, heads, rows] : [batch, heads];
  const fits = (axis: Axis): boolean =>
    axis.extent === 1 || !isAligned || (axis.stride > 0 && axis.stride % step === 0);
  if ((inner.extent !== 1 && inner.stride !== 1) || !outer.every(fits)) return null;
  return fourAxes([batch, heads, rows, columns]);
}

function axisOf({ shape, strides }: Operand, axis: number | undefined): Axis {
  return axis === undefined ? { extent: 1, stride: 1 } : { extent: at(shape, axis), stride: at(strides, axis) };
}

/** The axes as one; null if their elements are not evenly spaced. */
function mergedAxes(operand: Operand, axes: readonly number[]): Axis | null {
  let merged: Axis = { extent: 1, stride: 0 };
  for (const axis of axes.toReversed()) {
    const { extent, stride } = axisOf(operand, axis);
    if (extent === 1) continue;
    if (merged.extent > 1 && stride !== merged.extent * merged.stride) return null;
    merged = { extent: merged.extent * extent, stride: merged.extent > 1 ? merged.stride : stride };
  }
  return merged;
}

/** An axis of one element gets the stride that it has in a contiguous tensor. */
function fourAxes([batch, heads, rows, columns]: readonly [Axis, Axis, Axis, Axis]): {
  readonly dims: Four;
  readonly strides: Four;
} {
  let span = 1;
  const strideOf = ({ extent, stride }: Axis): number => {
    const used = extent === 1 ? span : stride;
    span = Math.max(span, extent * used);
    return used;
  };
  const [fourth, third, second, first] = [strideOf(columns), strideOf(rows), strideOf(heads), strideOf(batch)];
  return {
    dims: [batch.extent, heads.extent, rows.extent, columns.extent],
    strides: [first, second, third, fourth],
  };
}

/**
 * The common form of matmul and linear. For every index of the batch axes, c[m, n] = sum over k of a[m, k] * b[k, n],
 * plus bias[n] if there is a bias, plus the previous c[m, n] if it accumulates. Strides express the rest: a transposed
 * operand swaps two, a broadcast operand has stride 0, and linear's weight [N, K] is b with its strides swapped.
 */
import { type DType, type FloatDType, isFloatDType } from "../../numerics/dtype.ts";
import { hasBlocks, scaledBlock } from "../../ir/ops/kinds/contractions.ts";
import { at, invariant } from "../../support/invariant.ts";

export interface StridedShape {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
}

/** Strides in elements. */
export interface MatrixStrides {
  readonly row: number;
  readonly column: number;
}

export interface BatchAxis {
  readonly extent: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

export interface Contraction {
  /** Of c, the bias, and of a and b unless these are narrower. */
  readonly dtype: DType;
  readonly narrow?: FloatDType;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Outermost first, without axes of extent 1. */
  readonly batch: readonly BatchAxis[];
  /** m x k. */
  readonly a: MatrixStrides;
  /** k x n. */
  readonly b: MatrixStrides;
  /** m x n. */
  readonly c: MatrixStrides;
  /** The stride of bias along n; null without bias. */
  readonly bias: number | null;
  /** Whether the GEMM adds to c. */
  readonly accumulate?: boolean;
  /** Of a contraction whose sums are multiplied by two scales. */
  readonly scaled?: ScaledOperands;
  /** Of a grouped contraction: its groups of rows or of terms. */
  readonly groups?: Groups;
}

/** The dtype of a or b, and the stride of its scales along m or n: 0 for one scale. */
export interface ScaledOperand {
  readonly dtype: FloatDType;
  readonly stride: number;
  /** Of scales of blocks: how many of m or n one is of, and the stride along k. */
  readonly blocks?: { readonly rows: number; readonly stride: number };
}

export interface ScaledOperands {
  readonly a: ScaledOperand;
  readonly b: ScaledOperand;
  /** Whether sums may be kept in fewer bits. */
  readonly fastAccumulation?: boolean;
}

/** Consecutive rows, each group with its own b, or consecutive terms, each group with its own c. */
export interface Groups {
  readonly of: "m" | "k";
  readonly count: number;
  /** From the b or c of a group to the next one's. */
  readonly stride: number;
  /** Where the ends of the groups lie, with their strides along the batch axes. */
  readonly ends: { readonly dtype: "int" | "int64"; readonly stride: number; readonly batch: readonly number[] };
}

interface Axis {
  readonly extent: number;
  readonly stride: number;
}

const absent: Axis = { extent: 1, stride: 0 };

function axesOf({ shape, strides }: StridedShape): readonly Axis[] {
  // The stride of an axis of one element is arbitrary, so it is set to 0.
  return shape.map((extent, i) => ({ extent, stride: extent === 1 ? 0 : at(strides, i) }));
}

/** a [.., M, K] or [K], b [.., K, N] or [K], c [.., M, N]. An operand [K] drops M or N from c. */
export function matmulContraction(a: StridedShape, b: StridedShape, c: StridedShape, accumulate = false): Contraction {
  const left = axesOf(a);
  const right = axesOf(b);
  const rows = left.length > 1 ? at(left, left.length - 2) : absent;
  const columns = right.length > 1 ? at(right, right.length - 1) : absent;
  return contraction(c, {
    a: { batch: left.slice(0, -2), m: rows, k: at(left, left.length - 1) },
    b: { batch: right.slice(0, -2), k: at(right, Math.max(right.length - 2, 0)), n: columns },
    hasM: left.length > 1,
    hasN: right.length > 1,
    bias: null,
    accumulate,
    ...(a.dtype !== c.dtype && isFloatDType(a.dtype) ? { narrow: a.dtype } : {}),
  });
}

/** x [.., K], weight [N, K] or [K], bias [N] or [], c [.., N]. With a weight [K], c has no N. */
export function linearContraction(
  x: StridedShape,
  weight: StridedShape,
  bias: StridedShape | undefined,
  c: StridedShape,
  accumulate = false,
): Contraction {
  const left = axesOf(x);
  const right = axesOf(weight);
  const hasN = right.length > 1;
  return contraction(c, {
    a: {
      batch: left.slice(0, -2),
      m: left.length > 1 ? at(left, left.length - 2) : absent,
      k: at(left, left.length - 1),
    },
    b: { batch: [], k: at(right, right.length - 1), n: hasN ? at(right, 0) : absent },
    hasM: left.length > 1,
    hasN,
    bias: bias === undefined ? null : (axesOf(bias)[0]?.stride ?? 0),
    accumulate,
  });
}

/** x [.., K], weight [N, K] and their scales (ir/ops/kinds); null if batch axes do not fold into rows. */
export function scaledContraction(
  x: StridedShape,
  weight: StridedShape,
  [ofX, ofWeight]: readonly [StridedShape, StridedShape],
  c: StridedShape,
  fastAccumulation = false,
): Contraction | null {
  const whole = linearContraction(x, weight, undefined, c);
  const inBlocks = hasBlocks(ofX.shape, x.shape);
  // The scales as a matrix, of one column unless they are of blocks, fold as x does.
  const matrix = inBlocks ? ofX : { ...ofX, shape: [...ofX.shape, 1], strides: [...ofX.strides, 1] };
  const column = { ...c, shape: [...c.shape.slice(0, -1), 1] };
  const rows = linearContraction(matrix, oneRow(c, at(matrix.shape, matrix.shape.length - 1)), undefined, column);
  const isSingle = ofX.shape.length === 0;
  if (whole.batch.length > 0 || (!isSingle && rows.batch.length > 0)) return null;
  if (!isFloatDType(x.dtype) || !isFloatDType(weight.dtype)) return null;
  const [ofN, ofK] = axesOf(ofWeight);
  const rowsOfBlock = ofWeight.shape[0] === weight.shape[0] ? 1 : scaledBlock;
  return {
    ...whole,
    scaled: {
      a: {
        dtype: x.dtype,
        stride: isSingle ? 0 : rows.a.row,
        ...(inBlocks ? { blocks: { rows: 1, stride: rows.a.column } } : {}),
      },
      b: {
        dtype: weight.dtype,
        stride: ofN?.stride ?? 0,
        ...(inBlocks ? { blocks: { rows: rowsOfBlock, stride: ofK?.stride ?? 0 } } : {}),
      },
      ...(fastAccumulation ? { fastAccumulation } : {}),
    },
  };
}

function oneRow({ dtype }: StridedShape, length: number): StridedShape {
  return { dtype, shape: [1, length], strides: [length, 1] };
}

interface Sides {
  readonly a: { readonly batch: readonly Axis[]; readonly m: Axis; readonly k: Axis };
  readonly b: { readonly batch: readonly Axis[]; readonly k: Axis; readonly n: Axis };
  readonly hasM: boolean;
  readonly hasN: boolean;
  readonly bias: number | null;
  readonly accumulate: boolean;
  readonly narrow?: FloatDType;
}

function contraction(c: StridedShape, { a, b, hasM, hasN, bias, accumulate, narrow }: Sides): Contraction {
  const output = [...axesOf(c)];
  const n = hasN ? at(output, output.length - 1) : absent;
  const m = hasM ? at(output, output.length - (hasN ? 2 : 1)) : absent;
  const outer = output.slice(0, output.length - (hasN ? 1 : 0) - (hasM ? 1 : 0));
  invariant(a.k.extent === b.k.extent && a.m.extent === m.extent && b.n.extent === n.extent, "operands fit", {
    a,
    b,
    c: c.shape,
  });
  // Batch axes align from the last one. An axis that is missing, or has one element, broadcasts.
  const strideAt = (axes: readonly Axis[], i: number): number => axes[i - outer.length + axes.length]?.stride ?? 0;
  const batch = outer.map((axis, i) => ({
    extent: axis.extent,
    a: strideAt(a.batch, i),
    b: strideAt(b.batch, i),
    c: axis.stride,
  }));
  return foldBatch({
    dtype: c.dtype,
    m: m.extent,
    n: n.extent,
    k: a.k.extent,
    batch: batch.filter(({ extent }) => extent > 1),
    a: { row: a.m.stride, column: a.k.stride },
    b: { row: b.k.stride, column: b.n.stride },
    c: { row: m.stride, column: n.stride },
    bias,
    ...(narrow === undefined ? {} : { narrow }),
    ...(accumulate ? { accumulate } : {}),
  });
}

/** x [.., M, K], y [.., E, K, N] or [.., M, N], ends [.., E]: ir/ops/kinds/grouped.ts. */
export function groupedContraction(x: StridedShape, y: StridedShape, ends: StridedShape, c: StridedShape): Contraction {
  const [left, right, steps, output] = [axesOf(x), axesOf(y), axesOf(ends), axesOf(c)];
  const ofRows = y.shape.length > x.shape.length;
  const [m, n] = [at(output, c.shape.length - 2), at(output, c.shape.length - 1)];
  const [first, second] = [at(left, x.shape.length - 2), at(left, x.shape.length - 1)];
  const outer = output.slice(0, ofRows ? -2 : -3);
  const strideAt = (axes: readonly Axis[], inner: number, i: number): number =>
    axes[i - outer.length + axes.length - inner]?.stride ?? 0;
  const leading = [...outer.keys()].filter((i) => at(outer, i).extent > 1);
  const terms = ofRows ? second : first;
  const group = at(ofRows ? right : output, (ofRows ? y : c).shape.length - 3);
  return {
    dtype: c.dtype,
    m: m.extent,
    n: n.extent,
    k: terms.extent,
    batch: leading.map((i) => ({
      extent: at(outer, i).extent,
      a: strideAt(left, 2, i),
      b: strideAt(right, ofRows ? 3 : 2, i),
      c: at(outer, i).stride,
    })),
    a: { row: (ofRows ? first : second).stride, column: terms.stride },
    b: { row: at(right, y.shape.length - 2).stride, column: at(right, y.shape.length - 1).stride },
    c: { row: m.stride, column: n.stride },
    bias: null,
    groups: {
      of: ofRows ? "m" : "k",
      count: group.extent,
      stride: group.stride,
      ends: {
        dtype: ends.dtype === "int" ? "int" : "int64",
        stride: at(steps, ends.shape.length - 1).stride,
        batch: leading.map((i) => strideAt(steps, 1, i)),
      },
    },
  };
}

/** Folds batch axes along which b does not change into rows, if the strides of a and c allow it. */
function foldBatch(whole: Contraction): Contraction {
  const inner = whole.batch.at(-1);
  if (inner === undefined || inner.b !== 0) return whole;
  const alone = whole.m === 1;
  const goesOn = inner.a === whole.m * whole.a.row && inner.c === whole.m * whole.c.row;
  if (!alone && !goesOn) return whole;
  return foldBatch({
    ...whole,
    m: whole.m * inner.extent,
    batch: whole.batch.slice(0, -1),
    a: { ...whole.a, row: alone ? inner.a : whole.a.row },
    c: { ...whole.c, row: alone ? inner.c : whole.c.row },
  });
}

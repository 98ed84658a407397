/**
 * A Contraction in the form that cuBLASLt takes: column-major matrices with a leading dimension and an optional
 * transposition, read in place. A row-major c = a b is the column-major c^T = b^T a^T, so the operands swap places and
 * nothing is copied.
 */
import { contiguousStrides, sameNumbers } from "../../../commands/view.ts";
import { scaledBlock } from "../../../ir/ops/kinds/contractions.ts";
import type {
  BatchAxis,
  Contraction,
  MatrixStrides,
  ScaledOperand,
  ScaledOperands,
  StridedShape,
} from "../../../kernels/gemm/contraction.ts";
import { type FloatDType, isFloatDType } from "../../../numerics/dtype.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { at } from "../../../support/invariant.ts";

/**
 * `rows` x `columns` in column-major order, read transposed if `transposed`. Leading dimension and batch stride count
 * elements.
 */
export interface MatrixLayout {
  readonly rows: number;
  readonly columns: number;
  readonly leading: number;
  readonly transposed: boolean;
  readonly batchStride: number;
}

interface ScaledLayout {
  readonly left: FloatDType;
  readonly right: FloatDType;
  readonly vectors: boolean;
  /** Of vectors with an element for each 128 of k: how many rows or columns one is of, 1 or 128. */
  readonly blocks?: { readonly left: number; readonly right: number };
  readonly fastAccumulation?: boolean;
}

export interface GemmLayout {
  readonly dtype: FloatDType;
  /** left and right are the contraction's a and b; b and a if `swapped`. */
  readonly swapped: boolean;
  readonly left: MatrixLayout;
  readonly right: MatrixLayout;
  readonly result: MatrixLayout;
  readonly hasBias: boolean;
  /**
   * Of operands that are narrower than the result: their dtypes, and of those of 8 bits, whether each row and column has
   * a scale of its own, and whether sums may be kept in fewer bits.
   */
  readonly scaled?: ScaledLayout;
  /** True for beta = 1 and C = D. */
  readonly accumulate?: boolean;
  readonly batchCount: number;
  /** Element offsets of the remaining batch axes; each is a GEMM call. */
  readonly offsets: readonly { readonly a: number; readonly b: number; readonly c: number }[];
}

/** Workspace bytes of every stream that runs GEMMs, enough for the fastest algorithms on Hopper. */
export const workspaceBytes = 64 << 20;

/** More GEMM calls than this take longer to launch than the generated kernel takes to run as one. */
const mostGemms = 64;

/**
 * Null if cuBLASLt does not support it: integers, no contiguous axis, or a bias that repeats or lies along the other
 * axis. Operands of 8 bits must both be contiguous along k.
 */
export function gemmLayout(contraction: Contraction): GemmLayout | null {
  const { dtype, m, n, k, bias, groups, accumulate = false } = contraction;
  if (!isFloatDType(dtype) || groups !== undefined) return null;
  const byRows = contraction.c.column === 1 || n === 1;
  // A column-major result is a b without swapping. Its bias runs along n, but the epilogue adds a bias only to rows of
  // the result.
  if (!byRows && bias !== null) return null;
  if (bias !== null && bias !== 1 && n > 1) return null;
  const a = matrix(contraction.a, m, k);
  const b = matrix(contraction.b, k, n);
  const result = byRows ? matrix(transposed(contraction.c), n, m) : matrix(contraction.c, m, n);
  if (a === null || b === null || result?.transposed !== false) return null;
  const batch = batchOf(contraction.batch);
  if (batch === null) return null;
  const { inner, offsets } = batch;
  const { narrow } = contraction;
  const wide = narrow === undefined ? null : { left: narrow, right: narrow, vectors: false };
  const scaled = contraction.scaled === undefined ? wide : scaledOperands(contraction, contraction.scaled);
  if (contraction.scaled !== undefined && (scaled === null || !byRows || b.transposed || !a.transposed)) return null;
  const withBatch = (layout: Omit<MatrixLayout, "batchStride">, batchStride: number): MatrixLayout => ({
    ...layout,
    batchStride,
  });
  return {
    dtype,
    swapped: byRows,
    // A transposed matrix is the same memory in the other order.
    left: byRows ? withBatch(flipped(b), inner.b) : withBatch(a, inner.a),
    right: byRows ? withBatch(flipped(a), inner.a) : withBatch(b, inner.b),
    result: withBatch(result, inner.c),
    hasBias: bias !== null,
    ...(scaled === null ? {} : { scaled }),
    ...(accumulate ? { accumulate } : {}),
    batchCount: inner.extent,
    offsets,
  };
}

/** What cuBLASLt takes: sizes in whole steps, and scales of one kind. b is left and a is right, as rows are contiguous. */
function scaledOperands(
  { m, n, k }: Contraction,
  { a, b, fastAccumulation = false }: ScaledOperands,
): ScaledLayout | null {
  if (n % 16 !== 0 || k % 16 !== 0) return null;
  if (a.blocks !== undefined && b.blocks !== undefined) {
    // Sums of blocks are never kept in fewer bits.
    const blocks = { left: b.blocks.rows, right: a.blocks.rows };
    const areLaid = readsBlocks(a, m, k) && readsBlocks(b, n, k);
    return areLaid ? { left: b.dtype, right: a.dtype, vectors: true, blocks } : null;
  }
  const ofRows = a.stride === 1 || m === 1;
  const ofColumns = b.stride === 1 || n === 1;
  const single = a.stride === 0 && b.stride === 0;
  if (!(single || (ofRows && ofColumns))) return null;
  const fast = fastAccumulation ? { fastAccumulation } : {};
  return { left: b.dtype, right: a.dtype, vectors: !single, ...fast };
}

// cuBLASLt reads scales of 1 x 128 with those of neighbouring rows side by side, and of 128 x 128 with those along k, in
// lines that begin at multiples of 4.

interface ScaleLines {
  readonly inLine: number;
  readonly lines: number;
  /** From one line to the next. */
  readonly line: number;
  readonly elements: number;
}

function scaleLines(rows: number, count: number, k: number): ScaleLines {
  const [scales, ofK] = [Math.ceil(count / rows), k / scaledBlock];
  const [inLine, lines] = rows === 1 ? [scales, ofK] : [ofK, scales];
  const line = Math.ceil(inLine / 4) * 4;
  return { inLine, lines, line, elements: (lines - 1) * line + inLine };
}

/** The strides of scales of blocks, [.., K / 128], of an operand [.., K], and the elements with what is between lines. */
export function blockScaleLayout(
  { shape }: Pick<StridedShape, "shape">,
  operand: Pick<StridedShape, "shape">,
): { readonly strides: readonly number[]; readonly elements: number } {
  const [lead, whole] = [shape, operand.shape].map((each) => each.slice(0, -1));
  const own = contiguousStrides(lead ?? []);
  const rows = sameNumbers(lead ?? [], whole ?? []) ? 1 : scaledBlock;
  const { line, elements } = scaleLines(rows, elementCount(whole ?? []), at(operand.shape, operand.shape.length - 1));
  return { strides: rows === 1 ? [...own, line] : [...own.map((stride) => stride * line), 1], elements };
}

function readsBlocks({ stride, blocks }: ScaledOperand, count: number, k: number): boolean {
  if (blocks === undefined) return false;
  const { inLine, lines, line } = scaleLines(blocks.rows, count, k);
  const [step, found] = blocks.rows === 1 ? [stride, blocks.stride] : [blocks.stride, stride];
  return (inLine === 1 || step === 1) && (lines === 1 || found === line);
}

/** The elements of the scales of the left and the right operand. */
export function scaleElements({ scaled, left, result }: GemmLayout): readonly [number, number] {
  const elements = (count: number, rows: number | undefined): number => {
    if (scaled?.vectors !== true) return 1;
    return rows === undefined ? count : scaleLines(rows, count, left.rows).elements;
  };
  return [elements(result.rows, scaled?.blocks?.left), elements(result.columns, scaled?.blocks?.right)];
}

type Unbatched = Omit<MatrixLayout, "batchStride">;

/** Null if neither axis is contiguous, or rows overlap. The stride of an axis of one element does not matter. */
function matrix({ row, column }: MatrixStrides, rows: number, columns: number): Unbatched | null {
  if ((row === 1 || rows === 1) && (column >= rows || columns === 1)) {
    return { rows, columns, leading: columns === 1 ? rows : column, transposed: false };
  }
  if ((column === 1 || columns === 1) && (row >= columns || rows === 1)) {
    return { rows: columns, columns: rows, leading: rows === 1 ? columns : row, transposed: true };
  }
  return null;
}

function flipped(layout: Unbatched): Unbatched {
  return { ...layout, transposed: !layout.transposed };
}

function transposed({ row, column }: MatrixStrides): MatrixStrides {
  return { row: column, column: row };
}

interface Batch {
  readonly inner: BatchAxis;
  readonly offsets: GemmLayout["offsets"];
}

/**
 * Merges axes with even steps. The largest remaining axis becomes cuBLASLt's batch, the others become separate GEMM
 * calls.
 */
function batchOf(axes: readonly BatchAxis[]): Batch | null {
  const joined = axes.reduce<readonly BatchAxis[]>((done, axis) => {
    const outer = done.at(-1);
    const joins =
      outer?.a === axis.a * axis.extent && outer.b === axis.b * axis.extent && outer.c === axis.c * axis.extent;
    return joins ? [...done.slice(0, -1), { ...axis, extent: axis.extent * outer.extent }] : [...done, axis];
  }, []);
  const largest = joined.reduce((best, axis, i) => (axis.extent > at(joined, best).extent ? i : best), 0);
  const inner = joined[largest] ?? { extent: 1, a: 0, b: 0, c: 0 };
  const outer = joined.filter((_, i) => i !== largest);
  const gemms = outer.reduce((count, { extent }) => count * extent, 1);
  if (gemms > mostGemms) return null;
  const offsets = outer.reduce<GemmLayout["offsets"]>(
    (done, axis) =>
      done.flatMap(({ a, b, c }) =>
        Array.from({ length: axis.extent }, (_, i) => ({ a: a + i * axis.a, b: b + i * axis.b, c: c + i * axis.c })),
      ),
    [{ a: 0, b: 0, c: 0 }],
  );
  return { inner, offsets };
}

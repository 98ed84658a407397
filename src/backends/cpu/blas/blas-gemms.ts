/**
 * GEMMs by a BLAS, in place on the memory of the kernels: float and double, with operands whose strides BLAS can
 * express by a leading dimension and a transposition. Sums run in the library's order, so bits differ from the
 * WebAssembly kernels' and may differ between a GEMM and its chunks. Errors stay within the bounds of any order of
 * summation.
 */
import type { Contraction, MatrixStrides } from "../../../kernels/gemm/contraction.ts";
import { type Gemm, overBatch } from "../../../kernels/gemm/gemm.ts";
import { type Blas, type BlasGemm, openBlas } from "./blas-library.ts";
import type { KernelLibraryOptions } from "../../../kernels/kernel-library.ts";
import { invariant } from "../../../support/invariant.ts";

const rowMajor = 101;
const [plain, transposed] = [111, 112] as const;

/** Below this number of multiply-adds, a call through koffi costs more than BLAS saves. */
const fewestMultiplyAdds = 32 ** 3;

/** A matrix as BLAS reads it from row-major memory. */
interface BlasMatrix {
  readonly transpose: typeof plain | typeof transposed;
  readonly leading: number;
}

/** For `dtype`: views at byte addresses, of which BLAS uses only the address. */
interface Precision {
  readonly gemm: BlasGemm;
  readonly view: (address: number, elements: number) => Float32Array | Float64Array;
}

/** Null for a GEMM that BLAS does not support or does not speed up. */
export function blasGemms(blas: Blas, buffer: ArrayBufferLike): (contraction: Contraction) => Gemm | null {
  const precisions = {
    float: { gemm: blas.sgemm, view: (address: number, count: number) => new Float32Array(buffer, address, count) },
    double: { gemm: blas.dgemm, view: (address: number, count: number) => new Float64Array(buffer, address, count) },
  };
  return (contraction) => {
    const { dtype, narrow, m, n, k } = contraction;
    if (narrow !== undefined || (dtype !== "float" && dtype !== "double") || m * n * k < fewestMultiplyAdds)
      return null;
    const gemm = prepareGemm(contraction, precisions[dtype]);
    return gemm === null ? null : overBatch(contraction, gemm);
  };
}

function prepareGemm(contraction: Contraction, precision: Precision): Gemm | null {
  const { m, n, k, bias, accumulate = false } = contraction;
  const c = matrixOf(contraction.c, m, n);
  if (c === null) return null;
  // c^T = b^T a^T if c's columns are contiguous.
  if (c.transpose === transposed) {
    const swapped = bias === null ? prepareGemm(transposedGemm(contraction), precision) : null;
    return swapped === null
      ? null
      : (addressA, addressB, none, addressC) => swapped(addressB, addressA, none, addressC);
  }
  const a = matrixOf(contraction.a, m, k);
  const b = matrixOf(contraction.b, k, n);
  if (a === null || b === null || (bias !== null && bias !== 1 && n > 1)) return null;
  // One beta cannot add both the bias and the old value of c.
  if (bias !== null && accumulate) return null;
  const { gemm, view } = precision;
  const span = (m - 1) * c.leading + n;
  return (addressA, addressB, addressBias, addressC) => {
    const target = view(addressC, span);
    if (bias !== null) {
      const row = view(addressBias, n);
      for (let i = 0; i < m; i++) target.set(row, i * c.leading);
    }
    const beta = bias !== null || accumulate ? 1 : 0;
    const [left, right] = [view(addressA, 1), view(addressB, 1)];
    gemm(rowMajor, a.transpose, b.transpose, m, n, k, 1, left, a.leading, right, b.leading, beta, target, c.leading);
  };
}

function transposedGemm(contraction: Contraction): Contraction {
  const { m, n, a, b, c } = contraction;
  const swapped = ({ row, column }: MatrixStrides): MatrixStrides => ({ row: column, column: row });
  return { ...contraction, m: n, n: m, a: swapped(b), b: swapped(a), c: swapped(c) };
}

/**
 * Null if neither rows nor columns are contiguous, or they overlap. The stride of an axis of one element does not
 * matter.
 */
function matrixOf({ row, column }: MatrixStrides, rows: number, columns: number): BlasMatrix | null {
  if ((column === 1 || columns === 1) && (row >= columns || rows === 1)) {
    return { transpose: plain, leading: rows === 1 ? columns : row };
  }
  if ((row === 1 || rows === 1) && (column >= rows || columns === 1)) {
    return { transpose: transposed, leading: columns === 1 ? rows : column };
  }
  return null;
}

/** Empty for null. The file is one that `findBlas` found in this process. */
export function libraryGemms(file: string | null, buffer: ArrayBufferLike): Pick<KernelLibraryOptions, "gemms"> {
  if (file === null) return {};
  const blas = openBlas(file);
  invariant(blas !== null, "a library that was opened once can be opened again", { file });
  return { gemms: blasGemms(blas, buffer) };
}

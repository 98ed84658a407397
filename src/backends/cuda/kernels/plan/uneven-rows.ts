/**
 * A GEMM of 16-bit floats whose result has rows of no whole number of vectors, as logits of 50,257 words. cuBLASLt's
 * fast kernels take none: one GEMM makes the columns that fill vectors, a narrow one the rest, in scratch unless the
 * rows begin at vectors anyway, and a copy brings them to the result.
 *
 *   [4096, 1600] x [1600, 50257] on an H200: 6.2 ms at once, 1.1 so
 */
import { dtypes } from "../../../../numerics/dtype.ts";
import type { ContractionPhase, PhaseAddress } from "../../../../kernels/phase.ts";
import { gemmLayout } from "../../matmul/gemm-layout.ts";

const vectorBytes = 16;
/** Narrower results take the fast kernels' time for launches alone. */
const fewestColumns = 256;
const fewestProducts = 2 ** 24;
const mostScratch = 2 ** 30;

/** Columns that fill vectors, and what a row of the scratch has of them; null for other GEMMs, and for large scratch. */
interface UnevenRows {
  readonly whole: number;
  /** In elements; null if the GEMMs write to the result. */
  readonly scratchRow: number | null;
}

function unevenRows({ contraction, c }: ContractionPhase): UnevenRows | null {
  const { dtype, m, n, k, batch, accumulate = false, scaled } = contraction;
  const vector = vectorBytes / dtypes[dtype].bytes;
  const isFloat16 = dtype === "half" || dtype === "bfloat16";
  if (!isFloat16 || accumulate || scaled !== undefined || batch.length > 0 || gemmLayout(contraction) === null)
    return null;
  if (contraction.c.column !== 1 || n % vector === 0 || n < fewestColumns || m * n * k < fewestProducts) return null;
  const whole = n - (n % vector);
  if (contraction.c.row % vector === 0 && c.offset % vectorBytes === 0) return { whole, scratchRow: null };
  // A copy writes to the beginning of an operand.
  if (c.offset !== 0) return null;
  const scratchRow = whole + vector;
  return m * scratchRow * dtypes[dtype].bytes > mostScratch ? null : { whole, scratchRow };
}

/** Bytes of scratch for the result; 0 if it is made in place. */
export function unevenBytes(phase: ContractionPhase): number {
  const row = unevenRows(phase)?.scratchRow ?? 0;
  return phase.contraction.m * row * dtypes[phase.contraction.dtype].bytes;
}

/** The two GEMMs, the wide one first, and the row of the scratch that they write, if they do; null for other GEMMs. */
export function unevenGemms(
  phase: ContractionPhase,
  scratch: PhaseAddress["memory"],
): { readonly gemms: readonly ContractionPhase[]; readonly scratchRow: number | null } | null {
  const rows = unevenRows(phase);
  if (rows === null) return null;
  const { contraction, b, bias } = phase;
  const { whole, scratchRow } = rows;
  const size = dtypes[contraction.dtype].bytes;
  const c = scratchRow === null ? phase.c : { memory: scratch, offset: 0 };
  const laid = scratchRow === null ? contraction.c : { row: scratchRow, column: 1 };
  const after = (address: PhaseAddress, stride: number): PhaseAddress => ({
    ...address,
    offset: address.offset + whole * stride * size,
  });
  return {
    gemms: [
      { ...phase, contraction: { ...contraction, n: whole, c: laid }, c },
      {
        ...phase,
        contraction: { ...contraction, n: contraction.n - whole, c: laid },
        b: after(b, contraction.b.column),
        bias: bias === null ? null : after(bias, contraction.bias ?? 0),
        c: after(c, 1),
      },
    ],
    scratchRow,
  };
}

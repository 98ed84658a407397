/**
 * A pair of matrices, their product by one GPU without communication, and rows of it in double: what a large case is
 * checked against.
 */
import type { Backend } from "../../../src/backends/backend.ts";
import { isSharded } from "../../../src/executor/tensor-arguments.ts";
import { MultiDeviceExecutor } from "../../../src/executor/multi-device-executor.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { matmul } from "../../../src/ir/api/ops.ts";
import { emptyTensor, type Tensor, tensorBytes } from "../../../src/numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../../src/support/invariant.ts";
import type { Random } from "../../../src/support/random.ts";
import type { LargeSizes } from "./large-cases.ts";
import { drawMatrix, type LargeDType, type LargeMatrix, type MatrixPart, partOf } from "./large-matrix.ts";
import { type SampledRows, sampleRows } from "./sampled-rows.ts";

/**
 * signs: -1, 0 and 1, so thinly that sums over K, and over any part of it, stay below the 256 up to which bfloat16
 * holds every whole number: in any order, with any roundings, the result has the same bits. uniform: numbers in [-1,
 * 1), rounded to the dtype.
 */
export type LargeMode = "signs" | "uniform";

export interface LargeInputs {
  readonly mode: LargeMode;
  readonly a: LargeMatrix;
  readonly b: LargeMatrix;
  /** [M, N]. */
  readonly plain: Tensor;
  /** A rank's part of A or B; kept until another part of the same matrix is asked for. */
  readonly part: (of: "a" | "b", part: MatrixPart, shape: readonly number[]) => Tensor;
  /** Rows of the product whose K devices cut into `parts`; computed once for a set of rows. */
  readonly sample: (rows: readonly number[], parts: number) => SampledRows;
}

/** Rows of a product that one GPU makes at once: half a gigabyte of A at K = 32768. */
const blockRows = 8192;

/** Sums of this many signs have a standard deviation of 32. */
const mostSigns = 1024;

export async function makeLargeInputs(
  mode: LargeMode,
  { m, k, n }: LargeSizes,
  dtype: LargeDType,
  on: Backend,
): Promise<LargeInputs> {
  const draw = draws[mode](k);
  const a = drawMatrix(dtype, [m, k], 1, draw);
  const b = drawMatrix(dtype, [k, n], 2, draw);
  const known = new Map<string, SampledRows>();
  const kept = new Map<"a" | "b", { readonly key: string; readonly tensor: Tensor }>();
  return {
    mode,
    a,
    b,
    plain: await plainProduct(a, b, on),
    part: (of, part, shape) => {
      const key = JSON.stringify([part, shape]);
      const last = kept.get(of);
      if (last?.key === key) return last.tensor;
      // Gigabytes: the old one goes before the new one comes.
      kept.delete(of);
      const tensor = partOf({ a, b }[of], part, shape);
      kept.set(of, { key, tensor });
      return tensor;
    },
    sample: (rows, parts) => {
      const key = `${parts}: ${rows.join()}`;
      const sampled = known.get(key) ?? sampleRows(a, b, { rows, parts, exact: mode === "signs" });
      known.set(key, sampled);
      return sampled;
    },
  };
}

const draws: { readonly [M in LargeMode]: (k: number) => (random: Random) => number } = {
  signs: (k) => {
    const present = Math.min(1, Math.sqrt(mostSigns / k));
    return (random) => (random.float() < present ? 2 * random.integer(2) - 1 : 0);
  },
  uniform: () => (random) => 2 * random.float() - 1,
};

/** In blocks of rows, so that A is never whole in memory. */
async function plainProduct(a: LargeMatrix, b: LargeMatrix, on: Backend): Promise<Tensor> {
  const [m, k, n] = [a.rows, a.columns, b.columns];
  const rows = Math.min(m, blockRows);
  invariant(m % rows === 0, "blocks of equal size", { m, rows });
  const f = new Fusion();
  f.output(matmul(f.input([rows, k], a.dtype), f.input([k, n], b.dtype)));
  const executor = await MultiDeviceExecutor.create(f, { devices: 1, on });
  try {
    const product = emptyTensor(a.dtype, [m, n]);
    const right = partOf(b, { rows: [{ start: 0, count: k }], columns: { start: 0, count: n } }, [k, n]);
    for (let start = 0, filled = 0; start < m; start += rows) {
      const left = partOf(a, { rows: [{ start, count: rows }], columns: { start: 0, count: k } }, [rows, k]);
      const block = at(await executor.run([left, right]), 0);
      invariant(!isSharded(block), "one rank has the whole block");
      tensorBytes(product).set(tensorBytes(block), filled);
      filled += tensorBytes(block).length;
    }
    return product;
  } finally {
    await executor.close();
  }
}

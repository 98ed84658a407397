/**
 * GEMMs of half and bfloat16 by a library that has GEMMs of float: blocks of the operands are cast into the scratch and
 * multiplied there, and the sums are rounded once. A block along k adds to the sums of those before it.
 */
import type { Kernel, Operand } from "../../commands/kernel.ts";
import { type DType, dtypes, isPacked } from "../../numerics/dtype.ts";
import type { Contraction, MatrixStrides } from "./contraction.ts";
import { type Gemm, gemmScratchBytes, overBatch } from "./gemm.ts";

export interface WideningTools {
  /** Null for a GEMM that the library does not take. */
  readonly gemms: (contraction: Contraction) => Gemm | null;
  readonly prepare: (kernel: Kernel) => (inputs: readonly number[], outputs: readonly number[]) => void;
}

/** The sums of a block are 4 MiB, and its operands 2 MiB each: casts take about 3 % of the time of the GEMM. */
const mostExtent = 1024;
const mostDepth = 512;

/** Casts of thinner matrices take longer than a library saves. */
const leastExtent = 32;

interface Layout {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Byte offsets of the cast operands; the sums are at 0. */
  readonly a: number;
  readonly b: number;
  readonly bytes: number;
}

/** Null for a GEMM that is not widened. */
function layoutOf(contraction: Contraction): Layout | null {
  const { m, n, k } = contraction;
  if (!isPacked(contraction.narrow ?? contraction.dtype) || Math.min(m, n, k) < leastExtent) return null;
  const [rows, columns, depth] = [blockOf(m, mostExtent), blockOf(n, mostExtent), blockOf(k, mostDepth)];
  const bytesOf = (elements: number): number => Math.ceil(elements / 16) * 64;
  const a = bytesOf(rows * columns);
  const b = a + bytesOf(rows * depth);
  return { rows, columns, depth, a, b, bytes: b + bytesOf(depth * columns) };
}

/** The most that a GEMM needs, by a library or without one. */
export function contractionScratchBytes(contraction: Contraction): number {
  return Math.max(gemmScratchBytes(contraction), layoutOf(contraction)?.bytes ?? 0);
}

/** Null if the library does not take the GEMM. `scratch` is the address of `contractionScratchBytes` bytes. */
export function prepareWidenedGemm(contraction: Contraction, tools: WideningTools, scratch: number): Gemm | null {
  const layout = layoutOf(contraction);
  if (layout === null || (contraction.bias !== null && contraction.accumulate === true)) return null;
  const { dtype, m, n, k, a, b, c, bias } = contraction;
  const narrow = contraction.narrow ?? contraction.dtype;
  const [aAddress, bAddress] = [scratch + layout.a, scratch + layout.b];
  const prepared = new Map<string, ReturnType<WideningTools["prepare"]>>();
  const cast = (from: Operand, to: Operand, source: number, target: number): void => {
    const key = JSON.stringify([from, to]);
    const run = prepared.get(key) ?? tools.prepare(moveKernel(from, to));
    prepared.set(key, run);
    run([source], [target]);
  };
  const load = (strides: MatrixStrides, extents: Extents, source: number, target: number): void => {
    cast(matrix(narrow, extents, strides), matrix("float", extents, packed(extents, strides)), source, target);
  };
  const starts = contraction.accumulate === true || bias !== null;
  const products = new Map<string, Gemm | null>();
  const productOf = (rows: number, columns: number, depth: number, accumulate: boolean): Gemm | null => {
    const key = `${rows} ${columns} ${depth} ${accumulate}`;
    const known = products.get(key);
    if (known !== undefined) return known;
    const made = tools.gemms({
      dtype: "float",
      m: rows,
      n: columns,
      k: depth,
      batch: [],
      a: packed([rows, depth], a),
      b: packed([depth, columns], b),
      c: { row: columns, column: 1 },
      bias: null,
      accumulate,
    });
    products.set(key, made);
    return made;
  };
  const [rowBlocks, columnBlocks, depthBlocks] = [
    blocks(m, layout.rows),
    blocks(n, layout.columns),
    blocks(k, layout.depth),
  ];
  for (const { count: rows } of rowBlocks) {
    for (const { count: columns } of columnBlocks) {
      for (const { start, count } of depthBlocks) {
        if (productOf(rows, columns, count, starts || start > 0) === null) return null;
      }
    }
  }
  return overBatch(contraction, (aBase, bBase, biasBase, cBase) => {
    const at = (base: number, { row, column }: MatrixStrides, i: number, j: number, of = dtype): number =>
      base + (i * row + j * column) * dtypes[of].bytes;
    for (const { start: j, count: columns } of columnBlocks) {
      for (const { start: i, count: rows } of rowBlocks) {
        const sums = { row: columns, column: 1 };
        const target = at(cBase, c, i, j);
        const first = { row: 0, column: bias ?? 0 };
        const before =
          bias === null ? { strides: c, address: target } : { strides: first, address: at(biasBase, first, 0, j) };
        const extents = [rows, columns] as const;
        if (starts)
          cast(matrix(dtype, extents, before.strides), matrix("float", extents, sums), before.address, scratch);
        for (const { start: p, count: depth } of depthBlocks) {
          load(a, [rows, depth], at(aBase, a, i, p, narrow), aAddress);
          load(b, [depth, columns], at(bBase, b, p, j, narrow), bAddress);
          productOf(rows, columns, depth, starts || p > 0)?.(aAddress, bAddress, 0, scratch);
        }
        cast(matrix("float", extents, sums), matrix(dtype, extents, c), scratch, target);
      }
    }
  });
}

type Extents = readonly [rows: number, columns: number];

/** Contiguous, in the order in which the matrix lies in memory. */
function packed([rows, columns]: Extents, { row, column }: MatrixStrides): MatrixStrides {
  return row < column ? { row: 1, column: rows } : { row: columns, column: 1 };
}

function matrix(dtype: DType, shape: Extents, { row, column }: MatrixStrides): Operand {
  return { dtype, shape, strides: [row, column] };
}

interface Block {
  readonly start: number;
  readonly count: number;
}

/** Of nearly equal blocks. */
function blockOf(extent: number, most: number): number {
  return Math.ceil(extent / Math.ceil(extent / most));
}

function blocks(extent: number, block: number): readonly Block[] {
  return Array.from({ length: Math.ceil(extent / block) }, (_, i) => ({
    start: i * block,
    count: Math.min(block, extent - i * block),
  }));
}

/** Copies an operand to another one of the same shape, perhaps of another dtype. */
export function moveKernel(from: Operand, to: Operand): Kernel {
  if (from.dtype !== to.dtype) return { kind: "cast", inputs: [from], outputs: [to] };
  return {
    kind: "unit",
    inputs: [from],
    outputs: [to],
    values: [from, to].map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [{ kind: "Set", inputs: [0], output: 1 }],
    results: [1],
  };
}

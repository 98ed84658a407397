/**
 * GEMMs in WebAssembly SIMD (scripts/gemm-wat.ts). Operands are packed into strips that stay in cache; tiles of 4 rows
 * by two vectors accumulate in registers. Packing reads any strides and widens half and bfloat16, so transposed,
 * broadcast and 16-bit operands need no other code. The scheme is from Goto and van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication" (ACM TOMS 34, 2008).
 *
 * Each element adds its terms in the accumulator's type in the order of numerics/sum-order.ts: a block over k from +0
 * in increasing k, then the sums of blocks. A GEMM that accumulates starts the last level from the element of c. The
 * bits of an element therefore do not depend on how this driver, or its caller, divides m and n.
 */
import { accumulatorOf, type DType, dtypes, isPacked, type PackedDType } from "../../numerics/dtype.ts";
import { contractionBlock, sumBlock, sumLevels } from "../../numerics/sum-order.ts";
import { invariant } from "../../support/invariant.ts";
import { instantiateWasm, isShared, type WasmExports, type WasmMemory } from "../../support/webassembly.ts";
import type { Contraction, MatrixStrides } from "./contraction.ts";
import { gemmWasm, tileRows } from "./gemm-wasm.ts";

/** Takes byte addresses; `bias` is 0 without a bias. */
export type Gemm = (a: number, b: number, bias: number, c: number) => void;

export function instantiateGemm(memory: WasmMemory): WasmExports {
  return instantiateWasm(decodeBase64(gemmWasm[isShared(memory) ? "shared" : "unshared"]), memory);
}

/**
 * Extents of a packed block; along k it has `contractionBlock` elements. A block of a (256 KiB) stays in the L2 cache,
 * a strip of b (8 KiB) in the L1 cache. Measured on 1024^3 in float and double, extents between half and twice these
 * values change the time by at most 5 %.
 */
const mostRows = 256;
const mostColumns = 1024;

/** Bytes of a tile's row: two vectors. */
const tileRowBytes = 32;

/** Block extents, and offsets in the scratch: in bytes, all multiples of 16. */
interface GemmLayout {
  readonly type: GemmType;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly tileColumns: number;
  readonly packedA: number;
  readonly packedB: number;
  readonly bias: number;
  readonly sums: number;
  /**
   * Bytes between the sums of two tiles. 0 if one tile's space is enough: no block over k resumes, and no sum starts
   * from c.
   */
  readonly sumsStep: number;
  /** Levels of stored sums, and the bytes of each. */
  readonly levels: number;
  readonly levelBytes: number;
  readonly bytes: number;
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

/** Divides an extent into blocks of nearly equal size, so that the last block is not much smaller. */
function blockOf(extent: number, most: number, multiple: number): number {
  return roundUp(Math.ceil(extent / Math.ceil(extent / most)), multiple);
}

function layoutOf(contraction: Contraction): GemmLayout {
  const { dtype, m, n, k, accumulate = false } = contraction;
  const type = gemmTypeOf(requireGemmDType(dtype), requireGemmDType(contraction.narrow ?? contraction.dtype));
  const tileColumns = tileRowBytes / type.packedBytes;
  const rows = blockOf(m, mostRows, tileRows);
  const columns = blockOf(n, mostColumns, tileColumns);
  const depth = Math.min(k, contractionBlock(dtype));
  const tileBytes = tileRows * tileRowBytes;
  const sumsStep = depth < k || accumulate ? tileBytes : 0;
  const tiles = sumsStep === 0 ? 1 : (rows / tileRows) * (columns / tileColumns);
  const packedB = roundUp(rows * depth * type.packedBytes, 16);
  const bias = packedB + columns * depth * type.packedBytes;
  const sums = bias + columns * type.packedBytes;
  // The first level stays in registers, but a finished tile is stored once even if it is the only level.
  const levels = Math.max(1, sumLevels(k, depth) - 1);
  const levelBytes = tiles * tileBytes;
  const bytes = sums + levels * levelBytes;
  return {
    type,
    rows,
    columns,
    depth,
    tileColumns,
    packedA: 0,
    packedB,
    bias,
    sums,
    sumsStep,
    levels,
    levelBytes,
    bytes,
  };
}

function requireGemmDType(dtype: Contraction["dtype"]): GemmDType {
  invariant(dtype !== "bool", "contractions of bool do not exist");
  return dtype;
}

/** Bytes of scratch. Its address must be a multiple of 16. */
export function gemmScratchBytes(contraction: Contraction): number {
  return layoutOf(contraction).bytes;
}

export function prepareGemm(contraction: Contraction, wasm: WasmExports, scratch: number): Gemm {
  const layout = layoutOf(contraction);
  const product = prepareMatrixPair(contraction, layout, wasm, scratch);
  return overBatch(contraction, product);
}

/** `product`, which multiplies one pair of matrices, for every index of the batch axes. */
export function overBatch(contraction: Contraction, product: Gemm): Gemm {
  const bytes = dtypes[contraction.dtype].bytes;
  const own = dtypes[contraction.narrow ?? contraction.dtype].bytes;
  return contraction.batch.reduceRight<Gemm>(
    (inner, axis) => (a, b, bias, c) => {
      for (let i = 0; i < axis.extent; i++) {
        inner(a + i * axis.a * own, b + i * axis.b * own, bias, c + i * axis.c * bytes);
      }
    },
    product,
  );
}

/** A range of columns of b and c, and whether b's strips are packed or read in place. */
interface ColumnRange {
  /** Relative to the block's first column. */
  readonly first: number;
  readonly count: number;
  readonly packed: boolean;
}

/**
 * With one row of tiles, every strip of b is read once, so packing it would not pay. If b's rows are contiguous, whole
 * strips are read in place. The remaining columns are packed, because a tile reads whole vectors.
 */
function columnRanges(width: number, tileColumns: number, inPlace: boolean): readonly ColumnRange[] {
  if (!inPlace) return [{ first: 0, count: width, packed: true }];
  const whole = width - (width % tileColumns);
  const ranges = [
    { first: 0, count: whole, packed: false },
    { first: whole, count: width - whole, packed: true },
  ];
  return ranges.filter(({ count }) => count > 0);
}

/** The GEMM of one pair of matrices. */
function prepareMatrixPair(contraction: Contraction, layout: GemmLayout, wasm: WasmExports, scratch: number): Gemm {
  const { m, n, k, accumulate = false } = contraction;
  const { type, rows, columns, depth, tileColumns, sumsStep, levels, levelBytes } = layout;
  const [bytes, own] = [dtypes[contraction.dtype].bytes, dtypes[contraction.narrow ?? contraction.dtype].bytes];
  const [pack, packResult] = [functionOf(wasm, type.pack), functionOf(wasm, type.packResult)];
  const multiply = functionOf(wasm, type.multiply);
  const fold = functionOf(wasm, type.fold);
  const inBytes = ({ row, column }: MatrixStrides, size: number): MatrixStrides => ({
    row: row * size,
    column: column * size,
  });
  const strideA = inBytes(contraction.a, own);
  const strideB = inBytes(contraction.b, own);
  const strideC = inBytes(contraction.c, bytes);
  const biasStride = (contraction.bias ?? 0) * bytes;
  const packedA = scratch + layout.packedA;
  const packedB = scratch + layout.packedB;
  const packedBias = scratch + layout.bias;
  const sums = scratch + layout.sums;
  const lastSums = sums + (levels - 1) * levelBytes;
  const inPlace = m <= tileRows && own === type.packedBytes && contraction.b.column === 1;
  /** With one block of rows, or one block of k, a packed block serves several blocks of the other operand. */
  const keepsA = rows >= m && depth >= k;
  const keepsB = depth >= k;
  /** The last level of sums begins as the elements of c: a strip of columns has its tiles one below the other. */
  const loadSums = (c: number, height: number, width: number): void => {
    const stripBytes = Math.ceil(height / tileRows) * sumsStep;
    for (let column = 0; column < width; column += tileColumns) {
      const count = Math.min(tileColumns, width - column);
      const to = lastSums + (column / tileColumns) * stripBytes;
      packResult(to, c + column * strideC.column, count, height, strideC.column, strideC.row, tileColumns);
    }
  };

  /** Whether term number `index` of a level is added to earlier ones: 1 or 0. */
  const resumes = (index: number, level: number): number =>
    (level === levels ? index > 0 || accumulate : index % sumBlock > 0) ? 1 : 0;
  /** After `blocks` blocks over k, adds every full level to the next one; after the last block, every level. */
  const foldLevels = (blocks: number, isLast: boolean): void => {
    for (let level = 1, terms = blocks; level < levels; level++) {
      if (!isLast && terms % sumBlock > 0) return;
      terms = Math.ceil(terms / sumBlock);
      const from = sums + (level - 1) * levelBytes;
      fold(from + levelBytes, from, levelBytes, resumes(terms - 1, level + 1));
    }
  };

  /** Bytes of the sums of the columns before `column` of a block. */
  const tilesBefore = (column: number, height: number): number =>
    (column / tileColumns) * Math.ceil(height / tileRows) * sumsStep;

  return (a, b, bias, c) => {
    const target = (row: number, column: number): readonly [number, number, number] => [
      c + row * strideC.row + column * strideC.column,
      strideC.row,
      strideC.column,
    ];
    for (let j = 0; j < n; j += columns) {
      const width = Math.min(columns, n - j);
      const ranges = columnRanges(width, tileColumns, inPlace);
      if (bias !== 0) packResult(packedBias, bias + j * biasStride, width, 1, biasStride, 0, tileColumns);
      for (let i = 0; i < m; i += rows) {
        const height = Math.min(rows, m - i);
        if (accumulate) loadSums(c + i * strideC.row + j * strideC.column, height, width);
        for (let p = 0; p < k; p += depth) {
          const length = Math.min(depth, k - p);
          if (j === 0 || !keepsA) {
            const from = a + i * strideA.row + p * strideA.column;
            pack(packedA, from, height, length, strideA.row, strideA.column, tileRows);
          }
          for (const { first, count, packed } of ranges) {
            const column = j + first;
            const from = b + p * strideB.row + column * strideB.column;
            if (packed && (i === 0 || !keepsB)) {
              pack(packedB, from, count, length, strideB.column, strideB.row, tileColumns);
            }
            const finishes = p + length === k && levels === 1;
            multiply(
              packedA,
              packed ? packedB : from,
              packed ? length * tileRowBytes : tileRowBytes,
              packed ? tileRowBytes : strideB.row,
              height,
              count,
              length,
              sums + tilesBefore(first, height),
              sumsStep,
              resumes(p / depth, 1),
              finishes ? type.output : 0,
              ...target(i, column),
              bias === 0 ? 0 : packedBias + first * type.packedBytes,
            );
          }
          foldLevels(p / depth + 1, p + length === k);
        }
        if (levels === 1) continue;
        for (const { first, count } of ranges) {
          const from = lastSums + tilesBefore(first, height);
          const ofBias = bias === 0 ? 0 : packedBias + first * type.packedBytes;
          multiply(0, 0, 0, 0, height, count, 0, from, sumsStep, 0, type.output, ...target(i, j + first), ofBias);
        }
      }
    }
  };
}

function functionOf(wasm: WasmExports, name: string): (...values: readonly number[]) => void {
  const found = wasm[name];
  invariant(found !== undefined, "the module exports what its table names", { name });
  return found;
}

/** There are no contractions of bool. */
type GemmDType = Exclude<DType, "bool">;

interface GemmType {
  readonly pack: string;
  /** Of c and the bias. */
  readonly packResult: string;
  readonly multiply: string;
  readonly fold: string;
  /** Bytes of a packed element, and of an accumulator. */
  readonly packedBytes: number;
  /** 1 + the index of the output format among the formats of `multiply`. */
  readonly output: number;
}

function gemmTypeOf(dtype: GemmDType, ofOperands: GemmDType): GemmType {
  const { type, bytes } = dtypes[accumulatorOf(dtype)];
  const packOf = (of: GemmDType): string => `pack_${isPacked(of) ? of : `bits${8 * bytes}`}`;
  const output = isPacked(dtype) ? packedFormats.indexOf(dtype) + 2 : 1;
  return {
    pack: packOf(ofOperands),
    packResult: packOf(dtype),
    multiply: `multiply_${type}`,
    fold: `fold_${type}`,
    packedBytes: bytes,
    output,
  };
}

const packedFormats: readonly PackedDType[] = ["half", "bfloat16"];

/** Decodes base64. Every host has a decoder, but the ECMAScript library that the core compiles with does not. */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const digitOf = new Uint8Array(128);
for (let digit = 0; digit < 64; digit++) digitOf[alphabet.charCodeAt(digit)] = digit;

/** `text` uses the standard alphabet with padding. */
export function decodeBase64(text: string): Uint8Array {
  const length = text.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  let bits = 0;
  let held = 0;
  let next = 0;
  for (let i = 0; i < length; i++) {
    bits = ((bits << 6) | (digitOf[text.charCodeAt(i)] ?? 0)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[next++] = (bits >>> held) & 0xff;
  }
  return bytes;
}

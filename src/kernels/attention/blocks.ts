/**
 * Attention goes through blocks of query rows: the scores of a block are in the scratch, and no more of the Lq x Lk
 * scores exist at a time. A row's bits do not depend on the block that it is in: its scores and its exponentials add in
 * sum-order.ts's order, and keys that it does not see add zeros at the end. With a window, they do: the sums of a block
 * begin at the first key that one of its rows sees.
 */
import { type AttentionKernel, biasOf, hasKeyLengths } from "../../commands/attention.ts";
import type { Operand, UnitKernel, UnitStep, UnitValue } from "../../commands/kernel.ts";
import { contiguousStrides } from "../../commands/view.ts";
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import type { NumberOperand } from "../../ir/ops/number-operand.ts";
import { accumulatorOf, type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Contraction, MatrixStrides } from "../gemm/contraction.ts";

/** A multiple of the GEMM's tile. Scores of 64 x 8192 floats are 2 MB. */
const blockRows = 64;

export interface RowBlock {
  readonly start: number;
  readonly rows: number;
  /** The first key that a row sees. */
  readonly first: number;
  /** How many keys there are from it to the last one that a row sees. */
  readonly keys: number;
  /** As `keys`, or a few more, so that blocks have few widths, and units are prepared once per width. */
  readonly width: number;
}

/** How many widths blocks have at most. With 4, causal blocks compute an eighth more of their scores than they need. */
const mostWidths = 4;

/** `mayBeFewer`: there may be fewer keys when the kernel runs. */
function rowBlocks(mask: SeenKeys, rows: number, keys: number, mayBeFewer: boolean): readonly RowBlock[] {
  const step = Math.max(blockRows, Math.ceil(Math.min(keys, (mask.window ?? keys) + blockRows) / mostWidths));
  return Array.from({ length: Math.ceil(rows / blockRows) }, (_, i) => {
    const start = i * blockRows;
    const stop = Math.min(rows, start + blockRows);
    const first = mayBeFewer ? 0 : visibleKeys(mask, start, rows, keys).first;
    const seen = Math.max(0, visibleKeys(mask, stop - 1, rows, keys).stop - first);
    return {
      start,
      rows: stop - start,
      first,
      keys: seen,
      width: Math.min(keys - first, Math.ceil(seen / step) * step),
    };
  });
}

/** The keys that a query row sees, of `length` that there are: from `first` on, before `stop`. */
export function visibleKeys(
  { causal, window }: SeenKeys,
  row: number,
  rows: number,
  keys: number,
  length = keys,
): { readonly first: number; readonly stop: number } {
  const last = causal === null ? length : row + 1 + (causal === "topLeft" ? 0 : length - rows);
  const stop = Math.max(0, Math.min(keys, length, last));
  return { first: window === null ? 0 : Math.min(stop, Math.max(0, last - window)), stop };
}

/** Fills the scores of a row of a block with `value` where it does not see a key. */
export function fillUnseen(
  scores: Float32Array | Float64Array,
  start: number,
  { first, width }: RowBlock,
  seen: ReturnType<typeof visibleKeys>,
  value: number,
): void {
  const place = start - first;
  if (seen.first > first) scores.fill(value, start, place + seen.first);
  scores.fill(value, place + seen.stop, start + width);
}

/** The first block of each shape that units have. */
export function blockShapes(blocks: readonly RowBlock[]): readonly RowBlock[] {
  return [...new Map(blocks.map((block) => [shapeKey(block), block])).values()].filter(({ width }) => width > 0);
}

export function shapeKey({ rows, width }: RowBlock): string {
  return `${rows}x${width}`;
}

export interface AttentionShape {
  /** Of the scores and of all that is accumulated. */
  readonly dtype: "float" | "double";
  /** Elements of a row of queries and keys. */
  readonly d: number;
  /** Elements of a row of values. */
  readonly e: number;
  readonly rows: number;
  readonly keys: number;
  readonly blocks: readonly RowBlock[];
  /** Elements from a row of scores to the next one. */
  readonly scoresStep: number;
}

export function attentionShape(kernel: AttentionKernel): AttentionShape {
  const { inputs } = kernel;
  const first = queriesOf(kernel);
  const [q, k, v] = [matrixOf(at(inputs, first)), matrixOf(at(inputs, first + 1)), matrixOf(at(inputs, first + 2))];
  const dtype = accumulatorOf(at(inputs, 0).dtype) === "double" ? "double" : "float";
  const blocks = rowBlocks(kernel, q.rows, k.rows, hasKeyLengths(kernel));
  const scoresStep = blocks.reduce((most, { width }) => Math.max(most, width), 0);
  return { dtype, d: q.columns, e: v.columns, rows: q.rows, keys: k.rows, blocks, scoresStep };
}

/** The position of the queries among the inputs; keys and values follow them. */
function queriesOf({ kind }: AttentionKernel): 0 | 1 {
  return kind === "sdpa" ? 0 : 1;
}

/** The last two axes of an operand, of one head. */
export interface Matrix {
  readonly dtype: DType;
  readonly rows: number;
  readonly columns: number;
  readonly strides: MatrixStrides;
}

export function matrixOf({ dtype, shape, strides }: Operand): Matrix {
  const [row, column] = [shape.length - 2, shape.length - 1];
  return {
    dtype,
    rows: at(shape, row),
    columns: at(shape, column),
    strides: { row: at(strides, row), column: at(strides, column) },
  };
}

export function transposed({ row, column }: MatrixStrides): MatrixStrides {
  return { row: column, column: row };
}

/** A row-major matrix in the scratch. */
export function dense(columns: number): MatrixStrides {
  return { row: columns, column: 1 };
}

/** Of an operand as GEMMs read it: where it lies, or converted row-major in the scratch. */
export function readStrides(operand: Operand): MatrixStrides {
  const { strides, columns } = matrixOf(operand);
  return isWide(operand.dtype) ? strides : dense(columns);
}

/** Whether a GEMM has nothing to add: no GEMM is made for it. */
export function isEmptyContraction({ m, n, k }: Contraction): boolean {
  return m === 0 || n === 0 || k === 0;
}

/** c [m, n] = a [m, k] b [k, n], one matrix each. */
export function product(
  dtype: DType,
  [m, n, k]: readonly [number, number, number],
  a: MatrixStrides,
  b: MatrixStrides,
  c: MatrixStrides,
  accumulate = false,
): Contraction {
  return { dtype, m, n, k, batch: [], a, b, c, bias: null, ...(accumulate ? { accumulate } : {}) };
}

/** The offsets of all heads, in elements of each operand, in row-major order of the axes in front. */
export interface Heads {
  /** Axes that keys and values have. */
  readonly outer: readonly (readonly number[])[];
  /** Axes along which heads of queries share keys and values. */
  readonly shared: readonly (readonly number[])[];
}

export function headsOf(kernel: AttentionKernel): Heads {
  const operands = [...kernel.inputs, ...kernel.outputs];
  const queries = queriesOf(kernel);
  const extents = at(kernel.inputs, queries).shape.slice(0, -2);
  const keys = at(kernel.inputs, queries + 1).shape;
  const isShared = extents.map((extent, axis) => at(keys, axis) !== extent);
  const over = (shared: boolean): readonly (readonly number[])[] =>
    offsets(
      extents.flatMap((extent, axis) =>
        isShared[axis] === shared
          ? [{ extent, steps: operands.map(({ shape, strides }) => (at(shape, axis) === 1 ? 0 : at(strides, axis))) }]
          : [],
      ),
      operands.length,
    );
  return { outer: over(false), shared: over(true) };
}

function offsets(
  axes: readonly { readonly extent: number; readonly steps: readonly number[] }[],
  count: number,
): readonly (readonly number[])[] {
  return axes.reduce<readonly (readonly number[])[]>(
    (list, { extent, steps }) =>
      list.flatMap((base) =>
        Array.from({ length: extent }, (_, i) => base.map((offset, operand) => offset + i * at(steps, operand))),
      ),
    [Array.from({ length: count }, () => 0)],
  );
}

/** Places matrices in the scratch one after the other; offsets in bytes. */
export function scratchLayout<K extends string>(
  dtype: DType,
  elements: Readonly<Record<K, number>>,
): { readonly offsets: Readonly<Record<K, number>>; readonly bytes: number } {
  const size = dtypes[dtype].bytes;
  let bytes = 0;
  const offsets: Record<K, number> = { ...elements };
  for (const name in elements) {
    offsets[name] = bytes;
    bytes += Math.ceil((elements[name] * size) / scratchAlignment) * scratchAlignment;
  }
  return { offsets, bytes };
}

const scratchAlignment = 64;

/** Whether GEMMs can read the operand where it lies: scores are in the accumulator's dtype. */
export function isWide(dtype: DType): boolean {
  return accumulatorOf(dtype) === dtype;
}

/** A row-major operand. */
export function denseOperand(dtype: DType, rows: number, columns: number): Operand {
  const shape = [rows, columns];
  return { dtype, shape, strides: contiguousStrides(shape) };
}

/** `rows` rows of the last two axes of an operand. */
export function rowsOperand({ dtype, shape, strides }: Operand, rows: number): Operand {
  return { dtype, shape: [rows, at(shape, shape.length - 1)], strides: strides.slice(-2) };
}

// What attention computes with the rows of a block beside GEMMs, as units, which run in WebAssembly SIMD.

/** The scores of a block of queries. */
export function scoreRows({ dtype, scoresStep }: AttentionShape, { rows, width }: RowBlock): Operand {
  return { dtype, shape: [rows, width], strides: [scoresStep, 1] };
}

/** One element per row. */
export function rowStatistics(dtype: DType, rows: number, stride = 1): Operand {
  return { dtype, shape: [rows], strides: [stride] };
}

/** In place: the scores of a block, scaled, and the bias added to them, which may have one row or one column. */
export function scaledScores(kernel: AttentionKernel, shape: AttentionShape, block: RowBlock): UnitKernel {
  const [scores, whole, { scale }] = [scoreRows(shape, block), biasOf(kernel), kernel];
  if (whole === null) return unitOf([scores], [scores], [by(scale, 0, 1)], [1]);
  const bias = blockBias(whole, block);
  const cast: UnitStep = { kind: "Cast", to: scores.dtype, inputs: [1], output: 3 };
  const add: UnitStep = { kind: "Binary", op: "add", inputs: [2, 3], output: 4 };
  const values: UnitValue[] = [scores, bias, scores, { ...bias, dtype: scores.dtype }, scores];
  return {
    kind: "unit",
    inputs: [scores, bias],
    outputs: [scores],
    values: values.map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [by(scale, 0, 2), cast, add],
    results: [4],
  };
}

/** The bias of a block, for one head: [rows, width] of it, or 1 along these. */
function blockBias(bias: Operand, { rows, width }: RowBlock): Operand {
  const matrix = matrixOf(bias);
  const shape = [matrix.rows === 1 ? 1 : rows, matrix.columns === 1 ? 1 : width];
  return { dtype: bias.dtype, shape, strides: [matrix.strides.row, matrix.strides.column] };
}

/** In bytes, from the bias of a head to that of a block; 0 without one. */
export function blockBiasOffset(kernel: AttentionKernel, { start, first }: RowBlock): number {
  const bias = biasOf(kernel);
  if (bias === null) return 0;
  const { rows, columns, strides } = matrixOf(bias);
  const elements = (rows === 1 ? 0 : start * strides.row) + (columns === 1 ? 0 : first * strides.column);
  return elements * dtypes[bias.dtype].bytes;
}

/**
 * In place: exponentials of the distances of the scaled scores to the largest of the row, or to 0 if all are -Infinity.
 * Also their sums, and log(sum(exp(scale score))).
 */
export function exponentialRows(scores: Operand, scale: number, sums: Operand, statistics: Operand): UnitKernel {
  return unitOf(
    [scores],
    [scores, sums, statistics],
    [
      by(scale, 0, 1),
      { kind: "Reduction", op: "amax", axes: [1], inputs: [1], output: 2 },
      ...replaced(2, -Infinity, 0, 3),
      toColumn(4, 5),
      { kind: "Binary", op: "sub", inputs: [1, 5], output: 6 },
      { kind: "Unary", op: "exp", inputs: [6], output: 7 },
      { kind: "Reduction", op: "sum", axes: [1], inputs: [7], output: 8 },
      { kind: "Unary", op: "log", inputs: [8], output: 9 },
      { kind: "Binary", op: "add", inputs: [4, 9], output: 10 },
    ],
    [7, 8, 10],
  );
}

/** Divides each row by its sum, in place; a row whose sum is 0, by 1. */
export function divideRows(results: Operand, sums: Operand): UnitKernel {
  const quotient: UnitStep = { kind: "Binary", op: "div", inputs: [0, 4], output: 5 };
  return unitOf([results, sums], [results], [...replaced(1, 0, 1, 2), toColumn(3, 4), quotient], [5]);
}

/**
 * Turns scores into probabilities P = exp(own score - logsumexp), and their gradients dP into those of the scores, P
 * (dP - sum(g o)) scale. Both in place. Where logsumexp is -Infinity, all scores are, and P is 0. `own` is 1 for scores
 * that are scaled already.
 */
export function gradientRows(
  [scores, dp, statistics, g, o]: readonly [Operand, Operand, Operand, Operand, Operand],
  own: number,
  scale: number,
): UnitKernel {
  return unitOf(
    [scores, dp, statistics, g, o],
    [scores, dp],
    [
      { kind: "Binary", op: "mul", inputs: [3, 4], output: 5 },
      { kind: "Reduction", op: "sum", axes: [1], inputs: [5], output: 6 },
      toColumn(6, 7),
      ...replaced(2, -Infinity, 0, 8),
      toColumn(9, 10),
      by(own, 0, 11),
      { kind: "Binary", op: "sub", inputs: [11, 10], output: 12 },
      { kind: "Unary", op: "exp", inputs: [12], output: 13 },
      { kind: "Binary", op: "sub", inputs: [1, 7], output: 14 },
      { kind: "Binary", op: "mul", inputs: [13, 14], output: 15 },
      by(scale, 15, 16),
    ],
    [13, 16],
  );
}

function by(factor: number, input: number, output: number): UnitStep {
  const scalar: NumberOperand = { position: 1, text: `${factor}` };
  return { kind: "Binary", op: "mul", scalar, inputs: [input], output };
}

/** `input`, with `to` where it is `from`. The outputs are the condition, and then the result. */
function replaced(input: number, from: number, to: number, output: number): readonly UnitStep[] {
  return [
    { kind: "Binary", op: "eq", scalar: { position: 1, text: `${from}` }, inputs: [input], output },
    {
      kind: "Ternary",
      op: "where",
      scalar: { position: 1, text: `${to}` },
      inputs: [output, input],
      output: output + 1,
    },
  ];
}

/** A value per row, as a column. */
function toColumn(input: number, output: number): UnitStep {
  return { kind: "Broadcast", flags: [false, true], inputs: [input], output };
}

/** All values but conditions have the dtype of the first input. The output of step i is the value after inputs and earlier steps. */
function unitOf(
  inputs: readonly Operand[],
  outputs: readonly Operand[],
  steps: readonly UnitStep[],
  results: readonly number[],
): UnitKernel {
  const { dtype } = at(inputs, 0);
  const values: UnitValue[] = inputs.map(({ shape }) => ({ dtype, shape }));
  for (const step of steps) {
    const { shape } = at(values, at(step.inputs, 0));
    const rows = shape.slice(0, 1);
    const isCondition = step.kind === "Binary" && step.op === "eq";
    values.push({
      dtype: isCondition ? "bool" : dtype,
      shape: step.kind === "Reduction" ? rows : step.kind === "Broadcast" ? [...rows, 1] : shape,
    });
  }
  return { kind: "unit", inputs, outputs, values, steps, results };
}

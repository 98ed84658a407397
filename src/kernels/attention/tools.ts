/** What kernels of attention are made of: GEMMs and copies that convert, over one scratch. */
import type { Kernel, Operand } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Contraction, MatrixStrides } from "../gemm/contraction.ts";
import type { Gemm } from "../gemm/gemm.ts";
import { moveKernel } from "../gemm/widened-gemm.ts";
import {
  blockShapes,
  denseOperand,
  isWide,
  type Matrix,
  matrixOf,
  readStrides,
  type RowBlock,
  rowsOperand,
  shapeKey,
} from "./blocks.ts";

export interface AttentionTools {
  readonly gemm: (contraction: Contraction) => Gemm;
  /** A kernel on the rows of a block. */
  readonly prepare: (kernel: Kernel) => (inputs: readonly number[], outputs: readonly number[]) => void;
  readonly floats: Float32Array | Float64Array;
}

/** A kernel for the blocks of each shape, by `shapeKey`. */
export function preparedByShape(
  tools: AttentionTools,
  blocks: readonly RowBlock[],
  kernelOf: (block: RowBlock) => Kernel,
): ReadonlyMap<string, ReturnType<AttentionTools["prepare"]>> {
  return new Map(blockShapes(blocks).map((block) => [shapeKey(block), tools.prepare(kernelOf(block))]));
}

/** Rows of an operand as GEMMs read them: in place, or converted into the scratch. */
export interface LoadedMatrix {
  readonly strides: MatrixStrides;
  /** From a row to the next one, where `load` says. */
  readonly rowBytes: number;
  /** The address of the rows from `first` on. Converts them, if need be. `head` is the address of the head's row 0. */
  readonly load: (head: number, first: number, rows: number) => number;
}

export function loadedMatrix(
  tools: AttentionTools,
  operand: Operand,
  wide: Operand["dtype"],
  scratch: number,
): LoadedMatrix {
  const matrix: Matrix = matrixOf(operand);
  const bytes = dtypes[operand.dtype].bytes;
  const step = matrix.strides.row * bytes;
  if (isWide(operand.dtype))
    return { strides: matrix.strides, rowBytes: step, load: (head, first) => head + first * step };
  const movers = new Map<number, ReturnType<AttentionTools["prepare"]>>();
  return {
    strides: readStrides(operand),
    rowBytes: matrix.columns * dtypes[wide].bytes,
    load: (head, first, rows) => {
      const move =
        movers.get(rows) ??
        tools.prepare(moveKernel(rowsOperand(operand, rows), denseOperand(wide, rows, matrix.columns)));
      movers.set(rows, move);
      if (matrix.columns > 0) move([head + first * step], [scratch]);
      return scratch;
    },
  };
}

/** Stores rows that lie row-major at `scratch` into an operand. */
export function storedMatrix(
  tools: AttentionTools,
  operand: Operand,
  wide: Operand["dtype"],
  scratch: number,
): (head: number, first: number, rows: number) => void {
  const { columns, strides } = matrixOf(operand);
  const step = strides.row * dtypes[operand.dtype].bytes;
  const movers = new Map<number, ReturnType<AttentionTools["prepare"]>>();
  return (head, first, rows) => {
    if (columns === 0 || rows === 0) return;
    const move =
      movers.get(rows) ?? tools.prepare(moveKernel(denseOperand(wide, rows, columns), rowsOperand(operand, rows)));
    movers.set(rows, move);
    move([scratch], [head + first * step]);
  };
}

/** The addresses of all operands of a head, from their element offsets. */
export function headAddresses(
  operands: readonly Operand[],
  addresses: readonly number[],
  ...offsets: readonly (readonly number[])[]
): readonly number[] {
  return operands.map(({ dtype }, i) => {
    const elements = offsets.reduce((sum, each) => sum + at(each, i), 0);
    return at(addresses, i) + elements * dtypes[dtype].bytes;
  });
}

/** softmax(scale q k^T) v, block by block of query rows (blocks.ts). */
import type { Kernel, SdpaKernel, UnitKernel } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Contraction } from "../gemm/contraction.ts";
import { biasOf, hasKeyLengths } from "../../commands/attention.ts";
import {
  type AttentionShape,
  blockBiasOffset,
  blockShapes,
  dense,
  denseOperand,
  divideRows,
  exponentialRows,
  fillUnseen,
  headsOf,
  isEmptyContraction,
  isWide,
  product,
  readStrides,
  type RowBlock,
  rowStatistics,
  scaledScores,
  scoreRows,
  scratchLayout,
  shapeKey,
  attentionShape,
  transposed,
  visibleKeys,
} from "./blocks.ts";
import { type AttentionTools, headAddresses, loadedMatrix, preparedByShape, storedMatrix } from "./tools.ts";

export function forwardScratch(kernel: SdpaKernel): ReturnType<typeof layoutOf> {
  return layoutOf(kernel, attentionShape(kernel));
}

function layoutOf(
  { inputs }: SdpaKernel,
  { dtype, d, e, keys, blocks, scoresStep }: AttentionShape,
): ReturnType<typeof scratchLayout<"scores" | "sums" | "results" | "q" | "k" | "v">> {
  const most = blocks[0]?.rows ?? 0;
  const copied = isWide(at(inputs, 0).dtype) ? 0 : 1;
  return scratchLayout(dtype, {
    scores: most * scoresStep,
    sums: most,
    results: most * e,
    q: copied * most * d,
    k: copied * keys * d,
    v: copied * keys * e,
  });
}

/** The GEMMs of a block: its scores, and its results. */
function products(
  kernel: SdpaKernel,
  shape: AttentionShape,
  { rows, keys }: RowBlock,
): readonly [Contraction, Contraction] {
  const { dtype, d, e } = shape;
  // The numbers of keys, which may follow, are no matrices.
  const strides = kernel.inputs.slice(0, 3).map(readStrides);
  const scores = dense(shape.scoresStep);
  return [
    product(dtype, [rows, keys, d], at(strides, 0), transposed(at(strides, 1)), scores),
    product(dtype, [rows, e, keys], scores, at(strides, 2), dense(e)),
  ];
}

export function forwardProducts(kernel: SdpaKernel): readonly Contraction[] {
  const shape = attentionShape(kernel);
  return shape.blocks.flatMap((block) => products(kernel, shape, block)).filter((each) => !isEmptyContraction(each));
}

function exponentialsOf(kernel: SdpaKernel, shape: AttentionShape, block: RowBlock): UnitKernel {
  const { dtype } = shape;
  const { rows } = block;
  const scores = scoreRows(shape, block);
  const statistics = rowStatistics(dtype, rows, at(kernel.outputs, 1).strides.at(-1));
  const scale = scalesFirst(kernel) ? 1 : kernel.scale;
  return exponentialRows(scores, scale, rowStatistics(dtype, rows), statistics);
}

/** Before scores are hidden: none is -Infinity times 0, and a bias is added to scaled scores. */
function scalesFirst(kernel: SdpaKernel): boolean {
  return kernel.scale === 0 || biasOf(kernel) !== null;
}

function divisionOf({ dtype, e }: AttentionShape, rows: number): UnitKernel {
  return divideRows(denseOperand(dtype, rows, e), rowStatistics(dtype, rows));
}

function rowCounts(blocks: readonly RowBlock[]): readonly number[] {
  return [...new Set(blocks.map(({ rows }) => rows))];
}

export function forwardRows(kernel: SdpaKernel): readonly Kernel[] {
  const shape = attentionShape(kernel);
  const divisions = shape.e > 0 ? rowCounts(shape.blocks).map((rows) => divisionOf(shape, rows)) : [];
  const blocks = blockShapes(shape.blocks);
  const units = blocks.map((block) => exponentialsOf(kernel, shape, block));
  return [
    ...units,
    ...(scalesFirst(kernel) ? blocks.map((block) => scaledScores(kernel, shape, block)) : []),
    ...divisions,
  ];
}

/** Takes absolute byte addresses. The scratch has `forwardScratch(kernel).bytes` bytes. */
export function prepareForward(
  kernel: SdpaKernel,
  tools: AttentionTools,
  scratch: number,
): (inputs: readonly number[], outputs: readonly number[]) => void {
  const shape = attentionShape(kernel);
  const { dtype, e, keys, rows, blocks, scoresStep } = shape;
  const { offsets } = layoutOf(kernel, shape);
  const { floats } = tools;
  const [scaled, bias] = [scalesFirst(kernel), biasOf(kernel)];
  // A score that is -Infinity once it is scaled.
  const hidden = kernel.scale < 0 && !scaled ? Infinity : -Infinity;
  const size = dtypes[dtype].bytes;
  const [q, k, v] = (["q", "k", "v"] as const).map((name, i) =>
    loadedMatrix(tools, at(kernel.inputs, i), dtype, scratch + offsets[name]),
  );
  const [kStep, vStep] = [k?.rowBytes ?? 0, v?.rowBytes ?? 0];
  const store = storedMatrix(tools, at(kernel.outputs, 0), dtype, scratch + offsets.results);
  const units = preparedByShape(tools, blocks, (block) => exponentialsOf(kernel, shape, block));
  const scalings = preparedByShape(tools, scaled ? blocks : [], (block) => scaledScores(kernel, shape, block));
  const divisions = new Map(
    rowCounts(blocks).map((count) => [count, e > 0 ? tools.prepare(divisionOf(shape, count)) : null] as const),
  );
  const steps = blocks.map((block) => {
    const [first, second] = products(kernel, shape, block);
    return {
      block,
      scores: isEmptyContraction(first) ? null : tools.gemm(first),
      results: isEmptyContraction(second) ? null : tools.gemm(second),
      scaling: scalings.get(shapeKey(block)),
      biasStep: blockBiasOffset(kernel, block),
      exponentials: units.get(shapeKey(block)),
      divide: divisions.get(block.rows),
    };
  });
  const [scores, sums, results] = [scratch + offsets.scores, scratch + offsets.sums, scratch + offsets.results];
  const statisticsStep = at(kernel.outputs, 1).strides.at(-1) ?? 0;
  const operands = [...kernel.inputs, ...kernel.outputs];
  const last = operands.length - 1;
  const lengths = hasKeyLengths(kernel) ? at(kernel.inputs, 3) : null;
  const integers = lengths?.dtype === "int64" ? new BigInt64Array(floats.buffer) : new Int32Array(floats.buffer);
  const lengthAt = (address: number): number => Number(integers[address / integers.BYTES_PER_ELEMENT]);
  const { outer, shared } = headsOf(kernel);
  const fill = (address: number, from: number, to: number, value: number): void => {
    floats.fill(value, address / size + from, address / size + to);
  };

  return (inputs, outputs) => {
    for (const keyHead of outer) {
      const own = headAddresses(operands, [...inputs, ...outputs], keyHead);
      const kAddress = k?.load(at(own, 1), 0, keys) ?? 0;
      const vAddress = v?.load(at(own, 2), 0, keys) ?? 0;
      for (const head of shared) {
        const addresses = headAddresses(operands, own, head);
        const length = lengths === null ? keys : lengthAt(at(addresses, 3));
        for (const { block, scores: multiply, results: weigh, scaling, biasStep, exponentials, divide } of steps) {
          const { start, first, rows: count } = block;
          const lse = at(addresses, last) + start * statisticsStep * size;
          if (multiply === null) fill(scores, 0, count * scoresStep, 0);
          else multiply(q?.load(at(addresses, 0), start, count) ?? 0, kAddress + first * kStep, 0, scores);
          if (exponentials === undefined) {
            // No row of the block sees a key.
            fill(sums, 0, count, 0);
            for (let row = 0; row < count; row++) fill(lse, row * statisticsStep, row * statisticsStep + 1, -Infinity);
          } else {
            const place = scores / size;
            scaling?.(bias === null ? [scores] : [scores, at(addresses, 3) + biasStep], [scores]);
            for (let row = 0; row < count; row++) {
              const seen = visibleKeys(kernel, start + row, rows, keys, length);
              fillUnseen(floats, place + row * scoresStep, block, seen, hidden);
            }
            exponentials([scores], [scores, sums, lse]);
          }
          if (weigh === null) fill(results, 0, count * e, 0);
          else weigh(scores, vAddress + first * vStep, 0, results);
          divide?.([results, sums], [results]);
          store(at(addresses, last - 1), start, count);
        }
      }
    }
  };
}

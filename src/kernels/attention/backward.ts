/**
 * The gradients of attention, block by block of query rows (blocks.ts). dk and dv add the blocks in order of their
 * rows, and of the heads that share keys and values.
 */
import type { Kernel, Operand, SdpaBackwardKernel, UnitKernel } from "../../commands/kernel.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Contraction, MatrixStrides } from "../gemm/contraction.ts";
import { biasOf } from "../../commands/attention.ts";
import {
  type AttentionShape,
  blockBiasOffset,
  blockShapes,
  dense,
  denseOperand,
  fillUnseen,
  gradientRows,
  headsOf,
  isEmptyContraction,
  isWide,
  product,
  readStrides,
  type RowBlock,
  rowsOperand,
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

type Part = "p" | "ds" | "dq" | "dk" | "dv" | "g" | "q" | "k" | "v" | "o";

export function backwardScratch(kernel: SdpaBackwardKernel): ReturnType<typeof layoutOf> {
  return layoutOf(kernel, attentionShape(kernel));
}

function layoutOf(
  { inputs }: SdpaBackwardKernel,
  { dtype, d, e, keys, blocks, scoresStep }: AttentionShape,
): ReturnType<typeof scratchLayout<Part>> {
  const most = blocks[0]?.rows ?? 0;
  const copied = isWide(at(inputs, 0).dtype) ? 0 : 1;
  return scratchLayout(dtype, {
    p: most * scoresStep,
    ds: most * scoresStep,
    dq: most * d,
    dk: keys * d,
    dv: keys * e,
    g: copied * most * e,
    q: copied * most * d,
    k: copied * keys * d,
    v: copied * keys * e,
    o: copied * most * e,
  });
}

interface BlockProducts {
  /** q k^T */
  readonly scores: Contraction;
  /** g v^T */
  readonly dp: Contraction;
  readonly dq: Contraction;
  readonly dk: Contraction;
  readonly dv: Contraction;
}

function products(kernel: SdpaBackwardKernel, shape: AttentionShape, { rows, keys }: RowBlock): BlockProducts {
  const { dtype, d, e } = shape;
  const read = (operand: number): MatrixStrides => readStrides(at(kernel.inputs, operand));
  const [g, q, k, v] = [read(0), read(1), read(2), read(3)];
  const scores = dense(shape.scoresStep);
  return {
    scores: product(dtype, [rows, keys, d], q, transposed(k), scores),
    dp: product(dtype, [rows, keys, e], g, transposed(v), scores),
    dq: product(dtype, [rows, d, keys], scores, k, dense(d)),
    dk: product(dtype, [keys, d, rows], transposed(scores), q, dense(d), true),
    dv: product(dtype, [keys, e, rows], transposed(scores), g, dense(e), true),
  };
}

export function backwardProducts(kernel: SdpaBackwardKernel): readonly Contraction[] {
  const shape = attentionShape(kernel);
  return shape.blocks
    .flatMap((block) => {
      const { scores, dp, dq, dk, dv } = products(kernel, shape, block);
      return [scores, dp, dq, dk, dv];
    })
    .filter((each) => !isEmptyContraction(each));
}

function gradientUnit(kernel: SdpaBackwardKernel, shape: AttentionShape, block: RowBlock): UnitKernel {
  const { scale, inputs } = kernel;
  const { dtype, e } = shape;
  const { rows } = block;
  const scores = scoreRows(shape, block);
  const statistics = rowStatistics(dtype, rows, at(inputs, 5).strides.at(-1));
  const [g, o] = [0, 4].map((i): Operand => {
    const operand = at(inputs, i);
    return isWide(operand.dtype) ? rowsOperand(operand, rows) : denseOperand(dtype, rows, e);
  });
  const own = biasOf(kernel) === null ? scale : 1;
  return gradientRows([scores, scores, statistics, g ?? scores, o ?? scores], own, scale);
}

export function backwardRows(kernel: SdpaBackwardKernel): readonly Kernel[] {
  const shape = attentionShape(kernel);
  return blockShapes(shape.blocks).flatMap((block) => [
    gradientUnit(kernel, shape, block),
    ...(biasOf(kernel) === null ? [] : [scaledScores(kernel, shape, block)]),
  ]);
}

/** Takes absolute byte addresses. The scratch has `backwardScratch(kernel).bytes` bytes. */
export function prepareBackward(
  kernel: SdpaBackwardKernel,
  tools: AttentionTools,
  scratch: number,
): (inputs: readonly number[], outputs: readonly number[]) => void {
  const shape = attentionShape(kernel);
  const { dtype, d, e, keys, rows, blocks, scoresStep } = shape;
  const { offsets } = layoutOf(kernel, shape);
  const { floats } = tools;
  const size = dtypes[dtype].bytes;
  const placeOf = (part: Part): number => scratch + offsets[part];
  const load = (operand: number, part: Part): ReturnType<typeof loadedMatrix> =>
    loadedMatrix(tools, at(kernel.inputs, operand), dtype, placeOf(part));
  const [g, q, k, v, o] = [load(0, "g"), load(1, "q"), load(2, "k"), load(3, "v"), load(4, "o")];
  const [kStep, vStep] = [k.rowBytes, v.rowBytes];
  const stores = (["dq", "dk", "dv"] as const).map((part, i) =>
    storedMatrix(tools, at(kernel.outputs, i), dtype, placeOf(part)),
  );
  const [storeQ, storeK, storeV] = [at(stores, 0), at(stores, 1), at(stores, 2)];
  const gemm = (contraction: Contraction): ReturnType<AttentionTools["gemm"]> | null =>
    isEmptyContraction(contraction) ? null : tools.gemm(contraction);
  const units = preparedByShape(tools, blocks, (block) => gradientUnit(kernel, shape, block));
  const biased = biasOf(kernel) === null ? [] : blocks;
  const additions = preparedByShape(tools, biased, (block) => scaledScores(kernel, shape, block));
  const steps = blocks.map((block) => {
    const { scores, dp, dq, dk, dv } = products(kernel, shape, block);
    const [rowUnit, add] = [units.get(shapeKey(block)), additions.get(shapeKey(block))];
    const biasStep = blockBiasOffset(kernel, block);
    const multiply = { scores: gemm(scores), dp: gemm(dp), dq: gemm(dq), dk: gemm(dk), dv: gemm(dv) };
    return { block, rowUnit, add, biasStep, multiply };
  });
  const [p, ds] = [placeOf("p") / size, placeOf("ds") / size];
  const clear = (part: Part, count: number): void => {
    floats.fill(0, placeOf(part) / size, placeOf(part) / size + count);
  };
  const statisticsStep = at(kernel.inputs, 5).strides.at(-1) ?? 0;
  const operands = [...kernel.inputs, ...kernel.outputs];
  const results = kernel.inputs.length;
  const { outer, shared } = headsOf(kernel);

  return (inputs, outputs) => {
    for (const keyHead of outer) {
      const own = headAddresses(operands, [...inputs, ...outputs], keyHead);
      const [kAddress, vAddress] = [k.load(at(own, 2), 0, keys), v.load(at(own, 3), 0, keys)];
      clear("dk", keys * d);
      clear("dv", keys * e);
      for (const head of shared) {
        const addresses = headAddresses(operands, own, head);
        for (const { block, rowUnit, add, biasStep, multiply } of steps) {
          const { start, first, rows: count } = block;
          const [ownK, ownV] = [kAddress + first * kStep, vAddress + first * vStep];
          const gAddress = g.load(at(addresses, 0), start, count);
          const qAddress = q.load(at(addresses, 1), start, count);
          const oAddress = o.load(at(addresses, 4), start, count);
          if (multiply.scores === null) clear("p", count * scoresStep);
          else multiply.scores(qAddress, ownK, 0, placeOf("p"));
          add?.([placeOf("p"), at(addresses, 6) + biasStep], [placeOf("p")]);
          if (multiply.dp === null) clear("ds", count * scoresStep);
          else multiply.dp(gAddress, ownV, 0, placeOf("ds"));
          const lse = at(addresses, 5) + start * statisticsStep * size;
          rowUnit?.([placeOf("p"), placeOf("ds"), lse, gAddress, oAddress], [placeOf("p"), placeOf("ds")]);
          for (let row = 0; row < count; row++) {
            const seen = visibleKeys(kernel, start + row, rows, keys);
            for (const place of [p, ds]) fillUnseen(floats, place + row * scoresStep, block, seen, 0);
          }
          multiply.dv?.(placeOf("p"), gAddress, 0, placeOf("dv") + first * e * size);
          if (multiply.dq === null) clear("dq", count * d);
          else multiply.dq(placeOf("ds"), ownK, 0, placeOf("dq"));
          storeQ(at(addresses, results), start, count);
          multiply.dk?.(placeOf("ds"), qAddress, 0, placeOf("dk") + first * d * size);
        }
      }
      storeK(at(own, results + 1), 0, keys);
      storeV(at(own, results + 2), 0, keys);
    }
  };
}

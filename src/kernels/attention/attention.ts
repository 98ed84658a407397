/** Attention on the CPU: its scratch, and the code of a kernel. */
import type { AttentionKernel } from "../../commands/attention.ts";
import { accumulatorOf } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { gemmScratchBytes } from "../gemm/gemm.ts";
import { blockScratchBytes } from "../row-blocks.ts";
import { backwardProducts, backwardRows, backwardScratch, prepareBackward } from "./backward.ts";
import { forwardProducts, forwardRows, forwardScratch, prepareForward } from "./forward.ts";
import type { AttentionTools } from "./tools.ts";

export interface AttentionPlan {
  /** Scratch bytes of the scores and of what is accumulated. */
  readonly valueBytes: number;
  /** Scratch bytes after those, for one GEMM or unit at a time. */
  readonly workBytes: number;
}

export function planAttention(kernel: AttentionKernel): AttentionPlan {
  const [{ bytes }, products, rows] =
    kernel.kind === "sdpa"
      ? [forwardScratch(kernel), forwardProducts(kernel), forwardRows(kernel)]
      : [backwardScratch(kernel), backwardProducts(kernel), backwardRows(kernel)];
  const work = [...products.map(gemmScratchBytes), ...rows.map(blockScratchBytes)];
  return { valueBytes: bytes, workBytes: work.reduce((most, each) => Math.max(most, each), 0) };
}

/** `scratch` is the address of `valueBytes` bytes. */
export function prepareAttention(
  kernel: AttentionKernel,
  { buffer, ...tools }: Pick<AttentionTools, "gemm" | "prepare"> & { readonly buffer: ArrayBufferLike },
  scratch: number,
): (inputs: readonly number[], outputs: readonly number[]) => void {
  const isDouble = accumulatorOf[at(kernel.inputs, 0).dtype] === "double";
  const all = { ...tools, floats: isDouble ? new Float64Array(buffer) : new Float32Array(buffer) };
  return kernel.kind === "sdpa" ? prepareForward(kernel, all, scratch) : prepareBackward(kernel, all, scratch);
}

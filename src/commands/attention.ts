/** What kernels of attention cost, by the rows of their ops. */
import { isBias, type SeenKeys } from "../ir/ops/kinds/attention/attention.ts";
import type { Shapes } from "../ir/ops/row.ts";
import { rowOf } from "../ir/ops/rows.ts";
import { at } from "../support/invariant.ts";
import type { Kernel, Operand, SdpaBackwardKernel, SdpaKernel } from "./kernel.ts";

export type AttentionKernel = SdpaKernel | SdpaBackwardKernel;

export function isAttention(kernel: Kernel): kernel is AttentionKernel {
  return kernel.kind === "sdpa" || kernel.kind === "sdpaBackward";
}

/** Whether the last input says how many keys there are. */
export function hasKeyLengths(kernel: AttentionKernel): kernel is SdpaKernel {
  return kernel.kind === "sdpa" && kernel.inputs.length > 3 && biasOf(kernel) === null;
}

/** The input that is added to the scores, the last one. */
export function biasOf({ kind, inputs }: AttentionKernel): Operand | null {
  const [q, last] = [at(inputs, 0), inputs[kind === "sdpa" ? 3 : 6]];
  return last !== undefined && isBias(last.shape, q.shape) ? last : null;
}

export function attentionFlops(kernel: AttentionKernel): number {
  return rowOf(opOfKernel(kernel)).flops(opOfKernel(kernel), shapesOf(kernel));
}

/** In units of `elementWork`. */
export function attentionWork(kernel: AttentionKernel): number {
  return rowOf(opOfKernel(kernel)).work(opOfKernel(kernel), shapesOf(kernel));
}

function opOfKernel({ kind, causal, window, scale }: AttentionKernel): SeenKeys & {
  readonly kind: "Sdpa" | "SdpaBackward";
  readonly scale: string;
} {
  return { kind: kind === "sdpa" ? "Sdpa" : "SdpaBackward", causal, window, scale: String(scale) };
}

function shapesOf({ inputs, outputs }: AttentionKernel): Shapes {
  return { operands: inputs.map(({ shape }) => shape), output: at(outputs, 0).shape };
}

/** Of each operand, inputs first, the axis that axis `axis` of the first output cuts; null if it cannot be cut. */
export function attentionCut(kernel: AttentionKernel, axis: number): readonly (number | null)[] | null {
  const [q, k] = kernel.kind === "sdpa" ? [0, 1] : [1, 2];
  const rows = at(kernel.inputs, q).shape.length - 2;
  const operands = [...kernel.inputs, ...kernel.outputs];
  const extent = at(at(kernel.inputs, q).shape, axis);
  if (axis < rows) {
    const isShared = at(at(kernel.inputs, k).shape, axis) !== extent;
    if (isShared && kernel.kind === "sdpaBackward") return null;
    return operands.map(({ shape }) => (shape[axis] === extent ? axis : null));
  }
  // Without a mask, rows of queries do not depend on each other.
  if (axis > rows || kernel.kind === "sdpaBackward" || kernel.causal !== null) return null;
  const cutsBias = biasOf(kernel)?.shape[axis] === extent;
  const isWhole = (i: number): boolean => i > 0 && i < kernel.inputs.length && !(i === 3 && cutsBias);
  return operands.map((_, i) => (isWhole(i) ? null : axis));
}

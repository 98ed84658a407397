/** Cuts a GEMM or a copy along one axis: part i holds [bounds[i], bounds[i + 1]) of it. */
import type { Launch } from "../../commands/command.ts";
import type { BufferRef } from "../../commands/buffer.ts";
import type { Operand } from "../../commands/kernel.ts";
import { commonBox, elementCount, narrowView } from "../../commands/view.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import type { Memory } from "./memory.ts";
import type { Copy } from "./move-operands.ts";
import type { GemmAxis, GemmKernel } from "./gemm-axes.ts";

export function cutGemm(
  product: Launch,
  kernel: GemmKernel,
  axis: GemmAxis,
  bounds: readonly number[],
  memory: Memory,
): readonly Launch[] {
  return bounds.slice(1).map((end, i) => {
    const start = at(bounds, i);
    const operand = (whole: Operand, place: number | null): Operand =>
      place === null ? whole : { ...whole, shape: whole.shape.with(place, end - start) };
    const ref = (whole: BufferRef, { dtype, strides }: Operand, place: number | null): BufferRef =>
      place === null ? whole : { ...whole, offset: whole.offset + start * at(strides, place) * dtypes[dtype].bytes };
    const places = axis.inputs;
    return {
      ...product,
      kernel: memory.kernelId({
        ...kernel,
        inputs: kernel.inputs.map((whole, j) => operand(whole, at(places, j))),
        outputs: kernel.outputs.map((whole) => operand(whole, axis.output)),
      }),
      inputs: product.inputs.map((whole, j) => ref(whole, at(kernel.inputs, j), at(places, j))),
      outputs: product.outputs.map((whole, j) => ref(whole, at(kernel.outputs, j), axis.output)),
    };
  });
}

/**
 * The copy cut into parts of its elements in row-major order, in the proportion of `bounds`; null if its outermost axis
 * does not divide that way. The caller checks that these are the intended parts.
 */
export function cutCopy(copy: Copy, bounds: readonly number[]): readonly Copy[] | null {
  const box = commonBox([copy.source, copy.destination]);
  const outer = box?.shape[0];
  if (box === null || outer === undefined || elementCount(box.shape) === 0) return null;
  const unit = outer / at(bounds, bounds.length - 1);
  if (!bounds.every((bound) => Number.isInteger(bound * unit))) return null;
  const source = { ...copy.source, shape: box.shape, strides: at(box.strides, 0) };
  const destination = { ...copy.destination, shape: box.shape, strides: at(box.strides, 1) };
  return bounds.slice(1).map((end, i) => {
    const start = at(bounds, i) * unit;
    const count = end * unit - start;
    return {
      ...copy,
      source: narrowView(source, 0, start, count),
      destination: narrowView(destination, 0, start, count),
    };
  });
}

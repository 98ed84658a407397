/** A kernel's work, to decide whether cutting it into parts for several workers pays. */
import { asUnit, shapesOf } from "../commands/as-unit.ts";
import type { Kernel } from "../commands/kernel.ts";
import { elementCount } from "../commands/view.ts";
import { elementWork } from "../ir/ops/row.ts";
import { rowOf } from "../ir/ops/rows.ts";
import { at } from "../support/invariant.ts";

/** An estimate in multiply-adds of the GEMM kernels. */
export function kernelWork(kernel: Kernel): number {
  if (kernel.kind === "combine" || kernel.kind === "fill") {
    return elementWork * elementCount(at(kernel.outputs, 0).shape) * (kernel.inputs.length + kernel.outputs.length);
  }
  const unit = asUnit(kernel);
  const written = unit.outputs.reduce((count, { shape }) => count + elementCount(shape), 0);
  return unit.steps.reduce((work, step) => work + rowOf(step).work(step, shapesOf(unit, step)), elementWork * written);
}

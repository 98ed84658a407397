/** A kernel's work, to decide whether cutting it into parts for several workers pays. */
import type { Kernel, UnitKernel, UnitStep } from "../commands/kernel.ts";
import { elementCount } from "../commands/view.ts";
import { elementWork } from "../ir/ops/cost.ts";
import { unaryFunctions } from "../ir/ops/functions/unary.ts";
import { at } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";
import { asUnit } from "./as-unit.ts";

/** An estimate in multiply-adds of the matrix kernels, which take 0.02 to 0.05 ns each on a core of 2024. */
export function kernelWork(kernel: Kernel): number {
  switch (kernel.kind) {
    case "unit":
      return unitWork(kernel);
    case "unary":
    case "cast":
    case "binary":
    case "reduction":
    case "matmul":
    case "linear":
      return unitWork(asUnit(kernel));
    case "combine":
    case "fill":
      return elementWork * elementCount(at(kernel.outputs, 0).shape) * (kernel.inputs.length + kernel.outputs.length);
    default:
      return unreachable(kernel);
  }
}

function unitWork(unit: UnitKernel): number {
  const written = unit.outputs.reduce((count, { shape }) => count + elementCount(shape), 0);
  return unit.steps.reduce((work, step) => work + stepWork(unit, step), elementWork * written);
}

function stepWork({ values }: UnitKernel, step: UnitStep): number {
  const shapeOf = (value: number): readonly number[] => at(values, value).shape;
  const elements = elementCount(shapeOf(step.output));
  switch (step.kind) {
    case "Unary":
      return elements * unaryFunctions[step.op].work;
    case "Cast":
    case "Binary":
      return elements * elementWork;
    case "Reduction":
      return elementCount(shapeOf(at(step.inputs, 0))) * elementWork;
    case "Matmul":
    case "Linear":
      return elements * (shapeOf(at(step.inputs, 0)).at(-1) ?? 1);
    case "Set":
    case "Broadcast":
    case "Squeeze":
    case "Permute":
    case "Reshape":
    case "Slice":
    case "Select":
      return 0;
    default:
      return unreachable(step);
  }
}

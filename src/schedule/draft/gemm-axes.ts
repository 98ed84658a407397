/** The axes along which GEMMs of equal kernels can be adjacent, and the corresponding axis of each operand. */
import type { Command } from "../../commands/command.ts";
import { isUnitOf, type Kernel, type LinearKernel, type MatmulKernel, withoutAddend } from "../../commands/kernel.ts";
import { at } from "../../support/invariant.ts";

export type GemmKernel = MatmulKernel | LinearKernel;

/** A GEMM that can be cut along its axes: one without scales. */
export function isGemm(kernel: Kernel): kernel is GemmKernel {
  return kernel.kind === "matmul" || kernel.kind === "linear";
}

/** Whether it launches a GEMM, with scales or without. Those of groups do not count: they stay on their stream. */
export function isGemmLaunch(command: Command, { kernels }: { readonly kernels: readonly Kernel[] }): boolean {
  if (command.kind !== "launch") return false;
  const kernel = at(kernels, command.kernel);
  return isGemm(kernel) || isUnitOf("Linear", kernel);
}

/** A result axis of a GEMM, and for each input the number of the same axis, or null if it has none. */
export interface GemmAxis {
  readonly output: number;
  readonly inputs: readonly (number | null)[];
}

/** M, N, then batch axes. The contracted axis is excluded: GEMMs that are adjacent along it would have to be added. */
export function gemmAxes(kernel: GemmKernel): readonly GemmAxis[] {
  const rank = at(kernel.outputs, 0).shape.length;
  const [rows, columns] = [rank - 2, rank - 1];
  const sum = withoutAddend(kernel);
  const biases = (sum?.product ?? kernel).inputs.slice(2);
  const axis = (output: number, ofA: number | null, ofB: number | null, ofBias: number | null): GemmAxis => ({
    output,
    inputs: [ofA, ofB, ...biases.map(() => ofBias), ...(sum === null ? [] : [output])],
  });
  const isLinear = kernel.kind === "linear";
  return [
    axis(rows, rows, null, null),
    axis(columns, null, isLinear ? 0 : columns, 0),
    ...Array.from({ length: rows }, (_, batch) => axis(batch, batch, isLinear ? null : batch, null)),
  ];
}

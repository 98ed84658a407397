/** Kernels have the operands of their kind, and operands are boxes of elements. */
import { type Kernel, type Operand, withoutAddend } from "../../../commands/kernel.ts";
import { nests } from "../../../commands/region.ts";
import { elementCount, sameNumbers } from "../../../commands/view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { demand, demandCounts, isCount } from "./demand.ts";

/** How many inputs and outputs, at least and at most; whether all have one shape. */
const kernelForms: { readonly [K in Kernel["kind"]]: readonly [number, number, number, number, boolean] } = {
  unary: [1, 1, 1, 1, true],
  cast: [1, 1, 1, 1, true],
  binary: [1, 2, 1, 1, true],
  reduction: [1, 1, 1, 1, false],
  matmul: [2, 2, 1, 1, false],
  linear: [2, 3, 1, 1, false],
  combine: [1, Infinity, 1, Infinity, true],
  fill: [0, 0, 1, 1, true],
  iota: [0, 0, 1, 1, true],
  sdpa: [3, 3, 2, 2, false],
  sdpaBackward: [6, 6, 3, 3, false],
  unit: [0, Infinity, 0, Infinity, false],
  opaque: [0, Infinity, 0, Infinity, false],
};

export function checkKernel(kernel: Kernel, where: string): void {
  const { kind, inputs, outputs } = kernel;
  demand(Object.hasOwn(kernelForms, kind), `${where}.kind`, kind, "a kernel's kind");
  const [fewest, mostIn, fewestOut, mostOut, sameShapes] = kernelForms[kind];
  const product = withoutAddend(kernel);
  const operandCount = product === null ? inputs.length : inputs.length - 1;
  demand(
    operandCount >= fewest && operandCount <= mostIn,
    `${where}.inputs`,
    operandCount,
    `from ${fewest} to ${mostIn}`,
  );
  demand(
    outputs.length >= fewestOut && outputs.length <= mostOut,
    `${where}.outputs`,
    outputs.length,
    `from ${fewestOut} to ${mostOut}`,
  );
  if (product !== null) {
    demand(product.product.accumulate !== true, `${where}.accumulate`, true, "an addend or the output, not both");
    const output = at(outputs, 0);
    demand(
      sameNumbers(product.addend.shape, output.shape) && product.addend.dtype === output.dtype,
      `${where}.inputs`,
      product.addend.shape,
      `an addend of shape [${output.shape.join(", ")}], of the result's dtype`,
    );
  }
  if (kind === "binary") {
    const tensors = kernel.scalar === undefined ? 2 : 1;
    demand(
      inputs.length === tensors,
      `${where}.inputs`,
      inputs.length,
      `${tensors}, and the number if the kernel has one`,
    );
  }
  const operands = [...inputs, ...outputs];
  for (const operand of operands) checkBox(operand, where);
  if (!sameShapes) return;
  const [first, ...rest] = operands;
  const other = rest.find(({ shape }) => !sameNumbers(shape, first?.shape ?? []));
  demand(other === undefined, where, other?.shape, `operands of shape [${first?.shape.join(", ") ?? ""}]`);
}

export function checkBox({ dtype, shape, strides }: Operand, where: string): void {
  demand(Object.hasOwn(dtypes, dtype), `${where}: dtype`, dtype, "a dtype");
  demandCounts(shape, `${where}: shape`);
  demandCounts(strides, `${where}: strides`);
  demand(shape.length === strides.length, `${where}: strides`, strides, "one stride per axis");
  const bytes: number = dtypes[dtype].bytes;
  const dims = shape.map((count, axis) => ({ count, stride: at(strides, axis) * bytes }));
  const span = dims.reduce((sum, { count, stride }) => sum + Math.max(0, count - 1) * stride, bytes);
  demand(isCount(elementCount(shape)) && isCount(span), `${where}: shape`, shape, "a box of less than 2^45 bytes");
  demand(nests(dims, bytes), `${where}: strides`, strides, "axes that do not interleave");
}

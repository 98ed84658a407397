/** Kernels of one op as units of one step, so that plans and costs only need to handle units. */
import type { Shapes } from "../ir/ops/row.ts";
import { at, unreachable } from "../support/invariant.ts";
import {
  type BinaryKernel,
  type CombineKernel,
  type FillKernel,
  type Kernel,
  type LinearKernel,
  type MatmulKernel,
  type OpaqueKernel,
  type Operand,
  type SdpaBackwardKernel,
  type SdpaKernel,
  type UnitKernel,
  type UnitStep,
  withoutAddend,
} from "./kernel.ts";

export type OpKernel = Exclude<Kernel, CombineKernel | FillKernel | OpaqueKernel | SdpaKernel | SdpaBackwardKernel>;

export function asUnit(kernel: OpKernel): UnitKernel {
  if (kernel.kind === "unit") return kernel;
  const sum = withoutAddend(kernel);
  if (sum !== null) return addition(sum.product, sum.addend);
  const output = kernel.inputs.length;
  const inputs = kernel.inputs.map((_, i) => i);
  return {
    kind: "unit",
    inputs: kernel.inputs,
    outputs: kernel.outputs,
    values: [...kernel.inputs, ...kernel.outputs].map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [stepOf(kernel, inputs, output)],
    results: [output],
  };
}

/** A GEMM, then an addition. */
function addition(product: MatmulKernel | LinearKernel, addend: Operand): UnitKernel {
  const unit = asUnit(product);
  const [operands, output] = [product.inputs.length, at(product.outputs, 0)];
  const value = { dtype: output.dtype, shape: output.shape };
  const [added, result, sum] = [operands, operands + 1, operands + 2];
  return {
    ...unit,
    inputs: [...product.inputs, addend],
    values: [...unit.values.slice(0, operands), value, value, value],
    steps: [
      ...unit.steps.map((step) => ({ ...step, output: result })),
      { kind: "Binary", op: "add", inputs: [added, result], output: sum },
    ],
    results: [sum],
  };
}

function stepOf(kernel: Exclude<OpKernel, UnitKernel>, inputs: readonly number[], output: number): UnitStep {
  switch (kernel.kind) {
    case "unary":
      return { kind: "Unary", op: kernel.op, inputs, output };
    case "cast":
      return { kind: "Cast", to: at(kernel.outputs, 0).dtype, inputs, output };
    case "binary":
      return { kind: "Binary", op: kernel.op, inputs, output, ...scalarOf(kernel) };
    case "reduction":
      return { kind: "Reduction", op: kernel.op, axes: kernel.axes, inputs, output };
    case "matmul":
      return { kind: "Matmul", inputs, output, ...accumulation(kernel) };
    case "iota":
      return { kind: "Iota", start: kernel.start, step: kernel.step, origin: 0, inputs, output };
    case "linear":
      return { kind: "Linear", inputs, output, ...accumulation(kernel) };
    default:
      return unreachable(kernel);
  }
}

function scalarOf({ scalar }: BinaryKernel): Pick<BinaryKernel, "scalar"> {
  return scalar === undefined ? {} : { scalar };
}

function accumulation({ accumulate }: MatmulKernel | LinearKernel): { readonly accumulate?: true } {
  return accumulate === true ? { accumulate } : {};
}

/** The local sizes of a step's operands and output. */
export function stepShapes({ values }: Pick<UnitKernel, "values">, { inputs, output }: UnitStep): Shapes {
  return { operands: inputs.map((value) => at(values, value).shape), output: at(values, output).shape };
}

/** Kernels of one op as units of one step, so that one generator serves all. */
import type {
  CastKernel,
  BinaryKernel,
  LinearKernel,
  MatmulKernel,
  ReductionKernel,
  UnaryKernel,
  UnitKernel,
  UnitStep,
} from "../commands/kernel.ts";
import { at } from "../support/invariant.ts";
import { unreachable } from "../support/unreachable.ts";

export type OneStepKernel = UnaryKernel | CastKernel | BinaryKernel | ReductionKernel | MatmulKernel | LinearKernel;

export function asUnit(kernel: OneStepKernel): UnitKernel {
  const output = kernel.inputs.length;
  return {
    kind: "unit",
    inputs: kernel.inputs,
    outputs: kernel.outputs,
    values: [...kernel.inputs, ...kernel.outputs].map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [
      stepOf(
        kernel,
        kernel.inputs.map((_, i) => i),
        output,
      ),
    ],
    results: [output],
  };
}

function stepOf(kernel: OneStepKernel, inputs: readonly number[], output: number): UnitStep {
  switch (kernel.kind) {
    case "unary":
      return { kind: "Unary", op: kernel.op, inputs, output };
    case "cast":
      return { kind: "Cast", to: at(kernel.outputs, 0).dtype, inputs, output };
    case "binary":
      return { kind: "Binary", op: kernel.op, inputs, output };
    case "reduction":
      return { kind: "Reduction", op: kernel.op, axes: kernel.axes, inputs, output };
    case "matmul":
      return { kind: "Matmul", inputs, output, ...accumulation(kernel) };
    case "linear":
      return { kind: "Linear", inputs, output, ...accumulation(kernel) };
    default:
      return unreachable(kernel);
  }
}

function accumulation({ accumulate }: MatmulKernel | LinearKernel): { readonly accumulate?: true } {
  return accumulate === true ? { accumulate } : {};
}

/** The nest of a `combine` kernel: folds the parts at each index, in their order, and rounds once. */
import type { CombineKernel } from "../commands/kernel.ts";
import { reductionSemantics } from "../numerics/scalar-semantics.ts";
import { at } from "../support/invariant.ts";
import { dot } from "./affine.ts";
import { createIndexSpace, unsplit } from "./index-space.ts";
import type { Instruction, Nest } from "./nest.ts";

/** At each index all parts are read before the output is written, so the output may be one of them. */
export function combineNest(kernel: CombineKernel): Nest {
  const output = at(kernel.outputs, 0);
  const space = createIndexSpace(unsplit(output.shape));
  const { combine, finish } = reductionSemantics(kernel.op, output.dtype);
  const body = kernel.inputs.map(({ dtype, strides }, position): Instruction => {
    const offset = dot(space.axes, strides);
    return { kind: "load", access: { memory: { kind: "input", position }, dtype, offset } };
  });
  // The identity is neutral, so the first part stands for it.
  let sum = 0;
  for (const position of kernel.inputs.keys()) {
    if (position > 0) sum = body.push({ kind: "apply", expression: combine, operands: [sum, position] }) - 1;
  }
  body.push({ kind: "apply", expression: finish, operands: [sum] });
  return {
    atoms: space.atoms,
    loops: space.atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body,
    target: { memory: { kind: "output", position: 0 }, dtype: output.dtype, offset: dot(space.axes, output.strides) },
  };
}

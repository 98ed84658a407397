/** The nest of a `fill` kernel: writes 0 to every element. */
import type { FillKernel } from "../../commands/kernel.ts";
import { computeType, constant } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { dot } from "./affine.ts";
import { createIndexSpace, unsplit } from "./index-space.ts";
import type { Nest } from "./nest.ts";

export function fillNest({ outputs }: FillKernel): Nest {
  const { dtype, shape, strides } = at(outputs, 0);
  const space = createIndexSpace(unsplit(shape));
  return {
    atoms: space.atoms,
    loops: space.atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body: [{ kind: "apply", expression: constant(computeType[dtype], 0), operands: [] }],
    target: { memory: { kind: "output", position: 0 }, dtype, offset: dot(space.axes, strides) },
  };
}

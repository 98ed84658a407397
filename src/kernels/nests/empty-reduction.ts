/** A reduction over no elements: its result is the neutral element, and the nest has no loop of 0 iterations. */
import { constant } from "../../numerics/scalar/expression.ts";
import { dot } from "./affine.ts";
import { createIndexSpace, unsplit } from "./index-space.ts";
import type { Nest, Placement } from "./nest.ts";

/** The nest, or one that writes the neutral element to a value of `shape` at `placement`. */
export function withoutEmptyReduction(
  nest: Nest,
  shape: readonly number[],
  { memory, dtype, strides }: Placement,
): Nest {
  const { reduction, reducedLoops } = nest;
  if (reduction === null || !reducedLoops.some(({ extent }) => extent === 0)) return nest;
  const { atoms, axes } = createIndexSpace(unsplit(shape));
  const identity = { ...constant(reduction.type, 0), value: reduction.identity };
  return {
    atoms,
    loops: atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body: [{ kind: "apply", expression: identity, operands: [] }],
    target: { memory, dtype, offset: dot(axes, strides) },
  };
}

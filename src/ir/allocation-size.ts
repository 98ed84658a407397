/** The size that an Allocate prints: the product of the global extents in allocation order, folded; device axes count in full. */
import { type Tensor, withoutReductions } from "./domain.ts";
import { constant, type Scalar } from "./scalar/scalar.ts";
import { foldMul } from "./scalar/fold.ts";

/** The number of elements of the whole tensor, reduced axes left out: the `size` of its ALLOCATE. */
export function allocationSize(tensor: Tensor): Scalar {
  const { allocation, logical } = tensor.domain;
  const extents = withoutReductions(allocation ?? logical).map((axis) => axis.extent);
  const [first, ...rest] = extents;
  return first === undefined ? constant(1) : rest.reduce(foldMul, first);
}

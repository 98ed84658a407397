/** The size of a tensor as far as it is known when a program is lowered. */
import { dtypes } from "../numerics/dtype.ts";
import { type Tensor, withoutReductions } from "./domain.ts";
import { constantValue } from "./scalar/fold.ts";

/** Bytes of the whole tensor, with 1 for every extent that is known only at run time. */
export function knownBytes({ dtype, domain }: Tensor): number {
  return withoutReductions(domain.logical).reduce<number>(
    (product, { extent }) => product * (constantValue(extent) ?? 1),
    dtypes[dtype].bytes,
  );
}

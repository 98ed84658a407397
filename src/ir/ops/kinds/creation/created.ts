/** Fields that the rows of ops without operands share: the call gives the output's axes and dtype. */
import type { DType } from "../../../../numerics/dtype.ts";
import { type Tensor, withoutReductions } from "../../../domain.ts";
import type { Scalar } from "../../../scalar/scalar.ts";
import { type AxisPair, elementWork, type OutputAxes, type Shapes } from "../../row.ts";
import { countOf, local } from "../families.ts";

interface Created {
  readonly extents: readonly Scalar[];
  readonly dtype: DType;
}

export const created = {
  ...local,
  operands: [0, 0],
  isView: false,
  dtype: ({ dtype }: Created) => dtype,
  shape: ({ extents }: Created): OutputAxes => ({
    axes: extents.map((extent) => ({ extent, iterType: "iteration" })),
  }),
  pairs: (): readonly AxisPair[] => [],
  flops: () => 0,
  work: (_: unknown, { output }: Shapes) => elementWork * countOf(output),
} as const;

/** The axes and dtype that make `output`. */
export function createdLike({ domain, dtype }: Tensor): Created {
  return { extents: withoutReductions(domain.logical).map(({ extent }) => extent), dtype };
}

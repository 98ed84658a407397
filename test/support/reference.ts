/** The expected result of a program, defined apart from it: as a Fusion that the oracle evaluates, or as a function. */
import type { Fusion } from "../../src/ir/api/fusion.ts";
import { type Sizes, shapeOf } from "../../src/ir/sizes.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion, type OracleResult } from "../../src/oracle/evaluate.ts";
import type { TensorShape } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";

/** The outputs for whole inputs. */
export interface Reference {
  readonly inputs: readonly TensorShape[];
  /** Whole outputs; `bounds[i]`: how far each element of output i may be off. */
  readonly evaluate: (inputs: readonly Tensor[]) => Pick<OracleResult, "outputs" | "bounds">;
}

const noSizes: Sizes = new Map();

/** The oracle's result for a Fusion; `sizes` of the extents that it leaves open. */
export function referenceOf(fusion: Pick<Fusion, "data">, sizes = noSizes): Reference {
  const data = fusion.data();
  return {
    inputs: data.inputs.map((id) => {
      const tensor = at(data.tensors, id);
      return { dtype: tensor.dtype, shape: shapeOf(tensor, sizes) };
    }),
    evaluate: (inputs) => evaluateFusion(data, inputs),
  };
}

/**
 * What a program has to give: inputs, and the oracle's outputs with their bounds, made once for all runs of it. Random floats, and whole numbers whose sums
 * are exact in any order, in turns.
 */
import type { Fusion } from "../../src/ir/api/fusion.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import type { Tensor } from "../../src/numerics/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs, type RandomMode, type TensorShape } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

/** Whole tensors, by their position in the program. */
export interface Expectation {
  readonly mode: RandomMode;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Per output, per element; null where every bit has to agree. */
  readonly bounds: readonly (Float64Array | null)[];
}

/** What whole inputs give, in every bit. */
export interface ExactReference {
  readonly inputs: readonly TensorShape[];
  readonly evaluate: (inputs: readonly Tensor[]) => readonly Tensor[];
}

const modes: readonly RandomMode[] = ["uniform", "small-integers", "uniform"];

/** Three sets of inputs for a Fusion. */
export function expectationsOf(fusion: Fusion): readonly Expectation[] {
  const data = fusion.data();
  const shapes = data.inputs.map((id) => {
    const tensor = at(data.tensors, id);
    return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
  });
  return modes.map((mode, seed) => {
    const inputs = randomInputs(shapes, createRandom(seed + 1), mode);
    return { mode, inputs, ...evaluateFusion(data, inputs) };
  });
}

/** Three sets of inputs for what only moves numbers. */
export function exactExpectations({ inputs: shapes, evaluate }: ExactReference): readonly Expectation[] {
  return modes.map((mode, seed) => {
    const inputs = randomInputs(shapes, createRandom(seed + 1), mode);
    const outputs = evaluate(inputs);
    return { mode, inputs, outputs, bounds: outputs.map(() => null) };
  });
}

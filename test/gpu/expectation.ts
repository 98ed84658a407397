/**
 * What a program has to give: inputs, and the reference's outputs with their bounds, made once for all runs of it.
 * Random floats, and whole numbers whose sums are exact in any order, in turns.
 */
import type { Fusion } from "../../src/ir/api/fusion.ts";
import type { Sizes } from "../../src/ir/sizes.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { randomInputs, type RandomMode } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { type Reference, referenceOf } from "../support/reference.ts";

/** Whole tensors, by their position in the program. */
export interface Expectation {
  readonly mode: RandomMode;
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Per output, per element; null where every bit has to agree. */
  readonly bounds: readonly (Float64Array | null)[];
}

const modes: readonly RandomMode[] = ["uniform", "small-integers", "uniform"];

/** Three sets of inputs. */
export function expectationsFrom({ inputs: shapes, evaluate }: Reference): readonly Expectation[] {
  return modes.map((mode, seed) => {
    const inputs = randomInputs(shapes, createRandom(seed + 1), mode);
    return { mode, inputs, ...evaluate(inputs) };
  });
}

/** `sizes` of the extents that the Fusion leaves open. */
export function expectationsOf(fusion: Fusion, sizes?: Sizes): readonly Expectation[] {
  return expectationsFrom(referenceOf(fusion, sizes));
}

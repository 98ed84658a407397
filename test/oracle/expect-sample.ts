/** A random sample of a Fusion's outputs has the bits and the bounds that the whole outputs have there. */
import { expect } from "vitest";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { indicesOf, type Sample, sampleTensor } from "../../src/oracle/sample/sample.ts";
import { at } from "../../src/support/invariant.ts";
import type { Random } from "../../src/support/random.ts";

/** Axes are whole, or each index is in the sample with a probability of one half. */
function randomSample(shape: readonly number[], random: Random): Sample {
  return shape.map((extent) => {
    if (random.integer(3) === 0) return null;
    return indicesOf(
      Array.from({ length: extent }, (_, i) => i).filter(() => random.integer(2) === 0),
      extent,
    );
  });
}

export function expectSample(fusion: FusionData, inputs: readonly Tensor[], random: Random): void {
  const whole = evaluateFusion(fusion, inputs);
  const samples = whole.outputs.map(({ shape }) => randomSample(shape, random));
  const sampled = evaluateFusion(fusion, inputs, undefined, undefined, samples);
  whole.outputs.forEach((output, i) => {
    const sample = at(samples, i);
    expect(at(sampled.outputs, i)).toEqual(sampleTensor(output, sample));
    const bounds: Tensor = { dtype: "double", shape: output.shape, data: at(whole.bounds, i) };
    expect(at(sampled.bounds, i)).toEqual(sampleTensor(bounds, sample).data);
  });
}

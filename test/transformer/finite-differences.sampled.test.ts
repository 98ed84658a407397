/** The gradients of the example blocks against central differences on the oracle, in double, by elements of each input. */
import { describe, expect, it } from "vitest";
import type { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { slopeOf, terms, total } from "../ir/gradients/finite-differences.ts";
import { loadExample } from "../support/example-program.ts";
import { runs } from "../support/suite.ts";
import { blockData, drawnInputs } from "./blocks.ts";

const sizes = { S: 1, B: 2, L: 3, H: 4, HEADS: 2, GROUPS: 1, FFN: 4, DROPOUT: 0.3, DTYPE: "double" } as const;

/** The tensor with `e` added to an element. */
function moved(tensor: Tensor, element: number, e: number): Tensor {
  const data = Float64Array.from(tensor.data, Number);
  data[element] = (data[element] ?? NaN) + e;
  return { dtype: "double", shape: tensor.shape, data };
}

describe.each(["mlp", "attention", "gpt-block", "llama-block"])("%s", (file) => {
  it("has the gradients of central differences", async () => {
    const example = await loadExample(`transformer/${file}.ts`);
    // The backward pass has one more input, the cotangent.
    const [forward, joint] = [blockData(example, 1, { ...sizes, BACKWARD: 0 }), blockData(example, 1, sizes)];
    const all = drawnInputs(joint);
    const [inputs, cotangent] = [all.slice(0, -1), all.slice(-1)];
    const [z, ...gradients] = evaluateFusion(joint, all).outputs;
    expect(evaluateFusion(forward, inputs).outputs).toEqual([z]);
    const differentiable = inputs.flatMap(({ dtype }, i) => (dtype === "double" ? [i] : []));
    expect(gradients.map(({ shape }) => shape)).toEqual(differentiable.map((i) => at(inputs, i).shape));
    const random = createRandom(2);
    const size = total(terms(z === undefined ? [] : [z], cotangent).map(Math.abs));
    differentiable.forEach((i, g) => {
      const input = at(inputs, i);
      const name = at(forward.tensors, at(forward.inputs, i)).origin?.name ?? "";
      for (let sample = 0; sample < runs({ quick: 2, long: 20 }); sample++) {
        const element = Math.floor(random.float() * input.data.length);
        const { slope, spread } = slopeOf((e) => {
          const { outputs } = evaluateFusion(forward, inputs.with(i, moved(input, element, e)));
          return total(terms(outputs, cotangent));
        });
        const found = Number(at(gradients, g).data[element]);
        const text = `${name}, element ${element}: ${found} instead of ${slope}`;
        expect(Math.abs(found - slope), text).toBeLessThanOrEqual(1e-8 * (1 + size) + spread);
      }
    });
  });
});

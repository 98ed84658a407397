/** A sum of negative zeros is a negative zero, in the oracle as in the kernels: +0 is not the neutral element. */
import { expect, it } from "vitest";
import { Fusion, sum } from "@braid-compiler/braid";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";

it.each([1, 3])("of %i elements", (extent) => {
  const f = new Fusion();
  f.output(sum(f.input([2, extent]), [1]));
  const x = Tensor.from([Array.from({ length: extent }, () => -0), Array.from({ length: extent }, () => 1)]);
  const [y] = evaluateFusion(f.data(), [x]).outputs;
  expect(y?.data).toEqual(Float32Array.of(-0, extent));
});

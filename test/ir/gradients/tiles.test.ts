/** The cotangent of a tensor that slices cut in parts: its parts joined, where each has one. */
import { describe, expect, it } from "vitest";
import { add, Fusion, gradients, mul, slice, split, sum, type TensorView } from "@braid-compiler/braid";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";

/** The kinds of ops of the gradient of x, and its values for x = 0 .. 5. */
function gradientOf(build: (x: TensorView) => TensorView): {
  readonly kinds: readonly string[];
  readonly values: unknown;
} {
  const f = new Fusion();
  const x = f.input([6], "double");
  const of = sum(build(x), [0]);
  const before = f.data().ops.length;
  const [gradient] = gradients(f, { of: [of], wrt: [x] });
  if (gradient) f.output(gradient);
  const { outputs } = evaluateFusion(f.data(), [Tensor.from([0, 1, 2, 3, 4, 5], "double")]);
  return {
    kinds: f
      .data()
      .ops.slice(before)
      .map(({ kind }) => kind),
    values: outputs.map((each) => Tensor.toArray(each))[0],
  };
}

describe("the gradient of", () => {
  it("a split joins those of its parts, in their order", () => {
    const { kinds, values } = gradientOf((x) => {
      const [a, b, c] = split(x, [1, 2, 3]);
      return add(mul(sum(mul(c, c), [0]), a), sum(b, [0]));
    });
    expect(kinds).toContain("Cat");
    expect(kinds).not.toContain("Pad");
    expect(values).toEqual([50, 1, 1, 0, 0, 0]);
  });

  it.each([
    ["one part alone", (x: TensorView) => mul(slice(x, [0], [3]), 2), [2, 2, 2, 0, 0, 0]],
    ["slices that overlap", (x: TensorView) => add(slice(x, [0], [4]), slice(x, [2], [6])), [1, 1, 2, 2, 1, 1]],
    ["slices with a gap", (x: TensorView) => add(slice(x, [0], [2]), slice(x, [4], [6])), [1, 1, 0, 0, 1, 1]],
  ])("%s adds them up", (_, build, expected) => {
    const { kinds, values } = gradientOf(build);
    expect(kinds).not.toContain("Cat");
    expect(values).toEqual(expected);
  });

  it("slices with bounds that the run knows, which may leave a gap, adds them up", () => {
    const f = new Fusion();
    const [x, ...others] = [f.input([6], "double"), f.input([null], "double"), f.input([null], "double")];
    const [stop = 0, start = 0] = others.flatMap(({ extents }) => extents);
    const of = add(sum(slice(x, [0], [stop]), [0]), sum(mul(slice(x, [start], [6]), 2), [0]));
    const [gradient] = gradients(f, { of: [of], wrt: [x] });
    if (gradient) f.output(gradient);
    const inputs = [6, 3, 4].map((length) => Tensor.zeros([length], "double"));
    const { outputs } = evaluateFusion(f.data(), inputs);
    expect(outputs.map((each) => Tensor.toArray(each))).toEqual([[1, 1, 1, 0, 2, 2]]);
  });

  it("a split of which one part has no gradient adds up the others", () => {
    const { kinds, values } = gradientOf((x) => {
      const [a, , c] = split(x, [2, 2, 2]);
      return mul(a, c);
    });
    expect(kinds).toContain("Pad");
    expect(values).toEqual([4, 5, 0, 0, 0, 1]);
  });
});

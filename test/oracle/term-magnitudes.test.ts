/** The sizes of the terms of sums, and how `--expect` uses them. */
import { describe, expect, it } from "vitest";
import {
  add,
  cast,
  Fusion,
  linear,
  neg,
  relu,
  reshape,
  sub,
  sum,
  Tensor,
  type TensorView,
} from "@braid-compiler/braid";
import { compareExpected } from "../../src/cli/run/expected.ts";
import { termMagnitudes } from "../../src/oracle/term-magnitudes.ts";

function magnitudes(build: (x: TensorView) => TensorView): readonly number[] | null {
  const fusion = new Fusion();
  const y = build(fusion.input([2, 3], "float"));
  fusion.output(y);
  const x = Tensor.from(
    [
      [1, -2, 3],
      [-1, 2, -4],
    ],
    "float",
  );
  return termMagnitudes(fusion.data(), y.id, [x], new Map());
}

describe("termMagnitudes", () => {
  it.each<[string, (x: TensorView) => TensorView, readonly number[] | null]>([
    ["a sum", (x) => sum(x, [0]), [2, 4, 7]],
    ["a sum of other ops", (x) => sum(relu(x), [0]), [1, 2, 3]],
    ["a view of a sum", (x) => reshape(cast(sum(x, [0]), "double"), [1, 3]), [2, 4, 7]],
    ["a contraction", (x) => linear(x, x), [14, 17, 17, 21]],
    ["a difference of sums", (x) => sub(sum(x, [0]), sum(x, [0])), [4, 8, 14]],
    ["a sum and what is none", (x) => add(sum(x, [0]), neg(sum(x, [0]))), [2, 4, 8]],
    ["no sum", (x) => relu(x), null],
    ["a function of a sum", (x) => relu(sum(x, [0])), null],
  ])("of %s", (_, build, wanted) => {
    expect(magnitudes(build)).toEqual(wanted);
  });
});

describe("compareExpected", () => {
  const compare = (found: number, terms: readonly number[] | null): boolean =>
    compareExpected(
      [{ name: "grad.k.bias", tensor: Tensor.from([1e-9], "float") }],
      [[{ tensor: Tensor.from([found], "float"), ranks: [0] }]],
      () => terms,
    ).every(({ failure }) => failure === null);

  it("rounding errors are relative to terms that cancel", () => {
    expect(compare(-4e-8, null)).toBe(false);
    expect(compare(-4e-8, [1])).toBe(true);
    expect(compare(-4e-8, [1e-4])).toBe(false);
    expect(compare(0.1, [1])).toBe(false);
  });
});

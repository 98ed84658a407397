/** Contractions with axes in any order: values, and which axis gives the rows of the matrices. */
import { describe, expect, it } from "vitest";
import { Fusion } from "@braid-compiler/braid";
import { contract } from "../../src/import/contractions.ts";
import { elementCount, type Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";

interface Contraction {
  /** A letter for each axis, as einsum has it. */
  readonly spec: readonly [left: string, right: string];
  readonly result: string;
}

const sizes: Readonly<Record<string, number>> = { b: 2, g: 3, l: 7, r: 2, s: 5, t: 3, d: 4 };

function sizesOf(letters: string): readonly number[] {
  return letters.split("").map((letter) => sizes[letter] ?? 0);
}

function filled(letters: string, from: number): Tensor {
  const shape = sizesOf(letters);
  const data = Float64Array.from({ length: elementCount(shape) }, (_, i) => ((i * 7 + from) % 11) - 5);
  return { dtype: "double", shape, data };
}

/** The sum over the letters that the result lacks. */
function einsum({ spec: [left, right], result }: Contraction, a: Tensor, b: Tensor): readonly number[] {
  const letters = [...new Set((left + right).split(""))].toSorted(
    (x, y) => Number(result.includes(y)) - Number(result.includes(x)),
  );
  const out = Array.from({ length: elementCount(sizesOf(result)) }, () => 0);
  const place = (own: string, point: ReadonlyMap<string, number>): number =>
    own.split("").reduce((flat, letter) => flat * (sizes[letter] ?? 0) + (point.get(letter) ?? 0), 0);
  const walk = (rest: readonly string[], point: ReadonlyMap<string, number>): void => {
    const [letter, ...others] = rest;
    if (letter === undefined) {
      const to = place(result, point);
      out[to] = at(out, to) + Number(a.data[place(left, point)]) * Number(b.data[place(right, point)]);
      return;
    }
    for (let i = 0; i < (sizes[letter] ?? 0); i++) walk(others, new Map([...point, [letter, i]]));
  };
  walk(letters, new Map());
  return out;
}

function build({ spec: [left, right] }: Contraction): Fusion {
  const f = new Fusion();
  const [a, b] = [f.input(sizesOf(left), "double"), f.input(sizesOf(right), "double")];
  const shared = left.split("").filter((letter) => right.includes(letter));
  const pairs = (
    letters: readonly string[],
  ): { readonly left: readonly number[]; readonly right: readonly number[] } => ({
    left: letters.map((letter) => left.indexOf(letter)),
    right: letters.map((letter) => right.indexOf(letter)),
  });
  const isBatch = (letter: string): boolean => letter === "b" || letter === "g";
  f.output(contract(a, b, pairs(shared.filter(isBatch)), pairs(shared.filter((letter) => !isBatch(letter)))));
  return f;
}

const contractions: readonly Contraction[] = [
  { spec: ["blgrd", "bsgd"], result: "bglrs" },
  { spec: ["bgrld", "bsgd"], result: "bgrls" },
  { spec: ["rlbd", "bsd"], result: "brls" },
  { spec: ["lrbd", "bdst"], result: "blrst" },
  { spec: ["lrd", "ds"], result: "lrs" },
  { spec: ["bdl", "bd"], result: "bl" },
  { spec: ["bd", "bd"], result: "b" },
  { spec: ["bltrd", "bd"], result: "bltr" },
];

describe("contractions", () => {
  it.each(contractions)("of $spec are $result", (contraction) => {
    const [a, b] = [filled(contraction.spec[0], 1), filled(contraction.spec[1], 4)];
    const [output] = evaluateFusion(build(contraction).data(), [a, b]).outputs;
    expect(output?.shape).toEqual(sizesOf(contraction.result));
    expect(Array.from(output?.data ?? [], Number)).toEqual(einsum(contraction, a, b));
  });

  it("multiply matrices of the longest free axis, not of the last", () => {
    const { tensors, ops } = build(at(contractions, 0)).data();
    const matmul = ops.find(({ kind }) => kind === "Matmul");
    // [b, g, r, l, s] and the contracted axis: 7 rows a matrix, not 2.
    const { logical } = at(tensors, matmul?.output ?? 0).domain;
    expect(logical.map(({ extent }) => (extent.kind === "constant" ? extent.value : 0))).toEqual([2, 3, 2, 7, 5, 4]);
  });
});

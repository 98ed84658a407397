/** Convolutions beside their definition: the sum over the windows' elements and channels. */
import { describe, expect, it } from "vitest";
import { Fusion, Tensor } from "@braid-compiler/braid";
import { convolve, windowCounts, type Windows } from "../../src/import/contractions.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";

const product = (numbers: readonly number[]): number => numbers.reduce((a, b) => a * b, 1);

/** All positions of an array of these sizes, row by row. */
function positions(sizes: readonly number[]): readonly (readonly number[])[] {
  return Array.from({ length: product(sizes) }, (_, flat) => {
    let rest = flat;
    return sizes
      .toReversed()
      .map((size) => {
        const digit = rest % size;
        rest = Math.floor(rest / size);
        return digit;
      })
      .toReversed();
  });
}

interface Numbers {
  readonly sizes: readonly number[];
  readonly elements: readonly number[];
}

function numbers(sizes: readonly number[], seed: number): Numbers {
  return { sizes, elements: positions(sizes).map((_, i) => Math.sin(seed + 1.7 * i)) };
}

/** 0 outside of the array. */
function at({ sizes, elements }: Numbers, index: readonly number[]): number {
  const flat = index.reduce(
    (sum, each, i) => (each < 0 || each >= (sizes[i] ?? 0) ? NaN : sum * (sizes[i] ?? 0) + each),
    0,
  );
  return Number.isNaN(flat) ? 0 : (elements[flat] ?? NaN);
}

function defined(x: Numbers, w: Numbers, bias: Numbers, windows: Windows): readonly number[] {
  const { stride, padding, dilation, groups } = windows;
  const [features = 0, depth = 0, ...kernel] = w.sizes;
  const counts = windowCounts(x.sizes.slice(2), kernel, windows);
  return positions([x.sizes[0] ?? 0, features, ...counts]).map(([n = 0, o = 0, ...place]) => {
    const first = Math.floor(o / (features / groups)) * depth;
    return positions([depth, ...kernel]).reduce(
      (sum, [c = 0, ...k]) => {
        const from = place.map(
          (p, i) => p * (stride[i] ?? 1) + (k[i] ?? 0) * (dilation[i] ?? 1) - (padding[i]?.[0] ?? 0),
        );
        return sum + at(x, [n, first + c, ...from]) * at(w, [o, c, ...k]);
      },
      at(bias, [o]),
    );
  });
}

const cases: readonly (readonly [string, readonly number[], readonly number[], Windows])[] = [
  [
    "patches",
    [2, 3, 4, 6],
    [5, 3, 2, 3],
    {
      stride: [2, 3],
      padding: [
        [0, 0],
        [0, 0],
      ],
      dilation: [1, 1],
      groups: 1,
    },
  ],
  ["one element", [2, 3, 4], [5, 3, 1], { stride: [1], padding: [[0, 0]], dilation: [1], groups: 1 }],
  ["windows that overlap", [2, 3, 7], [4, 3, 3], { stride: [2], padding: [[1, 1]], dilation: [1], groups: 1 }],
  [
    "a kernel as large as its stride, with a rest",
    [1, 2, 7],
    [3, 2, 2],
    { stride: [2], padding: [[0, 0]], dilation: [1], groups: 1 },
  ],
  [
    "two axes",
    [2, 2, 5, 6],
    [3, 2, 3, 2],
    {
      stride: [1, 2],
      padding: [
        [2, 0],
        [0, 1],
      ],
      dilation: [2, 1],
      groups: 1,
    },
  ],
  [
    "three axes",
    [1, 2, 3, 4, 3],
    [2, 2, 2, 2, 2],
    {
      stride: [1, 1, 2],
      padding: [
        [0, 0],
        [1, 0],
        [0, 0],
      ],
      dilation: [1, 1, 1],
      groups: 1,
    },
  ],
  [
    "a kernel for each channel, before the last element",
    [2, 4, 6],
    [4, 1, 3],
    { stride: [1], padding: [[2, 0]], dilation: [1], groups: 4 },
  ],
  [
    "several features for each channel",
    [2, 3, 6],
    [6, 1, 2],
    { stride: [1], padding: [[0, 0]], dilation: [2], groups: 3 },
  ],
  [
    "groups",
    [2, 4, 5, 5],
    [6, 2, 2, 3],
    {
      stride: [1, 1],
      padding: [
        [0, 1],
        [1, 1],
      ],
      dilation: [1, 1],
      groups: 2,
    },
  ],
];

describe("convolve", () => {
  it.each(cases)("%s", (_, images, kernel, windows) => {
    const [x, w, b] = [numbers(images, 1), numbers(kernel, 2), numbers(kernel.slice(0, 1), 3)];
    const fusion = new Fusion();
    const [a, c, d] = [x, w, b].map(({ sizes }) => fusion.input(sizes, "float"));
    if (a === undefined || c === undefined || d === undefined) throw new Error("three inputs");
    fusion.output(convolve(a, c, d, windows));
    const given = [x, w, b].map(({ sizes, elements }) => ({
      dtype: "float" as const,
      shape: sizes,
      data: Float32Array.from(elements),
    }));
    const [found] = evaluateFusion(fusion.data(), given).outputs;
    const wanted = defined(x, w, b, windows);
    expect(found === undefined ? 0 : product(found.shape)).toBe(wanted.length);
    const elements = found === undefined ? [] : Tensor.values(found).map(Number);
    expect(Math.max(...wanted.map((each, i) => Math.abs(each - (elements[i] ?? NaN))))).toBeLessThan(1e-5);
  });
});

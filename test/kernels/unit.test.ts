/**
 * Units that are hard to fuse, against their steps evaluated one by one, bit for bit. Random ones:
 * random-units.sampled.test.ts.
 */
import { describe, expect, it } from "vitest";
import { arithmeticDTypes } from "./reference.ts";
import { runKernel } from "./run-kernel.ts";
import { checkUnit } from "./check-unit.ts";
import { buildUnit, type UnitBuilder } from "./unit-builder.ts";

type Build = (unit: UnitBuilder, ...inputs: readonly number[]) => readonly number[];

const hard: readonly (readonly [name: string, inputs: readonly (readonly number[])[], build: Build])[] = [
  [
    "a window over a reshape, which needs divisions by numbers that fit no loop",
    [[3, 4]],
    (u, x) => {
      const flat = u.reshape(u.permute(x, [1, 0]), [12]);
      return [u.unary("neg", u.reshape(u.slice(flat, [[1, 11]]), [2, 5]))];
    },
  ],
  // 49 * (1 / 49) is below 1, and so with the other two.
  ...[49, 98, 103].map((extent): (typeof hard)[number] => [
    `rows of ${extent} in a row, and cut in rows again`,
    [
      [2, extent],
      [extent, 3],
    ],
    (u, x, y) => [
      u.unary("neg", u.reshape(x, [2 * extent])),
      u.unary("abs", u.reshape(u.permute(y, [1, 0]), [3 * extent])),
    ],
  ]),
  [
    "the same window between axes along which it repeats",
    [
      [3, 4],
      [3, 2, 5, 4],
    ],
    (u, x, y) => {
      const window = u.reshape(u.slice(u.reshape(u.permute(x, [1, 0]), [12]), [[1, 11]]), [2, 5]);
      return [u.binary("add", y, u.broadcast(u.broadcast(window, 0), 3))];
    },
  ],
  [
    "the same window under a reduction, on either axis",
    [[3, 4]],
    (u, x) => {
      const window = u.reshape(u.slice(u.reshape(u.permute(x, [1, 0]), [12]), [[1, 11]]), [2, 5]);
      return [u.reduce("sum", window, [0]), u.reduce("sum", window, [1]), u.reduce("amax", window, [0, 1])];
    },
  ],
  [
    "a value read through two different views",
    [[4, 4]],
    (u, x) => {
      const y = u.unary("abs", x);
      return [u.binary("sub", u.binary("mul", y, u.permute(y, [1, 0])), u.reshape(u.reshape(y, [16]), [4, 4]))];
    },
  ],
  [
    "a value read plainly and shifted",
    [[9]],
    (u, x) => {
      const y = u.unary("relu", x);
      return [u.binary("sub", u.slice(y, [[1, 9]]), u.slice(y, [[0, 8]]))];
    },
  ],
  [
    "sums over the slow axis inside an outer loop, of an inlined product",
    [
      [3, 7, 20],
      [3, 7, 20],
    ],
    (u, x, y) => [u.reduce("sum", u.binary("mul", x, y), [1])],
  ],
  [
    "reductions of reductions, with their operands broadcast back",
    [[3, 4, 5]],
    (u, x) => {
      const rows = u.reduce("amax", x, [2]);
      const centred = u.binary("sub", x, u.broadcast(rows, 2));
      return [u.reduce("sum", u.reduce("prod", centred, [0]), [1]), rows];
    },
  ],
  [
    "products of products, with a bias that is computed",
    [[4, 6], [6, 5], [3, 5], [3]],
    (u, x, w, v, b) => [u.unary("relu", u.linear(u.matmul(x, w), v, u.unary("neg", b)))],
  ],
  [
    "a product of gathered operands",
    [
      [3, 4],
      [5, 4],
    ],
    (u, x, y) => [u.matmul(u.reshape(u.permute(x, [1, 0]), [3, 4]), u.reshape(u.permute(y, [1, 0]), [4, 5]))],
  ],
  ["inputs and one value as several results", [[6]], (u, x) => [x, u.unary("neg", x), 1, x]],
  [
    "more steps than one nest takes",
    [[5], [5]],
    (u, x, y) => {
      let value = x;
      for (let i = 0; i < 150; i++) value = u.binary(i % 2 === 0 ? "add" : "sub", u.unary("neg", value), y);
      return [value];
    },
  ],
];

describe.each(hard)("%s", (_, inputs, build) => {
  it.each(arithmeticDTypes)("in %s", (dtype) => checkUnit(buildUnit(inputs, build, dtype), 5));
});

it("rounds each step to its dtype, as the steps alone do", () => {
  // 256 + 1 is 256 in bfloat16, so adding twice one by one is not adding 2.
  const unit = buildUnit([[1], [1]], (u, x, y) => [u.binary("add", u.binary("add", x, y), y)], "bfloat16");
  expect(runKernel(unit, [[256], [1]])).toEqual([[256]]);
});

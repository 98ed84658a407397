/** Convolutions and pools of any window, as JAX prints them and their gradients, beside loops over all elements. */
import { expect, it } from "vitest";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { evaluateOps } from "./evaluate-ops.ts";

interface Form {
  readonly name: string;
  /** [batch, width, features], [width, features into each group, features out]. */
  readonly x: readonly [number, number, number];
  readonly w: readonly [number, number, number];
  readonly stride?: number;
  readonly pad?: readonly [number, number];
  readonly spacing?: number;
  readonly dilation?: number;
  readonly groups?: number;
  readonly batchGroups?: number;
}

const forms: readonly Form[] = [
  { name: "side by side", x: [2, 6, 3], w: [2, 3, 5], stride: 2 },
  { name: "side by side, with a rest", x: [2, 7, 3], w: [2, 3, 5], stride: 2 },
  { name: "of one place", x: [2, 4, 3], w: [4, 3, 2] },
  { name: "of one element, with a stride", x: [2, 5, 3], w: [1, 3, 2], stride: 2 },
  { name: "overlapping and padded", x: [2, 5, 2], w: [3, 2, 3], pad: [1, 1] },
  { name: "with a stride, padded on one side", x: [1, 6, 2], w: [3, 2, 2], stride: 2, pad: [0, 1] },
  { name: "causal, one kernel a feature", x: [2, 5, 3], w: [4, 1, 3], pad: [3, 0], groups: 3 },
  { name: "of groups", x: [1, 4, 4], w: [2, 2, 6], groups: 2 },
  { name: "of a patch's gradient by the kernel", x: [2, 6, 3], w: [3, 3, 5], dilation: 2 },
  { name: "of a patch's gradient by the image", x: [2, 3, 5], w: [2, 5, 3], spacing: 2, pad: [1, 1] },
  { name: "dilated", x: [1, 7, 2], w: [2, 2, 2], dilation: 3 },
  { name: "of a causal gradient by the kernel", x: [3, 5, 2], w: [5, 2, 3], pad: [2, 0], batchGroups: 3 },
  { name: "of many elements, side by side", x: [1, 60, 2], w: [30, 2, 2], stride: 30 },
  { name: "of many elements, as a patch's gradient by the kernel", x: [2, 60, 2], w: [30, 2, 3], dilation: 2 },
  { name: "of many elements, as an overlapping gradient by the kernel", x: [2, 30, 2], w: [30, 2, 3], pad: [1, 1] },
  { name: "of many elements, of groups", x: [1, 31, 4], w: [28, 2, 6], stride: 2, pad: [1, 0], groups: 2 },
  { name: "that begin inside", x: [1, 6, 2], w: [2, 2, 2], pad: [-1, -2] },
];

/** The definition: out[b, p, o] is the sum over k and i of x[b, p * stride + k * dilation - low, i] * w[k, i, o]. */
function byLoops(form: Form, x: readonly number[], w: readonly number[]): readonly (readonly (readonly number[])[])[] {
  const { stride = 1, pad: [low, high] = [0, 0], spacing = 1, dilation = 1, groups = 1, batchGroups = 1 } = form;
  const [batch, width, features] = form.x;
  const [size, into, out] = form.w;
  const wide = (width - 1) * spacing + 1 + low + high;
  const places = Math.floor((wide - (size - 1) * dilation - 1) / stride) + 1;
  const rows = batch / batchGroups;
  return Array.from({ length: rows }, (_, b) =>
    Array.from({ length: places }, (__, p) =>
      Array.from({ length: out }, (___, o) => {
        const group = Math.floor((o * groups * batchGroups) / out);
        const row = batchGroups > 1 ? group * rows + b : b;
        const first = groups > 1 ? group * into : 0;
        let sum = 0;
        for (let k = 0; k < size; k++) {
          const place = p * stride + k * dilation - low;
          if (place < 0 || place % spacing !== 0 || place / spacing >= width) continue;
          for (let i = 0; i < into; i++) {
            sum += at(x, (row * width + place / spacing) * features + first + i) * at(w, (k * into + i) * out + o);
          }
        }
        return sum;
      }),
    ),
  );
}

const nested = (flat: readonly number[], [, width, features]: readonly [number, number, number]): number[][][] =>
  Array.from({ length: flat.length / width / features }, (_, b) =>
    Array.from({ length: width }, (__, i) => flat.slice((b * width + i) * features, (b * width + i + 1) * features)),
  );

it.each(forms)("windows $name", async (form) => {
  const random = createRandom(7);
  const numbers = (shape: readonly number[]): readonly number[] =>
    Array.from({ length: shape.reduce((a, b) => a * b) }, () => random.integer(9) - 4);
  const [x, w] = [numbers(form.x), numbers(form.w)];
  const wanted = byLoops(form, x, w);
  const { stride = 1, pad = [0, 0], spacing = 1, dilation = 1, groups = 1, batchGroups = 1 } = form;
  const [tx, tw] = [form.x, form.w].map((shape) => `${shape.join("x")}xf32`);
  const result = `${wanted.length}x${at(wanted, 0).length}x${form.w[2]}xf32`;
  const found = await evaluateOps({
    name: form.name,
    types: [[tx ?? "", tw ?? ""], [result]],
    body: `%r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [${stride}], pad = [[${pad.join(", ")}]], lhs_dilate = [${spacing}], rhs_dilate = [${dilation}], reverse = [false]} {batch_group_count = ${batchGroups} : i64, feature_group_count = ${groups} : i64} : (tensor<${tx}>, tensor<${tw}>) -> tensor<${result}>`,
    inputs: [nested(x, form.x), nested(w, form.w)],
    outputs: [],
  });
  expect(found).toEqual([wanted]);
});

const pooled = (kind: string, init: string, attributes: string, from: string, to: string): string => `
  %c = stablehlo.constant dense<${init}> : tensor<f32>
  %r = "stablehlo.reduce_window"(%0, %c) <{${attributes}}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %d = stablehlo.${kind} %a, %b : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }) : (tensor<${from}>, tensor<f32>) -> tensor<${to}>`;

it("the largest of each window, and sums of windows that overlap", async () => {
  const grid = [
    [1, 5, 2, 0],
    [3, 4, -1, -2],
  ];
  const run = (body: string, to: string): ReturnType<typeof evaluateOps> =>
    evaluateOps({ name: "", types: [["2x4xf32"], [to]], body, inputs: [grid], outputs: [] });
  const largest = "window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>";
  expect(await run(pooled("maximum", "0xFF800000", largest, "2x4xf32", "1x2xf32"), "1x2xf32")).toEqual([[[5, 2]]]);
  const sums = "padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>";
  expect(await run(pooled("add", "0.0", sums, "2x4xf32", "2x4xf32"), "2x4xf32")).toEqual([
    [
      [6, 8, 7, 2],
      [7, 6, 1, -3],
    ],
  ]);
});

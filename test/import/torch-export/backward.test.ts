/**
 * Rows of the ops that AOTAutograd calls for gradients, in double: beside central differences of the forward op, which
 * the oracle evaluates. No rule of gradients takes part in those.
 */
import { describe, expect, it } from "vitest";
import { importModel, Tensor } from "@braid-compiler/braid";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";

interface Case {
  /** Doubles unless the text says another dtype: `x: "f64[2, 3]"`. */
  readonly inputs: Readonly<Record<string, readonly number[]>>;
  /** Inputs with given elements, by annotation: "i64[2]". */
  readonly fixed?: Readonly<Record<string, readonly [annotation: string, Tensor]>>;
  /** Lines that make `y` and what the backward op reads. */
  readonly forward: readonly string[];
  readonly shape: readonly number[];
  /** Lines that make `grad_NAME` of inputs from `g`. */
  readonly backward: readonly string[];
}

const list = (shape: readonly number[]): string => `[${shape.join(", ")}]`;
const double = (name: string, shape: readonly number[]): string => `${name}: "f64${list(shape)}"`;

type Given = Readonly<Record<string, readonly [annotation: string, Tensor]>>;

/** What the lines compute of tensors with these shapes. */
async function read(
  parameters: Given,
  lines: readonly string[],
  returned: readonly string[],
): Promise<(given: Given) => readonly Tensor[]> {
  const head = Object.entries(parameters).map(([name, [annotation]]) => `${name}: "${annotation}"`);
  const body = [...lines, `return (${returned.join(", ")},)`];
  const text = `def forward(self, ${head.join(", ")}):\n    ${body.join("\n    ")}\n`;
  const { fusion } = await importModel(text, { file: "graph.fx" });
  const data = fusion.data();
  const tensorsIn = (given: Given): readonly Tensor[] => Object.values(given).map(([, tensor]) => tensor);
  return (given) => evaluateFusion(data, tensorsIn(given)).outputs;
}

async function run(parameters: Given, lines: readonly string[], returned: string): Promise<readonly number[]> {
  const [found] = (await read(parameters, lines, [returned]))(parameters);
  return found === undefined ? [] : numbersIn(found);
}

function numbersIn(tensor: Tensor): readonly number[] {
  return Array.from<unknown, number>({ length: tensor.data.length }, (_, i) => Number(tensor.data[i]));
}

function doubles(shape: readonly number[], values: readonly number[]): Tensor {
  return { dtype: "double", shape, data: Float64Array.from(values) };
}

/** Away from 0, where relu has no slope. */
function drawn(shape: readonly number[], seed: number): Tensor {
  const random = createRandom(seed);
  const count = shape.reduce((product, extent) => product * extent, 1);
  return doubles(
    shape,
    Array.from({ length: count }, () => {
      const value = 3 * random.float() - 1.5;
      return Math.abs(value) < 0.05 ? value + 0.1 : value;
    }),
  );
}

const step = 1e-5;

async function check({ inputs, fixed = {}, forward, shape, backward }: Case): Promise<void> {
  const names = Object.keys(inputs);
  const given = Object.fromEntries(
    names.map((name, i): [string, readonly [string, Tensor]] => {
      const own = inputs[name] ?? [];
      return [name, [`f64${list(own)}`, drawn(own, i + 1)]];
    }),
  );
  const g = drawn(shape, 99);
  const graded = names.filter((name) => backward.some((line) => line.includes(`grad_${name}:`)));
  expect(graded).not.toEqual([]);
  const all: Given = { ...given, ...fixed };
  const withG: Given = { ...all, g: [`f64${list(shape)}`, g] };
  const both = await read(
    withG,
    [...forward, ...backward],
    graded.map((name) => `grad_${name}`),
  );
  const found = both(withG);
  const plain = await read(all, forward, ["y"]);
  const weights = numbersIn(g);
  const loss = (changed: string, values: readonly number[]): number => {
    const [annotation, tensor] = given[changed] ?? ["", g];
    const [y] = plain({ ...all, [changed]: [annotation, doubles(tensor.shape, values)] });
    return y === undefined ? NaN : numbersIn(y).reduce((sum, value, i) => sum + value * (weights[i] ?? NaN), 0);
  };
  for (const [position, name] of graded.entries()) {
    const values = numbersIn(given[name]?.[1] ?? g);
    const own = numbersIn(at(found, position));
    expect(own).toHaveLength(values.length);
    for (const [i, value] of values.entries()) {
      const change = loss(name, values.with(i, value + step)) - loss(name, values.with(i, value - step));
      expect(own[i], `grad_${name}[${i}]`).toBeCloseTo(change / (2 * step), 7);
    }
  }
}

const aten = "torch.ops.aten.";

function elementwise(forward: string, backward: string): Case {
  return {
    inputs: { x: [2, 3] },
    forward: [`y: "f64[2, 3]" = ${aten}${forward}`],
    shape: [2, 3],
    backward: [`grad_x: "f64[2, 3]" = ${aten}${backward}`],
  };
}

function attentionCase(
  kernel: string,
  {
    q = [2, 2, 3, 4],
    k = [2, 2, 5, 4],
    options = "",
    lse = [2, 2, 3],
    passed,
    fixed = {},
    before,
  }: {
    readonly q?: readonly number[];
    readonly k?: readonly number[];
    readonly options?: string;
    readonly lse?: readonly number[];
    readonly passed: string;
    readonly fixed?: Case["fixed"];
    readonly before: string;
  },
): Case {
  const parts = ["q", "k", "v"].map((name, i) => double(`grad_${name}`, i === 0 ? q : k) + ` = back[${i}]`);
  return {
    inputs: { q, k, v: k },
    fixed: fixed ?? {},
    forward: [
      `found = ${aten}_scaled_dot_product_${kernel}.default(q, k, v, ${before}${options})`,
      `${double("y", q)} = found[0]`,
      `${double("lse", lse)} = found[1]`,
    ],
    shape: q,
    backward: [
      `back = ${aten}_scaled_dot_product_${kernel}_backward.default(g, q, k, v, ${passed}${options})`,
      ...parts,
    ],
  };
}

const integers = (...values: readonly number[]): Tensor => Tensor.from(values, "int64");
const mask: readonly [string, Tensor] = ["f64[3, 5]", drawn([3, 5], 5)];

const cases: Readonly<Record<string, Case>> = {
  gelu: elementwise("gelu.default(x)", "gelu_backward.default(g, x)"),
  "gelu by tanh": elementwise(
    "gelu.default(x, approximate = 'tanh')",
    "gelu_backward.default(g, x, approximate = 'tanh')",
  ),
  silu: elementwise("silu.default(x)", "silu_backward.default(g, x)"),
  tanh: elementwise("tanh.default(x)", "tanh_backward.default(g, y)"),
  sigmoid: elementwise("sigmoid.default(x)", "sigmoid_backward.default(g, y)"),
  softplus: elementwise("softplus.default(x, 2.0, 20.0)", "softplus_backward.default(g, x, 2.0, 20.0)"),
  relu: elementwise("relu.default(x)", "threshold_backward.default(g, y, 0)"),
  "softmax of rows": elementwise(
    "_softmax.default(x, -1, False)",
    "_softmax_backward_data.default(g, y, -1, torch.float64)",
  ),
  "softmax of columns": elementwise(
    "_softmax.default(x, 0, False)",
    "_softmax_backward_data.default(g, y, 0, torch.float64)",
  ),
  "the logarithm of a softmax": elementwise(
    "_log_softmax.default(x, 1, False)",
    "_log_softmax_backward_data.default(g, y, 1, torch.float64)",
  ),
  "layer norm": {
    inputs: { x: [2, 3, 4], w: [4], b: [4] },
    forward: [
      `norm = ${aten}native_layer_norm.default(x, [4], w, b, 1e-05)`,
      'y: "f64[2, 3, 4]" = norm[0]',
      'mean: "f64[2, 3, 1]" = norm[1]',
      'rstd: "f64[2, 3, 1]" = norm[2]',
    ],
    shape: [2, 3, 4],
    backward: [
      `back = ${aten}native_layer_norm_backward.default(g, x, [4], mean, rstd, w, b, [True, True, True])`,
      'grad_x: "f64[2, 3, 4]" = back[0]',
      'grad_w: "f64[4]" = back[1]',
      'grad_b: "f64[4]" = back[2]',
    ],
  },
  "RMS norm": {
    inputs: { x: [3, 4], w: [4] },
    forward: [
      `norm = ${aten}_fused_rms_norm.default(x, [4], w, 1e-05)`,
      'y: "f64[3, 4]" = norm[0]',
      'rstd: "f64[3, 1]" = norm[1]',
    ],
    shape: [3, 4],
    backward: [
      `back = ${aten}_fused_rms_norm_backward.default(g, x, [4], rstd, w, [True, True])`,
      'grad_x: "f64[3, 4]" = back[0]',
      'grad_w: "f64[4]" = back[1]',
    ],
  },
  "dropout by a mask": {
    inputs: { x: [4] },
    fixed: { kept: ["b8[4]", Tensor.from([1, 0, 1, 1], "bool")] },
    forward: [`zero: "f64[4]" = ${aten}where.self(kept, x, 0.0)`, `y: "f64[4]" = ${aten}mul.Tensor(zero, 1.25)`],
    shape: [4],
    backward: [`grad_x: "f64[4]" = ${aten}native_dropout_backward.default(g, kept, 1.25)`],
  },
  "an embedding": {
    inputs: { w: [5, 3] },
    fixed: { i: ["i64[4]", integers(4, 0, 4, 2)] },
    forward: [`y: "f64[4, 3]" = ${aten}embedding.default(w, i)`],
    shape: [4, 3],
    backward: [`grad_w: "f64[5, 3]" = ${aten}embedding_dense_backward.default(g, i, 5, -1, False)`],
  },
  "an embedding as inductor writes it": {
    inputs: { w: [5, 3] },
    fixed: {
      i: [
        "i64[2, 2]",
        Tensor.from(
          [
            [4, 0],
            [4, 2],
          ],
          "int64",
        ),
      ],
    },
    forward: [`y: "f64[2, 2, 3]" = ${aten}embedding.default(w, i)`],
    shape: [2, 2, 3],
    backward: [
      `zero: "f64[5, 3]" = ${aten}full.default([5, 3], 0, dtype = torch.float64, pin_memory = False)`,
      `grad_w: "f64[5, 3]" = ${aten}index_put.default(zero, [i], g, True)`,
    ],
  },
  "elements by index": {
    inputs: { x: [2, 3, 2] },
    fixed: { i: ["i64[3]", integers(1, 0, 1)], j: ["i64[3]", integers(2, 2, -1)] },
    forward: [`y: "f64[3, 2]" = ${aten}index.Tensor(x, [i, j])`],
    shape: [3, 2],
    backward: [
      `zero: "f64[2, 3, 2]" = ${aten}new_zeros.default(x, [2, 3, 2], pin_memory = False)`,
      `grad_x: "f64[2, 3, 2]" = ${aten}index_put.default(zero, [i, j], g, True)`,
    ],
  },
  "gathered elements": {
    inputs: { x: [2, 3] },
    fixed: {
      i: [
        "i64[2, 2]",
        Tensor.from(
          [
            [2, 2],
            [0, 1],
          ],
          "int64",
        ),
      ],
    },
    forward: [`y: "f64[2, 2]" = ${aten}gather.default(x, 1, i)`],
    shape: [2, 2],
    backward: [
      `zero: "f64[2, 3]" = ${aten}new_zeros.default(x, [2, 3], pin_memory = False)`,
      `grad_x: "f64[2, 3]" = ${aten}scatter_add.default(zero, 1, i, g)`,
    ],
  },
  "a slice with a step": {
    inputs: { x: [2, 7] },
    forward: [`y: "f64[2, 2]" = ${aten}slice.Tensor(x, 1, -6, -1, 3)`],
    shape: [2, 2],
    backward: [`grad_x: "f64[2, 7]" = ${aten}slice_backward.default(g, [2, 7], 1, -6, -1, 3)`],
  },
  "a slice as inductor writes it": {
    inputs: { x: [5, 2] },
    forward: [`y: "f64[2, 2]" = ${aten}slice.Tensor(x, 0, 1, 3)`],
    shape: [2, 2],
    backward: [
      `zero: "f64[5, 2]" = ${aten}full.default([5, 2], 0, dtype = torch.float64)`,
      `grad_x: "f64[5, 2]" = ${aten}slice_scatter.default(zero, g, 0, 1, 3)`,
    ],
  },
  "an index": {
    inputs: { x: [3, 4] },
    forward: [`y: "f64[3]" = ${aten}select.int(x, 1, -1)`],
    shape: [3],
    backward: [`grad_x: "f64[3, 4]" = ${aten}select_backward.default(g, [3, 4], 1, -1)`],
  },
  "an index as inductor writes it": {
    inputs: { x: [3, 4] },
    forward: [`y: "f64[4]" = ${aten}select.int(x, 0, 1)`],
    shape: [4],
    backward: [
      `zero: "f64[3, 4]" = ${aten}full.default([3, 4], 0, dtype = torch.float64)`,
      `grad_x: "f64[3, 4]" = ${aten}select_scatter.default(zero, g, 0, 1)`,
    ],
  },
  "a cumulative sum": {
    inputs: { x: [4] },
    forward: [`y: "f64[4]" = ${aten}cumsum.default(x, 0)`],
    shape: [4],
    backward: [
      `back: "f64[4]" = ${aten}flip.default(g, [0])`,
      `sums: "f64[4]" = ${aten}cumsum.default(back, 0)`,
      `grad_x: "f64[4]" = ${aten}flip.default(sums, [0])`,
    ],
  },
  "a convolution of patches": {
    inputs: { x: [2, 3, 4, 2], w: [2, 3, 2, 2], b: [2] },
    forward: [`y: "f64[2, 2, 2, 1]" = ${aten}convolution.default(x, w, b, [2, 2], [0, 0], [1, 1], False, [0, 0], 1)`],
    shape: [2, 2, 2, 1],
    backward: [
      `back = ${aten}convolution_backward.default(g, x, w, [2], [2, 2], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])`,
      'grad_x: "f64[2, 3, 4, 2]" = back[0]',
      'grad_w: "f64[2, 3, 2, 2]" = back[1]',
      'grad_b: "f64[2]" = back[2]',
    ],
  },
  ...Object.fromEntries(
    [0, 1, 2].map((reduction): [string, Case] => [
      `a loss of log-probabilities, reduction ${reduction}`,
      {
        inputs: { x: [4, 3] },
        fixed: { t: ["i64[4]", integers(2, 0, -100, 1)] },
        forward: [
          `loss = ${aten}nll_loss_forward.default(x, t, None, ${reduction}, -100)`,
          `y: "f64${reduction === 0 ? "[4]" : "[]"}" = loss[0]`,
          'count: "f64[]" = loss[1]',
        ],
        shape: reduction === 0 ? [4] : [],
        backward: [`grad_x: "f64[4, 3]" = ${aten}nll_loss_backward.default(g, x, t, None, ${reduction}, -100, count)`],
      },
    ]),
  ),
  ...Object.fromEntries(
    [0, 1, 2].map((reduction): [string, Case] => [
      `squared errors, reduction ${reduction}`,
      {
        inputs: { x: [2, 3], t: [2, 3] },
        forward: [`y: "f64${reduction === 0 ? "[2, 3]" : "[]"}" = ${aten}mse_loss.default(x, t, ${reduction})`],
        shape: reduction === 0 ? [2, 3] : [],
        backward: [`grad_x: "f64[2, 3]" = ${aten}mse_loss_backward.default(g, x, t, ${reduction})`],
      },
    ]),
  ),
  "flash attention": attentionCase("flash_attention", {
    before: "0.0, False",
    passed: "y, lse, None, None, 3, 5, 0.0, False, None, None",
    options: ", scale = 0.3",
  }),
  "causal flash attention of shared heads": attentionCase("flash_attention", {
    q: [1, 4, 3, 2],
    k: [1, 2, 3, 2],
    lse: [1, 4, 3],
    before: "0.0, True",
    passed: "y, lse, None, None, 3, 3, 0.0, True, None, None",
  }),
  "attention of CPUs": attentionCase("flash_attention_for_cpu", {
    before: "0.0, False",
    passed: "y, lse, 0.0, False",
    options: ", attn_mask = mask",
    fixed: { mask },
  }),
  "memory-efficient attention": attentionCase("efficient_attention", {
    lse: [2, 2, 32],
    before: "None, True, 0.0, False",
    passed: "None, y, lse, None, None, 0.0, [True, True, True, False]",
  }),
  "memory-efficient attention with a mask": attentionCase("efficient_attention", {
    lse: [2, 2, 32],
    before: "mask, True",
    passed: "mask, y, lse, None, None, 0.0, [True, True, True, False]",
    fixed: { mask },
  }),
  "cuDNN's attention": attentionCase("cudnn_attention", {
    lse: [2, 2, 3, 1],
    before: "None, True, 0.0, False, False",
    passed: "y, lse, None, None, None, None, None, 3, 5, 0.0, False",
  }),
};

describe("the gradient of", () => {
  it.each(Object.entries(cases))("%s is its slope", async (_, each) => {
    await check(each);
  });
});

it("an embedding gives rows of its padding no gradient", async () => {
  const found = await run(
    { i: ["i64[3]", integers(1, 0, 1)], g: ["f64[3, 1]", doubles([3, 1], [2, 3, 4])] },
    [`w: "f64[2, 1]" = ${aten}embedding_dense_backward.default(g, i, 2, 1, False)`],
    "w",
  );
  expect(found).toEqual([3, 0]);
});

it("the loss of logits is that of their log-probabilities, without the rows that do not count", async () => {
  const x = drawn([3, 4], 7);
  const found = await run(
    { x: ["f64[3, 4]", x], t: ["i64[3]", integers(3, -100, 0)] },
    ['y: "f64[]" = torch.nn.functional.cross_entropy(x, t)'],
    "y",
  );
  const rows = [0, 1, 2].map((row) => numbersIn(x).slice(4 * row, 4 * row + 4));
  const lossOf = (row: number, target: number): number =>
    Math.log((rows[row] ?? []).reduce((sum, value) => sum + Math.exp(value), 0)) - (rows[row]?.[target] ?? NaN);
  expect(found[0]).toBeCloseTo((lossOf(0, 3) + lossOf(2, 0)) / 2, 12);
});

it("puts a number at the indices of rows", async () => {
  const found = await run(
    { x: ["f64[2, 3]", doubles([2, 3], [1, 2, 3, 4, 5, 6])], i: ["i64[2, 1]", Tensor.from([[2], [0]], "int64")] },
    [`y: "f64[2, 3]" = ${aten}scatter.value(x, 1, i, -1.0)`],
    "y",
  );
  expect(found).toEqual([1, 2, -1, -1, 5, 6]);
});

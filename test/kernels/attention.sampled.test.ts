/** Kernels of attention against the oracle: dtypes, masks, shared heads, strides, extents 0 and 1, blocks and parts. */
import { describe, expect, it } from "vitest";
import type { SdpaBackwardKernel, SdpaKernel } from "../../src/commands/kernel.ts";
import { sdpa, sdpaBackward } from "../../src/ir/api/ops.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import type { CausalMask } from "../../src/ir/ops/kinds/attention/attention.ts";
import { planKernel } from "../../src/kernels/kernel-plan.ts";
import { splitKernel } from "../../src/kernels/nests/split-kernel.ts";
import { accumulatorOf, type DType } from "../../src/numerics/dtype.ts";
import { elementsOf, type Value, emptyTensor, type Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { count, operand, runKernel, type Values } from "./run-kernel.ts";

interface Shape {
  readonly front?: readonly number[];
  /** Extents in front of keys and values. */
  readonly shared?: readonly number[];
  readonly rows: number;
  readonly keys: number;
  readonly d: number;
  readonly e: number;
  readonly causal?: CausalMask | null;
  readonly window?: number | null;
  readonly scale?: number;
  /** What is added to the scores. */
  readonly bias?: readonly number[];
}

const random = createRandom(5);

function tensorOf(dtype: DType, shape: readonly number[], element: () => Value = () => 2 * random.float() - 1): Tensor {
  const tensor = emptyTensor(dtype, shape);
  const elements = elementsOf(dtype, tensor.data);
  for (let i = 0; i < elements.length; i++) elements.set(i, element());
  return tensor;
}

function valuesOf({ dtype, data }: Tensor): Values {
  const elements = elementsOf(dtype, data);
  return Array.from({ length: elements.length }, (_, i): Value => elements.get(i));
}

/** Some keys are hidden, all of some rows. */
function biasElement(): number {
  return random.integer(3) === 0 ? -Infinity : 2 * random.float() - 1;
}

function inputsOf({ front = [], shared = front, rows, keys, d, e, bias }: Shape, dtype: DType): readonly Tensor[] {
  return [
    tensorOf(dtype, [...front, rows, d]),
    tensorOf(dtype, [...shared, keys, d]),
    tensorOf(dtype, [...shared, keys, e]),
    ...(bias === undefined ? [] : [tensorOf(dtype, bias, biasElement)]),
  ];
}

/** Strides of a tensor whose last axes are packed beside others of equal size, and whose rows lie in front of heads. */
function packed(shape: readonly number[]): readonly number[] {
  const [rows = 1, columns = 1] = shape.slice(-2);
  const heads = count(shape.slice(0, -2));
  const outer = shape.slice(0, -2).map((_, axis) => count(shape.slice(axis + 1, -2)) * columns * 2);
  return rows === 0 || columns === 0 ? shape.map(() => 0) : [...outer, heads * columns * 2, 1];
}

interface Runs {
  readonly kernel: SdpaKernel | SdpaBackwardKernel;
  readonly inputs: readonly Tensor[];
  readonly fusion: Fusion;
}

function forward(shape: Shape, dtype: DType, inputs: readonly Tensor[], strided = false): Runs {
  const { front = [], rows, d, e, causal = null, window = null, scale = 1 / Math.sqrt(d) } = shape;
  const f = new Fusion();
  const [q, k, v, further] = inputs.map((input) => f.input(input.shape, input.dtype));
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const masks = further && (further.dtype === dtype ? { mask: further } : { keyLengths: further });
  const results = sdpa(q, k, v, { causal, window, scale, ...masks });
  f.output(results.output);
  f.output(results.logsumexp);
  const outputs = [operand(dtype, [...front, rows, e]), operand(accumulatorOf(dtype), [...front, rows])];
  return {
    fusion: f,
    inputs,
    kernel: {
      kind: "sdpa",
      causal,
      window,
      scale,
      inputs: inputs.map((input) => operand(input.dtype, input.shape, strided ? packed(input.shape) : undefined)),
      outputs: strided
        ? outputs.map((each, i) => (i === 0 ? { ...each, strides: packed(each.shape) } : each))
        : outputs,
    },
  };
}

function backward(shape: Shape, dtype: DType, [q, k, v, bias]: readonly Tensor[], strided = false): Runs {
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const { causal = null, window = null, d, scale = 1 / Math.sqrt(d) } = shape;
  const last = bias === undefined ? [] : [bias];
  const { fusion } = forward(shape, dtype, [q, k, v, ...last]);
  const [output, logsumexp] = evaluateFusion(fusion.data(), [q, k, v, ...last]).outputs;
  if (output === undefined || logsumexp === undefined) throw new Error("two results");
  const inputs = [tensorOf(dtype, output.shape), q, k, v, output, logsumexp, ...last];
  const f = new Fusion();
  const views = inputs.map((input) => f.input(input.shape, input.dtype));
  const results = { output: at(views, 4), logsumexp: at(views, 5) };
  const mask = views[6] === undefined ? {} : { mask: views[6] };
  const options = { causal, window, scale, ...mask };
  const made = sdpaBackward(at(views, 0), at(views, 1), at(views, 2), at(views, 3), results, options);
  for (const gradient of [made.dq, made.dk, made.dv]) f.output(gradient);
  const strides = (each: readonly number[]) => (strided ? packed(each) : undefined);
  return {
    fusion: f,
    inputs,
    kernel: {
      kind: "sdpaBackward",
      causal,
      window,
      scale,
      inputs: inputs.map((input, i) => operand(input.dtype, input.shape, i !== 5 ? strides(input.shape) : undefined)),
      outputs: [q, k, v].map((each) => operand(dtype, each.shape, strides(each.shape))),
    },
  };
}

function check({ kernel, inputs, fusion }: Runs): readonly Values[] {
  const expected = evaluateFusion(fusion.data(), inputs, undefined, { blocksContractions: true, keepsNaN: true });
  const found = runKernel(kernel, inputs.map(valuesOf));
  for (const [i, values] of found.entries()) {
    const wanted = valuesOf(at(expected.outputs, i));
    const bounds = at(expected.bounds, i);
    expect(values.length).toBe(wanted.length);
    for (const [j, value] of values.entries()) {
      const [own, other, bound] = [Number(value), Number(at(wanted, j)), bounds[j] ?? NaN];
      if (bound === Infinity) continue;
      const isClose = Object.is(own, other) || own === other || Math.abs(own - other) <= bound;
      expect(isClose, `output ${i}, element ${j}: ${own}, not ${other} within ${bound}`).toBe(true);
    }
  }
  return found;
}

const shapes: Readonly<Record<string, Shape>> = {
  "one head": { rows: 5, keys: 7, d: 4, e: 3 },
  "several blocks": { rows: 130, keys: 70, d: 8, e: 8 },
  "several blocks, topLeft": { rows: 130, keys: 90, d: 8, e: 5, causal: "topLeft" },
  "several blocks, bottomRight": { rows: 70, keys: 131, d: 5, e: 8, causal: "bottomRight" },
  "a window of several blocks": { rows: 200, keys: 200, d: 8, e: 5, causal: "topLeft", window: 70 },
  "a window in one block": { rows: 9, keys: 9, d: 4, e: 4, causal: "topLeft", window: 3 },
  "a window of one key": { rows: 70, keys: 70, d: 4, e: 4, causal: "topLeft", window: 1 },
  "a window longer than the keys": { rows: 66, keys: 66, d: 4, e: 4, causal: "topLeft", window: 99 },
  "a window, topLeft, of fewer keys": { rows: 200, keys: 70, d: 4, e: 4, causal: "topLeft", window: 30 },
  "a window, bottomRight": { rows: 140, keys: 301, d: 5, e: 8, causal: "bottomRight", window: 65 },
  "a window with rows without a key": { rows: 70, keys: 5, d: 4, e: 4, causal: "bottomRight", window: 2 },
  "a window of heads in groups": {
    front: [2, 3],
    shared: [2, 1],
    rows: 70,
    keys: 70,
    d: 4,
    e: 4,
    causal: "topLeft",
    window: 5,
  },
  "rows without a key": { rows: 70, keys: 3, d: 4, e: 4, causal: "bottomRight" },
  "heads and groups": { front: [2, 2, 3], shared: [2, 2, 1], rows: 9, keys: 9, d: 4, e: 4, causal: "topLeft" },
  "shared by all heads": { front: [3], shared: [1], rows: 3, keys: 4, d: 2, e: 2 },
  "shared by a batch": { front: [3, 2], shared: [1, 2], rows: 3, keys: 4, d: 2, e: 2 },
  "one row, one key": { rows: 1, keys: 1, d: 1, e: 1, causal: "topLeft" },
  "a negative scale": { rows: 3, keys: 4, d: 2, e: 2, scale: -2 },
  "a negative scale, topLeft": { rows: 4, keys: 4, d: 2, e: 2, scale: -2, causal: "topLeft" },
  "a scale of 0, topLeft": { rows: 4, keys: 4, d: 2, e: 2, scale: 0, causal: "topLeft" },
  "a bias": { rows: 130, keys: 70, d: 8, e: 8, bias: [130, 70] },
  "a bias of keys, topLeft": {
    front: [2, 2, 3],
    shared: [2, 2, 1],
    rows: 130,
    keys: 130,
    d: 4,
    e: 4,
    causal: "topLeft",
    bias: [2, 1, 1, 1, 130],
  },
  "a bias of rows, a negative scale": { rows: 70, keys: 9, d: 4, e: 4, scale: -2, bias: [70, 1] },
  "a bias of heads, a window": {
    front: [2, 3],
    rows: 150,
    keys: 150,
    d: 4,
    e: 4,
    causal: "topLeft",
    window: 70,
    bias: [1, 3, 150, 150],
  },
  "a bias of rows without a key": { rows: 70, keys: 3, d: 4, e: 4, causal: "bottomRight", bias: [70, 3] },
  "a bias, a scale of 0": { rows: 4, keys: 4, d: 2, e: 2, scale: 0, bias: [4, 4] },
  "no keys": { rows: 3, keys: 0, d: 2, e: 2 },
  "heads of size 0": { rows: 3, keys: 4, d: 0, e: 2, scale: 1 },
  "values of size 0": { rows: 3, keys: 4, d: 2, e: 0 },
};

const cases = combinations({ name: Object.keys(shapes), dtype: ["float", "double", "half", "bfloat16"] as const });

describe("attention", () => {
  it.each(sample(cases, 35))("of $dtype, $name", ({ name, dtype }) => {
    const shape = shapes[name];
    if (shape === undefined) throw new Error("a shape");
    const inputs = inputsOf(shape, dtype);
    check(forward(shape, dtype, inputs));
    if (shape.keys > 0 && shape.d > 0 && shape.e > 0) {
      check(backward(shape, dtype, inputs));
      check(forward(shape, dtype, inputs, true));
      check(backward(shape, dtype, inputs, true));
    }
  });
});

it.each<readonly [string, Shape, number]>([
  ["rows", { rows: 0, keys: 3, d: 2, e: 2 }, 1],
  ["keys", { rows: 3, keys: 0, d: 2, e: 2 }, 0],
  ["values", { rows: 3, keys: 2, d: 2, e: 0 }, 0],
])("has gradients of 0 without %s", (_, shape, output) => {
  const found = check(backward(shape, "bfloat16", inputsOf(shape, "bfloat16")))[output] ?? [];
  expect(found.length).toBeGreaterThan(0);
  expect(new Set(found)).toEqual(new Set([0]));
});

it("is no plan of nests, which is what GPUs run", () => {
  const shape: Shape = { rows: 2, keys: 2, d: 2, e: 2 };
  const { kernel } = forward(shape, "float", inputsOf(shape, "float"));
  expect(() => planKernel(kernel)).toThrow("--schedule attention=ops");
});

it("gives 0 and -Infinity in rows without a visible key", () => {
  const shape: Shape = { rows: 4, keys: 2, d: 2, e: 3, causal: "bottomRight" };
  const [output = [], logsumexp = []] = check(forward(shape, "float", inputsOf(shape, "float")));
  expect(output.slice(0, 6)).toEqual([0, 0, 0, 0, 0, 0]);
  expect(logsumexp.slice(0, 2)).toEqual([-Infinity, -Infinity]);
  expect(logsumexp.slice(2).every((value) => Number.isFinite(Number(value)))).toBe(true);
});

it("passes NaN on in its row alone", () => {
  const shape: Shape = { rows: 3, keys: 3, d: 2, e: 2 };
  const [q, k, v] = inputsOf(shape, "float");
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const elements = valuesOf(q).with(2, NaN).values();
  const spoiled = tensorOf("float", q.shape, () => Number(elements.next().value));
  const [output = []] = check(forward(shape, "float", [spoiled, k, v]));
  expect(output.map((value) => Number.isNaN(Number(value)))).toEqual([false, false, true, true, false, false]);
});

it("has no bound where a masked key is infinite", () => {
  const shape: Shape = { rows: 3, keys: 3, d: 2, e: 2, causal: "topLeft" };
  const [q, k, v] = inputsOf(shape, "float");
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const elements = valuesOf(k).with(-1, Infinity).values();
  const spoiled = tensorOf("float", k.shape, () => Number(elements.next().value));
  const run = backward(shape, "float", [q, spoiled, v]);
  check(run);
  const [dq] = evaluateFusion(run.fusion.data(), run.inputs).bounds;
  expect([...(dq?.slice(0, 2) ?? [])].map((bound) => bound === Infinity)).toEqual([false, true]);
});

it("has the same bits in rows of the whole and of a late chunk", () => {
  const whole: Shape = { rows: 150, keys: 300, d: 8, e: 8, causal: "bottomRight" };
  const [q, k, v] = inputsOf(whole, "float");
  if (q === undefined || k === undefined || v === undefined) throw new Error("three operands");
  const late = 37;
  const elements = valuesOf(q)
    .slice(-late * 8)
    .values();
  const chunk = tensorOf("float", [late, 8], () => Number(elements.next().value));
  const [all = []] = check(forward(whole, "float", [q, k, v]));
  const [own = []] = check(forward({ ...whole, rows: late }, "float", [chunk, k, v]));
  expect(own).toEqual(all.slice(-late * 8));
});

function withLengths(shape: Shape, lengths: Tensor): Runs {
  return forward(shape, "float", [...inputsOf(shape, "float"), lengths]);
}

it.each([
  [null, null],
  ["topLeft", null],
  ["bottomRight", null],
  ["topLeft", 2],
  ["bottomRight", 10],
  ["bottomRight", 40],
] as const)("sees as many keys as there are, %s, window %s", (causal, window) => {
  const shape: Shape = { front: [4, 2, 2], shared: [4, 2, 1], rows: 3, keys: 70, d: 4, e: 4, causal, window };
  const values = [0, 70, 33, 99].values();
  check(
    withLengths(
      shape,
      tensorOf("int", [4, 1, 1], () => Number(values.next().value)),
    ),
  );
  const heads = [1, 2, 70, 5, 0, 64, 65, -1].values();
  check(
    withLengths(
      shape,
      tensorOf("int64", [4, 2, 1], () => BigInt(Number(heads.next().value))),
    ),
  );
});

it("sees as many keys as there are where fewer than two axes are in front", () => {
  const shape: Shape = { rows: 3, keys: 7, d: 4, e: 2 };
  for (const front of [[], [1], [3]]) {
    const values = [5, 0, 9].values();
    check(
      withLengths(
        { ...shape, front },
        tensorOf("int", front, () => Number(values.next().value)),
      ),
    );
  }
});

it("is divided with its lengths", () => {
  const shape: Shape = { front: [4, 2], rows: 8, keys: 8, d: 4, e: 4 };
  const offsets = (own: Shape, axes: readonly number[], parts: number): readonly (readonly number[])[] =>
    splitKernel(
      withLengths(
        own,
        tensorOf("int", axes, () => 8),
      ).kernel,
      parts,
    ).map(({ inputOffsets }) => inputOffsets);
  expect(offsets(shape, [4, 1], 4)).toEqual([0, 1, 2, 3].map((i) => [i * 256, i * 256, i * 256, i * 4]));
  expect(offsets({ ...shape, front: [1, 4], shared: [1, 1] }, [1, 1], 4)).toEqual(
    [0, 1, 2, 3].map((i) => [i * 128, 0, 0, 0]),
  );
  expect(offsets({ ...shape, front: [1] }, [1], 2)).toEqual([
    [0, 0, 0, 0],
    [64, 0, 0, 0],
  ]);
});

it("is divided with its bias", () => {
  const shape: Shape = { front: [4, 2], rows: 8, keys: 6, d: 4, e: 4 };
  const offsets = (of: typeof forward, bias: readonly number[], own: Shape = shape) => {
    const { kernel } = of({ ...own, bias }, "float", inputsOf({ ...own, bias }, "float"));
    return splitKernel(kernel, 2).map(({ inputOffsets }) => inputOffsets.at(-1));
  };
  expect(offsets(forward, [4, 1, 8, 6])).toEqual([0, 384]);
  expect(offsets(forward, [1, 2, 1, 6])).toEqual([0, 0]);
  expect(offsets(backward, [4, 2, 8, 6])).toEqual([0, 768]);
  const rows: Shape = { ...shape, front: [] };
  expect(offsets(forward, [8, 6], rows)).toEqual([0, 96]);
  expect(offsets(forward, [1, 6], rows)).toEqual([0, 0]);
});

it("is divided into parts along heads, and along rows without a mask", () => {
  const shape: Shape = { front: [4], rows: 8, keys: 8, d: 4, e: 4 };
  const { kernel } = forward(shape, "float", inputsOf(shape, "float"));
  expect(splitKernel(kernel, 4).map((part) => part.outputOffsets)).toEqual([0, 1, 2, 3].map((i) => [i * 128, i * 32]));
  const rows = forward({ ...shape, front: [] }, "float", inputsOf({ ...shape, front: [] }, "float")).kernel;
  expect(splitKernel(rows, 2).map((part) => part.inputOffsets)).toEqual([
    [0, 0, 0],
    [64, 0, 0],
  ]);
  expect(splitKernel({ ...rows, causal: "topLeft" } as SdpaKernel, 2)).toHaveLength(1);
  const shared: Shape = { ...shape, shared: [1] };
  expect(splitKernel(backward(shared, "float", inputsOf(shared, "float")).kernel, 4)).toHaveLength(1);
  expect(splitKernel(backward(shape, "float", inputsOf(shape, "float")).kernel, 4)).toHaveLength(4);
});

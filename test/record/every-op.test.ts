/**
 * Every op as a statement of a host program, run on the CPU back end, gives the oracle's result: with its output
 * given, and without.
 */
import {
  abs,
  add,
  amax,
  amin,
  broadcast,
  cast,
  div,
  Fusion,
  HostProgramBuilder,
  linear,
  matmul,
  mul,
  neg,
  permute,
  prod,
  relu,
  reshape,
  select,
  set,
  slice,
  squeeze,
  sub,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { AxisSpec, OutputOption } from "../../src/host/build/options.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { createRandom } from "../../src/support/random.ts";
import { runPrograms } from "./run-programs.ts";

interface OpCase {
  readonly shapes: readonly (readonly number[])[];
  readonly fusion: (...inputs: TensorView[]) => TensorView;
  readonly host: (h: HostProgramBuilder, inputs: readonly TensorView[], options: OutputOption) => TensorView;
}

function unary(
  fusion: (x: TensorView) => TensorView,
  host: (h: HostProgramBuilder, x: TensorView, options: OutputOption) => TensorView,
  shape: readonly number[] = [3, 4, 5],
): OpCase {
  return { shapes: [shape], fusion, host: (h, [x], options) => host(h, present(x), options) };
}

function pair(
  fusion: (a: TensorView, b: TensorView) => TensorView,
  host: (h: HostProgramBuilder, a: TensorView, b: TensorView, options: OutputOption) => TensorView,
  ...shapes: readonly [readonly number[], readonly number[]]
): OpCase {
  return { shapes, fusion, host: (h, [a, b], options) => host(h, present(a), present(b), options) };
}

function present(view: TensorView | undefined): TensorView {
  if (view === undefined) throw new Error("a missing operand");
  return view;
}

const matmulCase = (a: readonly number[], b: readonly number[]): OpCase =>
  pair(matmul, (h, x, y, options) => h.matmul(x, y, options), a, b);

const linearCase = (...shapes: readonly (readonly number[])[]): OpCase => ({
  shapes,
  fusion: (x, weight, bias) => linear(present(x), present(weight), bias),
  host: (h, [x, weight, bias], options) => h.linear(present(x), present(weight), bias ?? null, options),
});

const cases: Readonly<Record<string, OpCase>> = {
  set: unary(set, (h, x, options) => h.set(x, options)),
  add: pair(add, (h, a, b, options) => h.add(a, b, options), [3, 4], [3, 4]),
  "sub, stretched": pair(sub, (h, a, b, options) => h.sub(a, b, options), [3, 1, 5], [1, 4, 5]),
  mul: pair(mul, (h, a, b, options) => h.mul(a, b, options), [7], [7]),
  div: pair(div, (h, a, b, options) => h.div(a, b, options), [3, 4], [3, 1]),
  sum: unary(
    (x) => sum(x, [1]),
    (h, x, options) => h.sum(x, [1], options),
  ),
  "prod over outer axes": unary(
    (x) => prod(x, [0, 1]),
    (h, x, options) => h.prod(x, [0, 1], options),
    [2, 2, 5],
  ),
  amax: unary(
    (x) => amax(x, [2]),
    (h, x, options) => h.amax(x, [2], options),
  ),
  "amin of all": unary(
    (x) => amin(x, [0, 1, 2]),
    (h, x, options) => h.amin(x, [0, 1, 2], options),
  ),
  slice: unary(
    (x) => slice(x, [1, 0, 2], [3, 4, 4]),
    (h, x, options) => h.slice(x, [1, 0, 2], [3, 4, 4], options),
  ),
  select: unary(
    (x) => select(x, 1, 3),
    (h, x, options) => h.selectOp(x, 1, 3, options),
  ),
  matmul: matmulCase([4, 8], [8, 2]),
  "matmul of batches and a matrix": matmulCase([3, 4, 8], [8, 2]),
  "matmul of equal batches": matmulCase([3, 4, 8], [3, 8, 2]),
  "matmul of stretched batches": matmulCase([2, 1, 4, 8], [3, 8, 2]),
  "matmul of a vector": matmulCase([8], [8, 2]),
  "matmul by a vector": matmulCase([3, 4, 8], [8]),
  "matmul of vectors": matmulCase([8], [8]),
  linear: linearCase([4, 8], [2, 8]),
  "linear with bias": linearCase([3, 4, 8], [2, 8], [2]),
  "linear of a vector": linearCase([8], [2, 8], [2]),
  "linear with one feature": linearCase([4, 8], [8]),
  neg: unary(neg, (h, x, options) => h.unary("neg", x, options)),
  abs: unary(abs, (h, x, options) => h.unary("abs", x, options)),
  relu: unary(relu, (h, x, options) => h.unary("relu", x, options)),
  cast: unary(
    (x) => cast(x, "bfloat16"),
    (h, x, options) => h.cast(x, "bfloat16", options),
  ),
  broadcast: unary(
    (x) => broadcast(x, [true, false, true, false, false]),
    (h, x, options) => h.broadcast(x, [true, false, true, false, false], options),
  ),
  squeeze: unary(
    (x) => squeeze(x, [0, 2]),
    (h, x, options) => h.squeeze(x, [0, 2], options),
    [1, 4, 1, 5],
  ),
  permute: unary(
    (x) => permute(x, [2, 0, 1]),
    (h, x, options) => h.permute(x, [2, 0, 1], options),
  ),
  reshape: unary(
    (x) => reshape(x, [6, 2, 5]),
    (h, x, options) => h.reshape(x, [6, 2, 5], options),
  ),
};

type OutputForm = "given" | "given, strided" | "new";

const forms: readonly OutputForm[] = ["given", "given, strided", "new"];

describe.each(Object.entries(cases))("%s", (_, opCase) => {
  const { shapes, fusion, host } = opCase;
  it.each(forms.flatMap((form) => [false, true].map((strided) => [form, strided] as const)))(
    "output %s, inputs strided: %s",
    async (form, strided) => {
      const f = new Fusion();
      f.output(fusion(...shapes.map((shape) => f.input(shape))));
      const data = f.data();
      const inputs = randomInputs(
        shapes.map((shape) => ({ dtype: "float", shape })),
        createRandom(7),
        "small-integers",
      );
      const [expected] = evaluateFusion(data, inputs).outputs;
      if (expected === undefined) throw new Error("an output");

      const h = new HostProgramBuilder();
      const views = shapes.map((shape) => {
        const input = h.input(shape);
        return strided ? transposedCopy(h, input) : input;
      });
      const made = host(h, views, outputOf(h, form, opCase));
      const result = h.tensor(expected.shape, { dtype: expected.dtype });
      h.output(result);
      h.set(made, { out: result });
      const [[actual] = []] = await runPrograms([h.build()], { inputs: [inputs] });
      expect(actual).toEqual(expected);
    },
  );
});

/** The same elements in another order in memory. */
function transposedCopy(h: HostProgramBuilder, input: TensorView): TensorView {
  const copy = h.allocate(rotated(h.tensor([...input.extents])));
  return h.set(input, { out: copy });
}

/** The last axis lies outermost in memory. */
function rotated(tensor: TensorView): TensorView {
  const axes = Array.from({ length: tensor.nDims }, (_, i) => i);
  return tensor.setAllocationDomain([...axes.slice(-1), ...axes.slice(0, -1)]);
}

/** Memory for the case's result, with the axes that the op gives it. */
function outputOf(h: HostProgramBuilder, form: OutputForm, { shapes, host }: OpCase): OutputOption {
  if (form === "new") return {};
  const probe = new HostProgramBuilder();
  const { dtype, domain } = host(
    probe,
    shapes.map((shape) => probe.input(shape)),
    {},
  ).data();
  const axes = domain.logical.map(({ extent, iterType }): AxisSpec => {
    if (iterType === "broadcast") return "broadcast";
    return iterType === "reduction" ? { reduced: extent } : extent;
  });
  const out = h.tensor(axes, { dtype });
  return { out: h.allocate(form === "given" ? out : rotated(out)) };
}

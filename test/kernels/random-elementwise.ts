/** Random expressions of all elementwise functions, from the API, over values at edges. */
import fc from "fast-check";
import type { UnitKernel } from "../../src/commands/kernel.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import * as api from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { binaryFunctions } from "../../src/ir/ops/functions/binary.ts";
import { unaryFunctions } from "../../src/ir/ops/functions/unary.ts";
import type { BinaryOpType } from "../../src/ir/ops/op.ts";
import { type DType, dtypes, isComputed } from "../../src/numerics/dtype.ts";
import { emptyTensor, type Tensor, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at, invariant, keysOf } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { takes, unaryCalls } from "../support/unary-calls.ts";
import { operand, type Values } from "./run-kernel.ts";
import { edges, randomValues } from "./values.ts";

const everyDType = keysOf(dtypes).filter(isComputed);
const binaryCalls: { readonly [Op in BinaryOpType]: (x: TensorView, y: TensorView) => TensorView } = api;

const choice = fc.record({ form: fc.nat(9), op: fc.nat(99), first: fc.nat(5), second: fc.nat(9) });

export const elementwiseChoices = fc.record({
  inputs: fc.array(fc.constantFrom(...everyDType), { minLength: 1, maxLength: 3 }),
  steps: fc.array(choice, { minLength: 1, maxLength: 7 }),
  seed: fc.nat(),
});

type Choices = typeof elementwiseChoices extends fc.Arbitrary<infer T> ? T : never;
type StepChoice = Choices["steps"][number];

export interface ElementwiseCase {
  readonly kernel: UnitKernel;
  readonly inputs: readonly Values[];
  /** The first element of the result that is off by more than the oracle's bound; null if there is none. */
  readonly worst: (found: Values) => unknown;
}

/** The kernel of an expression that the choices make. Its result is the last tensor. */
export function elementwiseCase({ inputs, steps, seed }: Choices): ElementwiseCase {
  const random = createRandom(seed);
  const values = inputs.map((dtype) => {
    const drawn = [...edges[dtype], ...edges[dtype], ...randomValues(dtype, 40, random)];
    return Array.from({ length: 40 }, () => at(drawn, random.integer(drawn.length)));
  });
  const f = new Fusion();
  const made = inputs.map((dtype) => f.input([40], dtype));
  for (const step of steps) made.push(next(made, step));
  f.output(at(made, made.length - 1));
  const { tensors, ops, outputs } = f.data();
  const operands = tensors.map(({ dtype }) => operand(dtype, [40]));
  const kernel: UnitKernel = {
    kind: "unit",
    inputs: operands.slice(0, inputs.length),
    outputs: outputs.map((id) => at(operands, id)),
    values: operands.map(({ dtype, shape }) => ({ dtype, shape })),
    steps: ops.map((op) => {
      const { kind } = op;
      invariant(kind === "Unary" || kind === "Binary" || kind === "Ternary" || kind === "Cast", "elementwise", kind);
      return op;
    }),
    results: outputs,
  };
  const expected = evaluateFusion(
    f.data(),
    values.map((each, i) => tensorOf(at(inputs, i), each)),
  );
  const result = at(expected.outputs, 0);
  const worst = (found: Values): unknown =>
    compare(tensorOf(result.dtype, found), result, at(expected.bounds, 0)).firstBad;
  return { kernel, inputs: values, worst };
}

function next(made: readonly TensorView[], { form, op, first, second }: StepChoice): TensorView {
  const x = at(made, made.length - 1 - (first % made.length));
  const y = at(made, second % made.length);
  const condition = made.findLast(({ dtype }) => dtype === "bool");
  if (form === 0) return api.cast(x, at(everyDType, op % everyDType.length));
  if (form < 3 && condition !== undefined) return form === 1 ? api.where(condition, x, y) : api.where(condition, x, 2);
  if (form < 6) {
    const names = keysOf(unaryFunctions).filter((name) => takes(unaryFunctions[name].operand, x.dtype));
    return at(
      names.map((name) => unaryCalls[name]),
      op % names.length,
    )(x);
  }
  const names = keysOf(binaryFunctions).filter((name) => {
    const { operand: taken } = binaryFunctions[name];
    return takes(taken, x.dtype) && takes(taken, y.dtype);
  });
  return binaryCalls[at(names, op % names.length)](x, y);
}

function tensorOf(dtype: DType, values: Values): Tensor {
  const tensor = emptyTensor(dtype, [values.length]);
  const elements = elementsOf(tensor.dtype, tensor.data);
  for (const [i, value] of values.entries()) elements.set(i, value);
  return tensor;
}

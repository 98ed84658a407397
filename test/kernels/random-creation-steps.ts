/** Random steps of one value, and of random numbers. */
import type { UnitKernel, UnitValue } from "../../src/commands/kernel.ts";
import type { RandomForm } from "../../src/ir/ops/functions/philox.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { another, firstOf, type Made, type Maker, pick, type StepChoice } from "./random-step.ts";
import { operand } from "./run-kernel.ts";

export const creationMakers: readonly Maker[] = [makeFull, makeRandom];

function makeFull(values: readonly UnitValue[], choice: StepChoice): Made {
  const { output, dtype, shape } = firstOf(values, choice);
  const value = dtype === "float" || dtype === "half" ? "-0.3" : String(choice.detail % 2);
  return { step: { kind: "Full", value, inputs: [], output }, value: { dtype, shape } };
}

const forms: readonly (readonly [RandomForm, DType])[] = [
  [{ kind: "bits" }, "int"],
  [{ kind: "uniform" }, "float"],
  [{ kind: "below", limit: 3_000_000_000 }, "bool"],
  [{ kind: "below", limit: 2 ** 32 }, "bool"],
];

/** Of int64 values: a seed without axes, and a vector for each of up to two axes. */
function makeRandom(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const ofRank = (rank: number, which: number): readonly number[] => {
    const found = another(values, which, (value) => value.dtype === "int64" && value.shape.length === rank);
    return found === null ? [] : [found];
  };
  const [seed] = ofRank(0, choice.first);
  if (seed === undefined) return null;
  const vectors = [choice.second, choice.third].slice(0, choice.detail % 3).flatMap((which) => ofRank(1, which));
  const [form, dtype] = pick(forms, choice.detail);
  return {
    step: {
      kind: "RandomBits",
      offset: choice.detail * 1_000_000_007,
      form,
      inputs: [seed, ...vectors],
      output: values.length,
    },
    value: { dtype, shape: vectors.flatMap((vector) => at(values, vector).shape) },
  };
}

/** A unit of random numbers alone; `form` counts the forms. */
export function randomBitsUnit(shape: readonly number[], form: number): UnitKernel {
  const [made, dtype] = pick(forms, form);
  const inputs = [[], ...shape.map((extent) => [extent])].map((own) => operand("int64", own));
  const output = operand(dtype, shape);
  return {
    kind: "unit",
    inputs,
    outputs: [output],
    values: [...inputs, output],
    steps: [{ kind: "RandomBits", offset: 2 ** 40 + 3, form: made, inputs: [...inputs.keys()], output: inputs.length }],
    results: [inputs.length],
  };
}

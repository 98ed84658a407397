/**
 * Units made from lists of numbers: each list picks one op, its operands among the values so far, and its parameters.
 * Every list makes a valid unit, so fast-check can shrink one by shortening lists and making numbers smaller.
 */
import type { Operand, UnitKernel, UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { creationMakers } from "./random-creation-steps.ts";
import { shapeMakers } from "./random-shape-steps.ts";
import { another, firstOf, type Made, type Maker, pick, type StepChoice } from "./random-step.ts";
import { binaryFunctions } from "../../src/ir/ops/functions/binary.ts";
import { takes } from "../support/unary-calls.ts";
import { count, operand } from "./run-kernel.ts";

export interface UnitChoice {
  readonly inputs: readonly { readonly dtype: DType; readonly shape: readonly number[]; readonly layout: number }[];
  readonly steps: readonly StepChoice[];
  readonly results: readonly number[];
  readonly layout: number;
}

/** Values with more elements are not made. */
const mostElements = 400;

export function makeUnit(choice: UnitChoice): UnitKernel {
  const values: UnitValue[] = choice.inputs.map(({ dtype, shape }) => ({ dtype, shape }));
  const steps: UnitStep[] = [];
  for (const each of choice.steps) {
    const made = makeStep(values, each);
    if (made === null || count(made.value.shape) > mostElements) continue;
    steps.push(made.step);
    values.push(made.value);
  }
  const results = [values.length - 1, ...choice.results.map((result) => result % values.length)];
  return {
    kind: "unit",
    inputs: choice.inputs.map(({ dtype, shape, layout }) => spread(dtype, shape, layout, true)),
    outputs: results.map((result, i) => {
      const { dtype, shape } = at(values, result);
      return spread(dtype, shape, choice.layout + i, false);
    }),
    values,
    steps,
    results,
  };
}

/**
 * A layout of a tensor: as it is, with its axes in reverse, padded, spaced, or, for reading, the same along its first
 * axis.
 */
export function spread(dtype: DType, shape: readonly number[], layout: number, reading: boolean): Operand {
  switch (layout % (reading ? 5 : 4)) {
    case 1: {
      const strides = shape.map((_, axis) => count(shape.slice(0, axis)));
      return operand(dtype, shape, strides);
    }
    case 2: {
      const padded = shape.map((extent, axis) => (axis === 0 ? extent : extent + 1));
      return operand(
        dtype,
        shape,
        shape.map((_, axis) => count(padded.slice(axis + 1))),
      );
    }
    case 3:
      return operand(
        dtype,
        shape,
        shape.map((_, axis) => 2 * count(shape.slice(axis + 1))),
      );
    case 4:
      return operand(
        dtype,
        shape,
        shape.map((_, axis) => (axis === 0 ? 0 : count(shape.slice(axis + 1)))),
      );
    default:
      return operand(dtype, shape);
  }
}

const makers: readonly Maker[] = [
  makeUnary,
  makeBinary,
  makeBinary,
  makeReduction,
  makeBroadcast,
  makePermute,
  makeReshape,
  makeReshape,
  makeSlice,
  makeSelect,
  makeSqueeze,
  makeMatmul,
  makeLinear,
  makeCast,
  makeTernary,
  makeSet,
  ...shapeMakers,
  ...creationMakers,
];

/** Makers of views, and of steps of several values. */
export const viewMakers: readonly Maker[] = [
  makeBroadcast,
  makePermute,
  makePermute,
  makeReshape,
  makeSlice,
  makeSelect,
  makeSqueeze,
  makeSet,
];
export const joiningMakers: readonly Maker[] = [makeTernary, makeMatmul, makeLinear];

function makeStep(values: readonly UnitValue[], choice: StepChoice): Made | null {
  return at(makers, choice.op % makers.length)(values, choice);
}

function isFloat(dtype: DType): boolean {
  return dtypes[dtype].family === "float";
}

function makeSet(values: readonly UnitValue[], choice: StepChoice): Made {
  const { number, output, dtype, shape } = firstOf(values, choice);
  return { step: { kind: "Set", inputs: [number], output }, value: { dtype, shape } };
}

function makeUnary(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (dtype === "bool") return null;
  const exact = ["neg", "abs", "relu", "sign"] as const;
  const ops = isFloat(dtype) ? ([...exact, "exp", "gelu", "sqrt", "floor", "ceil", "trunc", "round"] as const) : exact;
  return {
    step: { kind: "Unary", op: pick<(typeof ops)[number]>(ops, choice.detail), inputs: [number], output },
    value: { dtype, shape },
  };
}

function makeCast(values: readonly UnitValue[], choice: StepChoice): Made {
  const { number, output, shape } = firstOf(values, choice);
  const to = pick(["float", "half", "bfloat16", "double", "int", "int64", "bool"] as const, choice.detail);
  return { step: { kind: "Cast", to, inputs: [number], output }, value: { dtype: to, shape } };
}

function makeBinary(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const second = another(
    values,
    choice.second,
    (other) =>
      other.dtype === dtype &&
      other.shape.length === shape.length &&
      other.shape.every((extent, axis) => extent === shape[axis] || extent === 1 || shape[axis] === 1),
  );
  if (second === null) return null;
  const stretched = shape.map((extent, axis) => Math.max(extent, at(at(values, second).shape, axis)));
  const ops = keysOf(binaryFunctions).filter(
    (op) => !["pow", "atan2"].includes(op) && takes(binaryFunctions[op].operand, dtype),
  );
  const op = pick(ops, choice.detail);
  const inputs = choice.third % 2 === 0 ? [number, second] : [second, number];
  const made = binaryFunctions[op].result === "bool" ? "bool" : dtype;
  return { step: { kind: "Binary", op, inputs, output }, value: { dtype: made, shape: stretched } };
}

/** A condition, the last value of its shape and dtype bool, and one value or two. */
function makeTernary(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const same = (other: UnitValue): boolean => other.shape.join() === shape.join();
  const condition = another(values, choice.second, (other) => other.dtype === "bool" && same(other));
  const second = another(values, choice.third, (other) => other.dtype === dtype && same(other));
  if (condition === null || second === null) return null;
  const step = { kind: "Ternary", op: "where", output } as const;
  if (choice.detail % 3 === 0)
    return { step: { ...step, inputs: [condition, number, second] }, value: { dtype, shape } };
  const position = choice.detail % 3 === 1 ? 1 : 2;
  return {
    step: { ...step, inputs: [condition, number], scalar: { position, text: dtype === "bool" ? "1" : "3" } },
    value: { dtype, shape },
  };
}

function makeReduction(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const axes = shape.map((_, axis) => axis).filter((axis) => ((choice.second + 1) >> axis) % 2 === 1);
  if (axes.length === 0) return null;
  const ops = dtype === "bool" ? (["amax", "amin"] as const) : (["sum", "prod", "amax", "amin"] as const);
  return {
    step: { kind: "Reduction", op: pick<(typeof ops)[number]>(ops, choice.detail), axes, inputs: [number], output },
    value: { dtype, shape: shape.filter((_, axis) => !axes.includes(axis)) },
  };
}

function makeBroadcast(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length > 3) return null;
  const axis = choice.detail % (shape.length + 1);
  return {
    step: { kind: "Broadcast", flags: shape.map(() => false).toSpliced(axis, 0, true), inputs: [number], output },
    value: { dtype, shape: shape.toSpliced(axis, 0, 1) },
  };
}

function makeSqueeze(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const axes = shape.map((_, axis) => axis).filter((axis) => shape[axis] === 1);
  if (axes.length === 0) return null;
  return {
    step: { kind: "Squeeze", axes, inputs: [number], output },
    value: { dtype, shape: shape.filter((extent) => extent !== 1) },
  };
}

function makePermute(values: readonly UnitValue[], choice: StepChoice): Made {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const rest = shape.map((_, axis) => axis);
  let digits = choice.detail + 1;
  const order = shape.map(() => {
    const position = digits % rest.length;
    digits = Math.floor(digits / rest.length);
    return at(rest.splice(position, 1), 0);
  });
  return {
    step: { kind: "Permute", order, inputs: [number], output },
    value: { dtype, shape: order.map((axis) => at(shape, axis)) },
  };
}

function makeReshape(values: readonly UnitValue[], choice: StepChoice): Made {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const result: number[] = [];
  let rest = count(shape);
  let digits = choice.detail;
  while (rest > 1 && result.length < 3) {
    const divisors = Array.from({ length: rest }, (_, i) => rest - i).filter((d) => rest % d === 0);
    const extent = pick(divisors, digits);
    digits = Math.floor(digits / divisors.length) + choice.second;
    result.push(extent);
    rest /= extent;
  }
  if (rest > 1) result.push(rest);
  return { step: { kind: "Reshape", inputs: [number], output }, value: { dtype, shape: result } };
}

function makeSlice(values: readonly UnitValue[], choice: StepChoice): Made {
  const { number, output, dtype, shape } = firstOf(values, choice);
  const ranges = shape.map((extent, axis) => {
    const start = (choice.detail + axis) % extent;
    const stop = start + 1 + (choice.second % (extent - start));
    return choice.third % 2 === 0 ? { start, stop } : { start, stop, step: 1 + ((choice.third + axis) % 3) };
  });
  return {
    step: { kind: "Slice", ranges, inputs: [number], output },
    value: { dtype, shape: ranges.map(({ start, stop, step = 1 }) => Math.ceil((stop - start) / step)) },
  };
}

function makeSelect(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (shape.length === 0) return null;
  const axis = choice.detail % shape.length;
  return {
    step: { kind: "Select", axis, index: choice.second % at(shape, axis), inputs: [number], output },
    value: { dtype, shape: shape.toSpliced(axis, 1) },
  };
}

function makeMatmul(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (dtype === "bool" || shape.length === 0) return null;
  const k = at(shape, shape.length - 1);
  const batch = shape.slice(0, -2);
  const second = another(values, choice.second, (other) => {
    if (other.dtype !== dtype || other.shape.length === 0) return false;
    if (other.shape[Math.max(0, other.shape.length - 2)] !== k) return false;
    return broadcastBatch(batch, other.shape.slice(0, -2)) !== null;
  });
  if (second === null) return null;
  const right = at(values, second).shape;
  const outer = broadcastBatch(batch, right.slice(0, -2)) ?? [];
  return {
    step: { kind: "Matmul", inputs: [number, second], output },
    value: { dtype, shape: [...outer, ...shape.slice(-2, -1), ...(right.length > 1 ? right.slice(-1) : [])] },
  };
}

/** Batch axes that line up at their last one, of equal extents or 1; null if they do not. */
function broadcastBatch(a: readonly number[], b: readonly number[]): readonly number[] | null {
  const rank = Math.max(a.length, b.length);
  const pairs = Array.from(
    { length: rank },
    (_, i) => [a[i - rank + a.length] ?? 1, b[i - rank + b.length] ?? 1] as const,
  );
  return pairs.every(([x, y]) => x === y || x === 1 || y === 1) ? pairs.map(([x, y]) => Math.max(x, y)) : null;
}

function makeLinear(values: readonly UnitValue[], choice: StepChoice): Made | null {
  const { number, output, dtype, shape } = firstOf(values, choice);
  if (dtype === "bool" || shape.length === 0) return null;
  const k = at(shape, shape.length - 1);
  const weight = another(
    values,
    choice.second,
    (other) => other.dtype === dtype && [1, 2].includes(other.shape.length) && other.shape.at(-1) === k,
  );
  if (weight === null) return null;
  const columns = at(values, weight).shape.slice(0, -1);
  const bias = another(values, choice.third, (other) => other.dtype === dtype && other.shape.join() === columns.join());
  const inputs = bias === null || choice.detail % 2 === 0 ? [number, weight] : [number, weight, bias];
  return { step: { kind: "Linear", inputs, output }, value: { dtype, shape: [...shape.slice(0, -1), ...columns] } };
}

/**
 * Evaluates the steps of a unit one after the other over row-major lists of elements: slow, and without any index
 * arithmetic shared.
 */
import type { UnitKernel, UnitStep } from "../../src/commands/kernel.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { compileUnary } from "./compiled-expressions.ts";
import type { Value } from "../../src/numerics/tensor/storage.ts";
import { at } from "../../src/support/invariant.ts";
import { binary, cast, dot, numberOf, reduce, unary } from "./reference.ts";
import { rowMajor, type Values } from "./run-kernel.ts";

interface Tensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: Values;
}

type Index = readonly number[];

/** Row-major elements of every result. */
export function evaluateUnit(unit: UnitKernel, inputs: readonly Values[]): readonly Values[] {
  const tensors: Tensor[] = inputs.map((values, i) => ({ ...at(unit.values, i), values }));
  for (const step of unit.steps) {
    const { dtype, shape } = at(unit.values, step.output);
    const operands = step.inputs.map((value) => at(tensors, value));
    const values =
      step.kind === "Reshape"
        ? at(operands, 0).values
        : indices(shape).map((index) => element(step, operands, dtype, index));
    tensors[step.output] = { dtype, shape, values };
  }
  return unit.results.map((value) => at(tensors, value).values);
}

function indices(shape: readonly number[]): readonly Index[] {
  return shape.reduce<readonly Index[]>(
    (all, extent) => all.flatMap((index) => Array.from({ length: extent }, (_, i) => [...index, i])),
    [[]],
  );
}

function element(
  step: Exclude<UnitStep, { kind: "Reshape" }>,
  operands: readonly Tensor[],
  dtype: DType,
  index: Index,
): Value {
  const first = at(operands, 0);
  switch (step.kind) {
    case "Set":
      return read(first, index);
    case "Unary":
      return step.op === "gelu"
        ? compileUnary("gelu", dtype)(read(first, index))
        : unary(step.op, dtype, read(first, index));
    case "Cast":
      return cast(first.dtype, step.to, read(first, index));
    case "Binary":
      return binary(step.op, dtype, ...sides(step, operands, dtype, index));
    case "Reduction": {
      const kept = index.values();
      const reduced = first.shape.map((extent, axis) =>
        step.axes.includes(axis) ? range(extent) : [kept.next().value ?? 0],
      );
      return reduce(
        step.op,
        dtype,
        product(reduced).map((each) => read(first, each)),
      );
    }
    case "Broadcast":
      return read(
        first,
        index.filter((_, axis) => step.flags[axis] === false),
      );
    case "Squeeze": {
      const kept = index.values();
      return read(
        first,
        first.shape.map((_, axis) => (step.axes.includes(axis) ? 0 : (kept.next().value ?? 0))),
      );
    }
    case "Permute": {
      const inner = first.shape.map(() => 0);
      for (const [axis, from] of step.order.entries()) inner[from] = at(index, axis);
      return read(first, inner);
    }
    case "Slice":
      return read(
        first,
        index.map((i, axis) => i + at(step.ranges, axis).start),
      );
    case "Select":
      return read(first, [...index.slice(0, step.axis), step.index, ...index.slice(step.axis)]);
    case "Matmul":
      return matmulElement(first, at(operands, 1), index);
    case "Linear":
      return linearElement(first, at(operands, 1), operands[2], index);
  }
}

function sides(
  { scalar }: Extract<UnitStep, { kind: "Binary" }>,
  operands: readonly Tensor[],
  dtype: DType,
  index: Index,
): [Value, Value] {
  const first = read(at(operands, 0), index);
  if (scalar === undefined) return [first, read(at(operands, 1), index)];
  const number = numberOf(dtype, scalar.text);
  return scalar.position === 0 ? [number, first] : [first, number];
}

/** The element at `index`; an axis of one element takes any. */
function read({ shape, values }: Tensor, index: Index): Value {
  const strides = rowMajor(shape);
  return at(
    values,
    index.reduce((sum, i, axis) => sum + (shape[axis] === 1 ? 0 : i) * at(strides, axis), 0),
  );
}

function matmulElement(a: Tensor, b: Tensor, index: Index): Value {
  const outer = [...index];
  const n = b.shape.length > 1 ? [outer.pop() ?? 0] : [];
  const m = a.shape.length > 1 ? [outer.pop() ?? 0] : [];
  const batch = (rank: number): Index => outer.slice(outer.length - Math.max(0, rank - 2));
  const terms = range(at(a.shape, a.shape.length - 1)).map((k): [Value, Value] => [
    read(a, [...batch(a.shape.length), ...m, k]),
    read(b, [...batch(b.shape.length), k, ...n]),
  ]);
  return dot(a.dtype, terms, null);
}

function linearElement(x: Tensor, weight: Tensor, bias: Tensor | undefined, index: Index): Value {
  const n = weight.shape.length > 1 ? index.slice(-1) : [];
  const rows = index.slice(0, index.length - n.length);
  const terms = range(at(x.shape, x.shape.length - 1)).map((k): [Value, Value] => [
    read(x, [...rows, k]),
    read(weight, [...n, k]),
  ]);
  return dot(x.dtype, terms, bias === undefined ? null : read(bias, n));
}

function range(extent: number): readonly number[] {
  return Array.from({ length: extent }, (_, i) => i);
}

function product(choices: readonly (readonly number[])[]): readonly Index[] {
  return choices.reduce<readonly Index[]>((all, each) => all.flatMap((index) => each.map((i) => [...index, i])), [[]]);
}

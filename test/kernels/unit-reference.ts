/**
 * Evaluates the steps of a unit one after the other over row-major lists of elements: slow, and without any index
 * arithmetic shared.
 */
import type { UnitKernel, UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import type { UnaryOpType } from "../../src/ir/ops/op.ts";
import { accumulatorOf, type DType, dtypes } from "../../src/numerics/dtype.ts";
import { compileUnary } from "./compiled-expressions.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { randomBits } from "../../src/oracle/evaluate-op.ts";
import { combinationOf } from "../../src/oracle/definitions.ts";
import { at } from "../../src/support/invariant.ts";
import { binary, cast, dot, isInexact, numberOf, reduce, toDType, unary } from "./reference.ts";
import { rowMajor, type Values } from "./run-kernel.ts";

export interface UnitTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: Values;
}

type Index = readonly number[];

/** Row-major elements of every result. */
export function evaluateUnit(unit: UnitKernel, inputs: readonly Values[]): readonly Values[] {
  const tensors: UnitTensor[] = inputs.map((values, i) => ({ ...at(unit.values, i), values }));
  for (const step of unit.steps) {
    tensors[step.output] = evaluateStep(
      step,
      step.inputs.map((value) => at(tensors, value)),
      at(unit.values, step.output),
    );
  }
  return unit.results.map((value) => at(tensors, value).values);
}

/** The value of a step, of this dtype and shape. */
export function evaluateStep(step: UnitStep, operands: readonly UnitTensor[], { dtype, shape }: UnitValue): UnitTensor {
  const values =
    step.kind === "Reshape"
      ? at(operands, 0).values
      : indices(shape).map((index) => element(step, operands, dtype, index));
  return { dtype, shape, values };
}

type Statement = (x: Value) => Value;

const compiled = new Map<string, Statement>();

/** The oracle's definition, or that of kernels where their last bits differ. */
function statementOf(op: UnaryOpType, dtype: DType): Statement {
  if (!isInexact(op, dtype)) return (x) => unary(op, dtype, x);
  const key = `${op} ${dtype}`;
  const statement = compiled.get(key) ?? compileUnary(op, dtype);
  compiled.set(key, statement);
  return statement;
}

function indices(shape: readonly number[]): readonly Index[] {
  return shape.reduce<readonly Index[]>(
    (all, extent) => all.flatMap((index) => Array.from({ length: extent }, (_, i) => [...index, i])),
    [[]],
  );
}

function element(
  step: Exclude<UnitStep, { kind: "Reshape" }>,
  operands: readonly UnitTensor[],
  dtype: DType,
  index: Index,
): Value {
  const [first = { dtype, shape: [], values: [] }] = operands;
  switch (step.kind) {
    case "Set":
    case "Expand":
      return read(first, index);
    case "Full":
      return dtype === "int64" ? BigInt(step.value) : cast("double", dtype, Number(step.value));
    case "RandomBits": {
      const scalars = operands.map(({ values }, i) => ({
        dtype: "int64" as const,
        shape: [],
        elements: [at(values, i === 0 ? 0 : at(index, i - 1))],
        bounds: new Float64Array(1),
      }));
      return at(randomBits(step, scalars, dtype, []).elements, 0);
    }
    case "Iota":
      throw new Error("iota is a kernel of its own");
    case "Unary":
      return statementOf(step.op, dtype)(read(first, index));
    case "Cast":
      return cast(first.dtype, step.to, read(first, index));
    case "Binary":
      return binary(step.op, first.dtype, ...sides(step, operands, first.dtype, index));
    case "Ternary": {
      const values = operands.slice(1).map((each) => read(each, index));
      if (step.scalar !== undefined) {
        values.splice(step.scalar.position - 1, 0, rounded(dtype, step.scalar.text));
      }
      return at(values, read(first, index) === 0 ? 1 : 0);
    }
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
        index.map((i, axis) => i * (at(step.ranges, axis).step ?? 1) + at(step.ranges, axis).start),
      );
    case "Select":
      return read(first, [...index.slice(0, step.axis), step.index, ...index.slice(step.axis)]);
    case "Cat": {
      let position = at(index, step.axis);
      const own = operands.findIndex(({ shape }) => {
        const isInside = position < at(shape, step.axis);
        if (!isInside) position -= at(shape, step.axis);
        return isInside;
      });
      return read(at(operands, own), index.with(step.axis, position));
    }
    case "IndexSelect": {
      const rank = at(operands, 1).shape.length;
      const place = read(at(operands, 1), index.slice(step.axis, step.axis + rank));
      return readAt(first, step.axis, place, (inside) => index.toSpliced(step.axis, rank, inside));
    }
    case "Gather":
      return readAt(first, step.axis, read(at(operands, 1), index), (inside) => index.with(step.axis, inside));
    case "ScatterAdd": {
      const [places, source] = [at(operands, 1), at(operands, 2)];
      return range(at(source.shape, step.axis)).reduce(
        (sum, i) => {
          const from = index.with(step.axis, i);
          const isHere = Number(read(places, from)) === index[step.axis];
          return isHere ? binary("add", dtype, sum, read(source, from)) : sum;
        },
        read(first, index),
      );
    }
    case "Scan": {
      const own = at(index, step.axis);
      const upTo = range(at(first.shape, step.axis)).filter((i) => (step.reverse ? i >= own : i <= own));
      const accumulator = accumulatorOf(dtype);
      const values = upTo.map((i) => cast(dtype, accumulator, read(first, index.with(step.axis, i))));
      const ordered = step.reverse ? values.toReversed() : values;
      const total = ordered.reduce((sum, x) => combinationOf(step.op, accumulator, sum, x));
      return cast(accumulator, dtype, total);
    }
    case "Argsort": {
      const row = range(at(first.shape, step.axis)).map((i) => read(first, index.with(step.axis, i)));
      const sorted = [...row.keys()].sort((i, j) => {
        const compared = order(at(row, i), at(row, j));
        return (step.descending ? -compared : compared) || i - j;
      });
      return BigInt(at(sorted, at(index, step.axis)));
    }
    case "GroupedMatmul":
      return groupedElement(first, at(operands, 1), at(operands, 2), index);
    case "Pad": {
      const inside = index.map((i, axis) => i - at(step.widths, axis).before);
      const isInside = inside.every((i, axis) => i >= 0 && i < at(first.shape, axis));
      return isInside ? read(first, inside) : numberOf(dtype, step.value);
    }
    case "Matmul":
      return matmulElement(first, at(operands, 1), index);
    case "Linear":
      return linearElement(first, at(operands, 1), operands[2], index);
  }
}

/** NaN is the largest. */
function order(a: Value, b: Value): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return a < b ? -1 : Number(a > b);
}

/** A number as an element. */
function rounded(dtype: DType, text: string): Value {
  return dtypes[dtype].family === "float" ? toDType(dtype, Number(text)) : numberOf(dtype, text);
}

function sides(
  { scalar }: Extract<UnitStep, { kind: "Binary" }>,
  operands: readonly UnitTensor[],
  dtype: DType,
  index: Index,
): [Value, Value] {
  const first = read(at(operands, 0), index);
  if (scalar === undefined) return [first, read(at(operands, 1), index)];
  const number = numberOf(dtype, scalar.text);
  return scalar.position === 0 ? [number, first] : [first, number];
}

/** The element at a loaded index along `axis`, or 0. */
function readAt(tensor: UnitTensor, axis: number, place: Value, position: (inside: number) => Index): Value {
  const inside = place >= 0 && place < at(tensor.shape, axis);
  return inside ? read(tensor, position(Number(place))) : numberOf(tensor.dtype, "0");
}

/** The element at `index`; an axis of one element takes any. */
function read({ shape, values }: UnitTensor, index: Index): Value {
  const strides = rowMajor(shape);
  return at(
    values,
    index.reduce((sum, i, axis) => sum + (shape[axis] === 1 ? 0 : i) * at(strides, axis), 0),
  );
}

function groupedElement(x: UnitTensor, y: UnitTensor, ends: UnitTensor, index: Index): Value {
  const batch = index.slice(0, x.shape.length - 2);
  const [i = 0, j = 0, n = 0] = index.slice(batch.length);
  const from = (tensor: UnitTensor, ...inner: Index): Value => {
    const missing = batch.length + inner.length - tensor.shape.length;
    return read(tensor, [...batch.slice(missing), ...inner]);
  };
  const stops = range(at(ends.shape, ends.shape.length - 1)).map((e) => Number(from(ends, e)));
  const perGroup = y.shape.length > x.shape.length;
  const group = perGroup ? stops.findIndex((end) => i < end) : i;
  const start = stops[group - 1] ?? 0;
  const terms = perGroup
    ? range(group < 0 ? 0 : at(x.shape, x.shape.length - 1)).map((k) => [from(x, i, k), from(y, group, k, j)] as const)
    : range(at(stops, group) - start).map((row) => [from(x, start + row, j), from(y, start + row, n)] as const);
  return terms.length === 0 ? numberOf(x.dtype, "0") : dot(x.dtype, terms, null);
}

function matmulElement(a: UnitTensor, b: UnitTensor, index: Index): Value {
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

function linearElement(x: UnitTensor, weight: UnitTensor, bias: UnitTensor | undefined, index: Index): Value {
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

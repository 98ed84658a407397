/**
 * Units of mixed dtypes, as norms, softmaxes and quantizations are: packed floats that are cast to float and back,
 * several reductions over different axes, rows combined with their totals, views between them, and results of several
 * dtypes. Each step is evaluated as it is drawn, so that sums are drawn only where they are exact in any order.
 */
import type { Operand, UnitKernel, UnitStep, UnitValue } from "../../src/commands/kernel.ts";
import { binaryFunctions } from "../../src/ir/ops/functions/binary.ts";
import type { ReductionOpType } from "../../src/ir/ops/op.ts";
import { type DType, dtypes, isComputed, isFloatDType, isPacked } from "../../src/numerics/dtype.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at, keysOf } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { takes } from "../support/unary-calls.ts";
import { creationMakers } from "./random-creation-steps.ts";
import { shapeMakers } from "./random-shape-steps.ts";
import type { Maker } from "./random-step.ts";
import { joiningMakers, spread, viewMakers } from "./random-unit.ts";
import { asStored, count, offsetsOf, operand, type Values } from "./run-kernel.ts";
import { evaluateStep, type UnitTensor } from "./unit-reference.ts";
import { edges, randomValues } from "./values.ts";

export interface MixedCase {
  readonly kernel: UnitKernel;
  readonly inputs: readonly Values[];
  readonly expected: readonly Values[];
}

/** The unit so far. */
interface Draft {
  readonly random: Random;
  readonly tensors: UnitTensor[];
  readonly steps: UnitStep[];
  readonly most: number;
}

type Move = (draft: Draft) => void;

/** `most` bounds the elements of a value. */
export function mixedUnit(seed: number, most = 2600): MixedCase {
  const random = createRandom(seed);
  const operands = inputsOf(random, most);
  const inputs = operands.map((each) => asStored(each, valuesOf(each, random)));
  const tensors = operands.map(({ dtype, shape }, i): UnitTensor => ({ dtype, shape, values: at(inputs, i) }));
  const draft: Draft = { random, tensors, steps: [], most };
  const wanted = 3 + random.integer(10);
  for (let tries = 0; draft.steps.length < wanted && tries < 60; tries++) pickFrom(random, moves)(draft);
  if (draft.steps.length === 0) castAny(draft);
  // The last value, and others of which most follow from steps.
  const computed = draft.steps.map(({ output }) => output);
  const others = Array.from({ length: random.integer(4) }, () =>
    random.integer(8) === 0 ? random.integer(tensors.length) : pickFrom(random, computed),
  );
  const results = [tensors.length - 1, ...others];
  return {
    kernel: {
      kind: "unit",
      inputs: operands,
      outputs: results.map((result) => laid(at(tensors, result), random, false)),
      values: tensors.map(({ dtype, shape }) => ({ dtype, shape })),
      steps: draft.steps,
      results,
    },
    inputs,
    expected: results.map((result) => at(tensors, result).values),
  };
}

function pickFrom<T>(random: Random, items: readonly T[]): T {
  return at(items, random.integer(items.length));
}

const drawnDTypes: readonly DType[] = [
  "bfloat16",
  "bfloat16",
  "bfloat16",
  "half",
  "half",
  "float",
  "float",
  "float8_e4m3fn",
  "float8_e5m2",
  "double",
  "int",
  "int64",
  "bool",
];

const packedDTypes = keysOf(dtypes).filter(isPacked);

const rowExtents = [1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 130] as const;
/** Of which threads take several vectors each. */
const longExtents = [4096, 9000] as const;
const elementExtents = [1, 2, 3, 7, 8, 16, 24, 32, 40, 64, 96, 128, 130, 256, 384, 513, 1030] as const;

/** A tensor of rows, one or two axes, and others with which it may be combined. */
function inputsOf(random: Random, most: number): readonly Operand[] {
  const within = (extents: readonly number[]): readonly number[] => extents.filter((each) => each <= most);
  const long = within(longExtents);
  const elements = pickFrom(random, random.integer(3) === 0 && long.length > 0 ? long : within(elementExtents));
  const fitting = rowExtents.filter((rows) => rows * elements <= most);
  const rows = pickFrom(random, fitting.length === 0 ? [1] : fitting);
  const batch = pickFrom(random, [2, 3].filter((each) => each * rows * elements <= most).concat(1));
  const whole = batch > 1 && random.integer(3) === 0 ? [batch, rows, elements] : [rows, elements];
  const shapes = [
    whole,
    whole.slice(-1),
    whole.slice(0, -1),
    [...whole.slice(0, -1), 1],
    whole,
    whole.toReversed(),
    [],
  ];
  const dtype = pickFrom(random, drawnDTypes);
  return Array.from({ length: 1 + random.integer(3) }, (_, i) =>
    laid(
      {
        dtype: random.integer(3) === 0 ? pickFrom(random, drawnDTypes) : dtype,
        shape: i === 0 ? whole : pickFrom(random, shapes),
      },
      random,
      true,
    ),
  );
}

/** Mostly row-major. */
function laid({ dtype, shape }: UnitValue, random: Random, reading: boolean): Operand {
  return random.integer(4) === 0 ? spread(dtype, shape, random.integer(5), reading) : operand(dtype, shape);
}

/** Whole numbers for most operands; others at the edges of their dtype, or of many digits. */
function valuesOf(each: Operand, random: Random): Values {
  const { length } = offsetsOf(each);
  const { dtype } = each;
  const kind = random.integer(8);
  if (kind === 0) return Array.from({ length }, () => pickFrom(random, edges[dtype]));
  if (kind === 1 && isFloatDType(dtype)) return randomValues(dtype, length, random);
  return Array.from({ length }, (): Value => {
    const value = random.integer(9) - 4;
    return dtype === "int64" ? BigInt(value) : dtype === "bool" ? value & 1 : value;
  });
}

function add({ tensors, steps, most }: Draft, step: UnitStep, value: UnitValue): number | null {
  if (count(value.shape) > most || count(value.shape) === 0) return null;
  const operands = step.inputs.map((input) => at(tensors, input));
  if (!isExact(step, operands)) return null;
  // The reference goes along the axis for each element.
  const isLong =
    (step.kind === "Scan" || step.kind === "Argsort") && count(value.shape) * at(value.shape, step.axis) > 50_000;
  if (isLong) return null;
  tensors.push(evaluateStep(step, operands, value));
  steps.push(step);
  return tensors.length - 1;
}

/** Sums and products of these numbers need fewer bits than the accumulator has. */
function isExact(step: UnitStep, operands: readonly UnitTensor[]): boolean {
  const product = (step.kind === "Reduction" || step.kind === "Scan") && step.op === "prod";
  const isSum = (step.kind === "Reduction" || step.kind === "Scan") && (step.op === "sum" || step.op === "prod");
  if (!isSum && step.kind !== "Matmul" && step.kind !== "Linear" && step.kind !== "ScatterAdd") return true;
  const floats = operands.filter(({ dtype }) => isFloatDType(dtype));
  const finite = floats.map(({ values }) => values.map(Number).filter((value) => Number.isFinite(value)));
  const scaled = finite.flat().map((value) => value * (product ? 1 : 8));
  if (scaled.some((value) => !Number.isInteger(value))) return false;
  const bits = floats.some(({ dtype }) => dtype !== "double") ? 24 : 52;
  if (product) return finite.flat().reduce((sum, value) => sum + Math.log2(Math.max(1, Math.abs(value))), 0) < bits;
  // The squares of the larger operand's numbers are more than the products are.
  const isContraction = step.kind === "Matmul" || step.kind === "Linear";
  const magnitude = finite.reduce((most, values) => {
    const powers = values.map((value) => (isContraction ? 64 * value * value : 8 * Math.abs(value)));
    return Math.max(
      most,
      powers.reduce((sum, value) => sum + value, 0),
    );
  }, 0);
  return floats.length === 0 || magnitude * (isContraction ? 2 : 1) < 2 ** bits;
}

/** Among recent values more often than among old ones. */
function recent({ random, tensors }: Draft, fits: (value: UnitTensor) => boolean): number | null {
  const fitting = [...tensors.keys()].filter((i) => fits(at(tensors, i)));
  if (fitting.length === 0) return null;
  const back = Math.min(random.integer(fitting.length), random.integer(fitting.length));
  return at(fitting, fitting.length - 1 - back);
}

const computed = ({ dtype }: UnitValue): boolean => isComputed(dtype);

function castTo(draft: Draft, x: number, to: DType): number | null {
  return add(
    draft,
    { kind: "Cast", to, inputs: [x], output: draft.tensors.length },
    { ...at(draft.tensors, x), dtype: to },
  );
}

function castAny(draft: Draft): void {
  const x = recent(draft, () => true);
  if (x === null) return;
  const { dtype } = at(draft.tensors, x);
  const widens = isPacked(dtype) && draft.random.integer(4) > 0;
  const narrows = dtype === "float" && draft.random.integer(2) === 0;
  castTo(draft, x, widens ? "float" : pickFrom(draft.random, narrows ? packedDTypes : drawnDTypes));
}

function unary(draft: Draft): void {
  const x = recent(draft, (value) => computed(value) && value.dtype !== "bool");
  if (x === null) return;
  const { dtype, shape } = at(draft.tensors, x);
  const exact = ["neg", "abs", "relu", "sign"] as const;
  const ops = isFloatDType(dtype) ? ([...exact, "sqrt", "floor", "round", "trunc"] as const) : exact;
  const op = pickFrom<(typeof ops)[number]>(draft.random, ops);
  add(draft, { kind: "Unary", op, inputs: [x], output: draft.tensors.length }, { dtype, shape });
}

function binaryOf(draft: Draft, x: number, y: number): void {
  const [{ dtype, shape }, other] = [at(draft.tensors, x), at(draft.tensors, y)];
  const ops = keysOf(binaryFunctions).filter(
    (op) => !["pow", "atan2"].includes(op) && takes(binaryFunctions[op].operand, dtype),
  );
  const often = (["sub", "mul", "add", "maximum"] as const).filter((op) => takes(binaryFunctions[op].operand, dtype));
  const op =
    draft.random.integer(3) > 0 && often.length > 0 ? pickFrom(draft.random, often) : pickFrom(draft.random, ops);
  const stretched = shape.map((extent, axis) => Math.max(extent, at(other.shape, axis)));
  const value = { dtype: binaryFunctions[op].result === "bool" ? ("bool" as const) : dtype, shape: stretched };
  const inputs = draft.random.integer(4) === 0 ? [y, x] : [x, y];
  add(draft, { kind: "Binary", op, inputs, output: draft.tensors.length }, value);
}

function binary(draft: Draft): void {
  const x = recent(draft, computed);
  if (x === null) return;
  const { dtype, shape } = at(draft.tensors, x);
  const y = recent(
    draft,
    (other) =>
      other.dtype === dtype &&
      other.shape.length === shape.length &&
      other.shape.every((extent, axis) => extent === shape[axis] || extent === 1 || shape[axis] === 1),
  );
  if (y !== null) binaryOf(draft, x, y);
}

/** A value with one of fewer axes, which is spread over them, and cast if it has another dtype. */
function combine(draft: Draft): void {
  const x = recent(draft, (value) => computed(value) && value.shape.length > 0);
  if (x === null) return;
  const { dtype, shape } = at(draft.tensors, x);
  const flagsOf = (small: readonly number[]): readonly boolean[] | null => {
    const missing = [...shape.keys()].filter((axis) => small.join() === shape.toSpliced(axis, 1).join());
    if (missing.length > 0) return shape.map((_, axis) => axis === at(missing, missing.length - 1));
    const isTail = small.length < shape.length && small.join() === shape.slice(shape.length - small.length).join();
    return isTail ? shape.map((_, axis) => axis < shape.length - small.length) : null;
  };
  const y = recent(draft, (value) => flagsOf(value.shape) !== null);
  const flags = y === null ? null : flagsOf(at(draft.tensors, y).shape);
  if (y === null || flags === null) return;
  const same = at(draft.tensors, y).dtype === dtype ? y : castTo(draft, y, dtype);
  if (same === null) return;
  const spreadShape = shape.map((extent, axis) => (at(flags, axis) ? 1 : extent));
  const step = { kind: "Broadcast", flags, inputs: [same], output: draft.tensors.length } as const;
  const wide = add(draft, step, { dtype, shape: spreadShape });
  if (wide !== null) binaryOf(draft, x, wide);
}

function reduce(draft: Draft): void {
  const x = recent(draft, (value) => computed(value) && value.shape.length > 0);
  if (x === null) return;
  const { dtype, shape } = at(draft.tensors, x);
  const last = shape.length - 1;
  const axes = pickFrom(draft.random, [
    [last],
    [last],
    [last],
    [0],
    [...shape.keys()],
    [...shape.keys()].filter(() => draft.random.integer(2) === 0),
  ]);
  if (axes.length === 0) return;
  const ops: readonly ReductionOpType[] = dtype === "bool" ? ["amax", "amin"] : ["sum", "sum", "amax", "amin", "prod"];
  const op = pickFrom(draft.random, ops);
  const value = { dtype, shape: shape.filter((_, axis) => !axes.includes(axis)) };
  add(draft, { kind: "Reduction", op, axes, inputs: [x], output: draft.tensors.length }, value);
}

/** An axis cut into blocks, or two neighbouring axes as one. */
function reshape(draft: Draft): void {
  const x = recent(draft, (value) => value.shape.length > 0);
  if (x === null) return;
  const { dtype, shape } = at(draft.tensors, x);
  const axis = draft.random.integer(4) > 0 ? shape.length - 1 : draft.random.integer(shape.length);
  const extent = at(shape, axis);
  const blocks = [2, 3, 4, 8, 16, 32, 64, 128].filter((block) => extent % block === 0 && extent > block);
  const joins = axis > 0 && (blocks.length === 0 || draft.random.integer(3) === 0);
  if (!joins && (blocks.length === 0 || shape.length > 3)) return;
  const block = joins ? 0 : pickFrom(draft.random, blocks);
  const made = joins
    ? shape.toSpliced(axis - 1, 2, at(shape, axis - 1) * extent)
    : shape.toSpliced(axis, 1, extent / block, block);
  const rows =
    draft.random.integer(2) === 0 && made.length > 2 ? [count(made.slice(0, -1)), at(made, made.length - 1)] : made;
  add(draft, { kind: "Reshape", inputs: [x], output: draft.tensors.length }, { dtype, shape: rows });
}

/** Kinds of steps that take the dtypes that only store. */
const storing: readonly UnitStep["kind"][] = [
  "Set",
  "Broadcast",
  "Permute",
  "Reshape",
  "Slice",
  "Select",
  "Squeeze",
  "Expand",
  "Cat",
  "IndexSelect",
  "Gather",
];

function made(makers: readonly Maker[]): Move {
  return (draft) => {
    const { random, tensors } = draft;
    const choice = {
      op: 0,
      first: Math.min(random.integer(6), random.integer(6)),
      second: random.integer(20),
      third: random.integer(6),
      detail: random.integer(40),
    };
    const found = pickFrom(random, makers)(tensors, choice);
    if (found === null) return;
    const isStored =
      found.step.inputs.some((input) => !isComputed(at(tensors, input).dtype)) || !isComputed(found.value.dtype);
    if (isStored && !storing.includes(found.step.kind)) return;
    add(draft, found.step, found.value);
  };
}

const moves: readonly Move[] = [
  castAny,
  castAny,
  castAny,
  unary,
  binary,
  binary,
  combine,
  combine,
  combine,
  combine,
  reduce,
  reduce,
  reduce,
  reshape,
  reshape,
  made(viewMakers),
  made(viewMakers),
  made(shapeMakers),
  made(shapeMakers),
  made(joiningMakers),
  made([...joiningMakers, ...creationMakers]),
];

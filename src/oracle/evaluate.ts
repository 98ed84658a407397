/**
 * The oracle evaluates a whole, unsharded Fusion op by op, in slow and obvious code, and bounds the error of a correct
 * back end. It imports no kernel, and none of the expressions that kernels are generated from. Meshes matter to it only
 * because they add roundings.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import type { Tensor as IrTensor, TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { requireSizesFit } from "../ir/ops/check-sizes.ts";
import { type Op, outputsOf } from "../ir/ops/op.ts";
import { withOrigins } from "../ir/origin.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { readsIndices } from "../ir/runs.ts";
import { shapeOf, type Sizes, sizesFromShapes } from "../ir/sizes.ts";
import { dtypes } from "../numerics/dtype.ts";
import type { Tensor } from "../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../support/invariant.ts";
import { evaluateOp } from "./evaluate-op.ts";
import { outsideCount } from "./indexing.ts";
import { sampledOp } from "./sample/operands.ts";
import { isWholeSample, narrow, type Sample, sampledShape, union, wholeSample } from "./sample/sample.ts";
import type { Arithmetic } from "./tolerance.ts";
import { fromTensor, toTensor, type OracleValue, withoutBounds } from "./value.ts";

export interface OracleResult {
  /** Whole, or samples of them. */
  readonly outputs: readonly Tensor[];
  /**
   * Per output, per element in row-major order: the largest absolute error of a correct back end. Infinity if there is
   * no bound.
   */
  readonly bounds: readonly Float64Array[];
  /** Per output, the op that left elements without a bound, and why; null if all elements have one. */
  readonly unbounded: readonly (string | null)[];
  /** Per output, the op that it depends on whose indices are outside of their axis, and how many; null for none. */
  readonly outside: readonly (string | null)[];
}

/** Called before each op that is evaluated: how many were before it, and how many there are. */
export type OnOp = (done: number, of: number) => void;

/** Contractions in any order, as a BLAS may choose, and extrema that propagate NaN. */
const anyOrder: Arithmetic = { blocksContractions: false, keepsNaN: true };

export const valuesOnly: Arithmetic = { ...anyOrder, valuesOnly: true };

/**
 * Evaluates the outputs for whole `inputs`. `sizes` may add sizes that no input shape determines. `arithmetic`
 * describes the back end. With `samples`, one for each output, these elements of the outputs are evaluated, and of other
 * tensors only what they depend on. Throws `input-count`, `input-shape`, `size-mismatch`, `size-missing`,
 * `index-out-of-range`.
 */
export function evaluateFusion(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes?: Sizes,
  arithmetic: Arithmetic = anyOrder,
  samples: readonly Sample[] | null = null,
  onOp: OnOp = () => {},
): OracleResult {
  return withOrigins(fusion.tensors, () => evaluate(fusion, inputs, sizes, arithmetic, samples, onOp));
}

/** The outputs alone, or samples of them, without bounds. */
export function evaluateValues(
  fusion: FusionData,
  inputs: readonly Tensor[],
  sizes: Sizes,
  samples: readonly Sample[],
  onOp: OnOp = () => {},
): readonly Tensor[] {
  return withOrigins(fusion.tensors, () => evaluate(fusion, inputs, sizes, valuesOnly, samples, onOp)).outputs;
}

function evaluate(
  fusion: FusionData,
  inputs: readonly Tensor[],
  given: Sizes | undefined,
  arithmetic: Arithmetic,
  samples: readonly Sample[] | null,
  onOp: OnOp,
): OracleResult {
  const { tensors } = fusion;
  const inputTensors = fusion.inputs.map((id) => at(tensors, id));
  inputTensors.forEach((tensor, i) => requireDType(tensor, at(inputs, i)));
  const shapes = inputs.map((input) => input.shape);
  const sizes = new Map([...(given ?? []), ...sizesFromShapes(inputTensors, shapes)]);
  const shape = (id: TensorId): readonly number[] => shapeOf(at(tensors, id), sizes);
  const plan = planSamples(fusion, sizes, samples ?? fusion.outputs.map((id) => wholeSample(shape(id))));
  const values = new Map<TensorId, OracleValue>();
  fusion.inputs.forEach((id, i) => {
    const sample = plan.samples.get(id);
    if (sample === undefined) return;
    const input = fromTensor(at(inputs, i));
    values.set(id, narrow(input, wholeSample(input.shape), sample));
  });
  const take = (id: TensorId, wanted: Sample): OracleValue =>
    narrow(valueAt(values, id), sampleOf(plan.samples, id), wanted);
  const unbounded = new Map<TensorId, string>();
  const outside = new Map<TensorId, string>();
  let done = 0;
  for (const op of fusion.ops) {
    requireSizesFit(op, tensors, sizes);
    const needed = plan.ops.get(op);
    if (needed === undefined) continue;
    onOp(done++, plan.ops.size);
    const operands = op.inputs.map((id, i) => take(id, at(needed.operands, i)));
    const result = sampledShape(needed.result, shape(op.output));
    const results =
      needed.evaluate?.(operands, arithmetic) ?? evaluateOp(op, operands, result, { tensors, sizes, arithmetic });
    const misses = readsIndices(op) ? whyOutside(op, operands) : null;
    const missed = misses ?? op.inputs.flatMap((id) => outside.get(id) ?? [])[0];
    outputsOf(op).forEach((id, i) => {
      if (i >= results.length) return;
      const have = i === 0 ? needed.result : wholeSample(shape(id));
      const found = narrow(at(results, i), have, plan.samples.get(id) ?? have);
      const value = arithmetic.valuesOnly === true ? withoutBounds(found) : found;
      values.set(id, value);
      if (missed !== undefined) outside.set(id, missed);
      if (!value.bounds.includes(Infinity)) return;
      const inherited = op.inputs.flatMap((input) => unbounded.get(input) ?? [])[0];
      unbounded.set(id, inherited ?? whyUnbounded(op, value));
    });
  }
  const outputs = fusion.outputs.map((id, i) => take(id, samples?.[i] ?? wholeSample(shape(id))));
  return {
    outputs: outputs.map(toTensor),
    bounds: outputs.map((output) => output.bounds),
    unbounded: fusion.outputs.map((id) => unbounded.get(id) ?? null),
    outside: fusion.outputs.map((id) => outside.get(id) ?? null),
  };
}

function sampleOf(samples: ReadonlyMap<TensorId, Sample>, id: TensorId): Sample {
  const sample = samples.get(id);
  invariant(sample !== undefined, "every operand has a sample", id);
  return sample;
}

/** `T2 (indexselect of T0, T1): 3 of 8 indices are outside of 0 .. 6`; null if none is. */
function whyOutside(op: Extract<Op, { readonly axis: number }>, operands: readonly OracleValue[]): string | null {
  const extent = at(at(operands, 0).shape, op.axis);
  const { elements } = at(operands, 1);
  const count = outsideCount(at(operands, 1), extent);
  if (count === 0) return null;
  return `${opText(op)}: ${count} of ${elements.length} indices are outside of 0 .. ${extent - 1}`;
}

/** `T4 (div of T2, T3)` */
function opText(op: Op): string {
  const name = "op" in op ? op.op : op.kind.toLowerCase();
  return `T${op.output} (${name} of ${op.inputs.map((id) => `T${id}`).join(", ")})`;
}

/** `T4 (div of T2, T3): a divisor may be 0`. */
function whyUnbounded(op: Op, { dtype }: OracleValue): string {
  const name = "op" in op ? op.op : op.kind.toLowerCase();
  const text = opText(op);
  if (dtypes[dtype].family !== "float") return `${text}: integers computed from inexact numbers may wrap`;
  if (name === "div") return `${text}: a divisor may be 0, or the quotient may overflow`;
  if (name === "rsqrt") return `${text}: an operand may be 0`;
  if (name === "amax" || name === "amin") return `${text}: the library may drop NaN`;
  if (op.kind === "Reduction" || op.kind === "Matmul" || op.kind === "Linear") {
    return `${text}: a partial sum or product may overflow, or there are too many terms`;
  }
  return `${text}: the result may overflow`;
}

function requireDType(tensor: IrTensor, input: Tensor): void {
  if (input.dtype === tensor.dtype) return;
  fail("input-shape", `an input does not have the dtype of T${tensor.id}`, {
    place: { kind: "tensor", text: printTensor(tensor) },
    found: input.dtype,
    expected: tensor.dtype,
    help: "pass a tensor of this dtype",
  });
}

export function valueAt(values: ReadonlyMap<TensorId, OracleValue>, id: TensorId): OracleValue {
  const value = values.get(id);
  invariant(value !== undefined, "ops are in topological order", id);
  return value;
}

// From the samples of the outputs back to the inputs: which elements of each tensor are evaluated.

/** How an op is evaluated. */
interface NeededOp {
  readonly operands: readonly Sample[];
  /** Of the first result; others are whole. */
  readonly result: Sample;
  /** Null if the op's definition gives the result. */
  readonly evaluate: ((operands: readonly OracleValue[], arithmetic: Arithmetic) => readonly OracleValue[]) | null;
}

interface SamplePlan {
  /** Of tensors that are needed. */
  readonly samples: ReadonlyMap<TensorId, Sample>;
  readonly ops: ReadonlyMap<Op, NeededOp>;
}

/** `outputs`: the sample of each output. */
export function planSamples(
  { tensors, ops, outputs: ids }: FusionData,
  sizes: Sizes,
  outputs: readonly Sample[],
): SamplePlan {
  const samples = new Map<TensorId, Sample>();
  const needed = new Map<Op, NeededOp>();
  const shape = (id: TensorId): readonly number[] => shapeOf(at(tensors, id), sizes);
  const need = (id: TensorId, sample: Sample): void => {
    const other = samples.get(id);
    samples.set(id, other === undefined ? sample : union(other, sample, shape(id)));
  };
  ids.forEach((id, i) => need(id, at(outputs, i)));
  for (const op of ops.toReversed()) {
    if (!outputsOf(op).some((id) => samples.has(id))) continue;
    const result = samples.get(op.output);
    const shapes = { operands: op.inputs.map(shape), result: shape(op.output) };
    // Further results are whole.
    const needsFurther = op.further?.some((id) => samples.has(id)) === true;
    const sampled =
      result === undefined || isWholeSample(result) || needsFurther ? null : sampledOp(op, result, shapes, sizes);
    const operands = sampled?.operands ?? shapes.operands.map(wholeSample);
    const { evaluate = null } = sampled ?? {};
    needed.set(op, {
      operands,
      result: sampled === null || result === undefined ? wholeSample(shapes.result) : result,
      evaluate: evaluate && ((values, arithmetic) => [evaluate(values, arithmetic)]),
    });
    op.inputs.forEach((id, i) => need(id, at(operands, i)));
  }
  return { samples, ops: needed };
}

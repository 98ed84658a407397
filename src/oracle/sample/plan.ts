/** From the samples of the outputs back to the inputs: which elements of each tensor are evaluated. */
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import { at } from "../../support/invariant.ts";
import type { Arithmetic } from "../tolerance.ts";
import type { Value } from "../value.ts";
import { sampledOp } from "./operands.ts";
import { isWhole, type Sample, union, wholeSample } from "./sample.ts";

/** How an op is evaluated. */
export interface NeededOp {
  /** Of each operand. */
  readonly operands: readonly Sample[];
  /** Of the first result; others are whole. */
  readonly result: Sample;
  /** Null if the op's definition gives the result. */
  readonly evaluate: ((operands: readonly Value[], arithmetic: Arithmetic) => readonly Value[]) | null;
}

export interface SamplePlan {
  /** Of tensors that are needed. */
  readonly samples: ReadonlyMap<TensorId, Sample>;
  /** The ops that are needed. */
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
      result === undefined || isWhole(result) || needsFurther ? null : sampledOp(op, result, shapes, sizes);
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

/**
 * PostOnStream as one launch of a unit kernel. unit-shapes.ts has the sizes of the unit's tensors.
 */
import type { OpaqueKernel, UnitKernel, UnitStep, UnitValue } from "../../commands/kernel.ts";
import type { View } from "../../commands/view.ts";
import type { HostUnit, LaunchKernel, PostOnStream, Statement } from "../../host/nodes.ts";
import { shardsOf } from "../../ir/shards.ts";
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { operandOrder, partialAxes } from "../../ir/ops/axis-map.ts";
import type { Op } from "../../ir/ops/op.ts";
import { isWholeRange } from "../../ir/ops/kinds/views/slice.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { at, invariant } from "../../support/invariant.ts";
import { launch } from "../launch.ts";
import { indexInto, rangeInto, requireShape, requireWholeAxes } from "../checks.ts";
import { evaluate, fail, type Recorder } from "../recorder.ts";
import { outputView, viewOf } from "../tensors.ts";
import { requireStepFits } from "./step-sizes.ts";
import { outputSizes, type ShapeOf, unitShapes, type UnitSize, unitSizes } from "./unit-shapes.ts";

export function recordPost(recorder: Recorder, statement: PostOnStream): void {
  const unit = at(recorder.program.units, statement.unit);
  const inputs = statement.inputs.map((id) => viewOf(recorder, id));
  const { fusion, opaque } = unit;
  const sizes = statement.inputs.some((id) => recorder.actuals.get(id)?.differs === true)
    ? outputSizes(recorder, statement, unit)
    : [];
  const outputs = statement.outputs.map((id, i) => outputView(recorder, id, sizes[i] ?? null));
  if (opaque !== undefined)
    return launchOpaque(recorder, statement, `${opaque.op} in HostUnit${unit.id}`, inputs, outputs);
  launch(recorder, {
    statement,
    inputs,
    outputs,
    inPlace: false,
    fixed: fusion.ops.every((op) => indicesOf(op).every(({ kind }) => kind === "constant")),
    make: (operands, results): UnitKernel => {
      const sizeOf = unitSizes(recorder, statement, unit);
      const shapes = unitShapes(
        recorder,
        statement,
        unit,
        operands.map(({ shape }) => shape),
        results.map(({ shape }) => shape),
      );
      results.forEach(({ shape }, i) => {
        requireShape(recorder, `T${at(statement.outputs, i)}`, shape, shapes(at(fusion.outputs, i)));
      });
      return { kind: "unit", inputs: operands, outputs: results, ...unitSteps(recorder, unit, shapes, sizeOf) };
    },
  });
}

/** The values of an op that may depend on loops. */
function indicesOf(op: Op): readonly Scalar[] {
  if (op.kind === "Select") return [op.index];
  return op.kind === "Slice" ? op.ranges.flatMap(({ start, stop }) => [start, stop]) : [];
}

/** A kernel that nvFuser compiled: its outputs must have memory. */
export function recordLaunch(recorder: Recorder, statement: LaunchKernel): void {
  const inputs = statement.inputs.flatMap((input) => (typeof input === "number" ? [viewOf(recorder, input)] : []));
  const outputs = statement.outputs.map((id) => viewOf(recorder, id));
  launchOpaque(recorder, statement, `LaunchKernel of group ${statement.group}`, inputs, outputs);
}

function launchOpaque(
  recorder: Recorder,
  statement: Statement,
  op: string,
  inputs: readonly View[],
  outputs: readonly View[],
): void {
  launch(recorder, {
    statement,
    inputs,
    outputs,
    inPlace: false,
    fixed: true,
    make: (operands, results): OpaqueKernel => ({ kind: "opaque", op, inputs: operands, outputs: results }),
  });
}

/**
 * The first values are the inputs. Every op adds a value, preceded by one value for each operand that it reads
 * permuted. A reduction that stops at each device's partial result adds two: without and with the axis that numbers the
 * devices.
 */
function unitSteps(
  recorder: Recorder,
  { fusion }: HostUnit,
  shapeOf: ShapeOf,
  sizeOf: UnitSize,
): Pick<UnitKernel, "values" | "steps" | "results"> {
  const valueLike = (id: TensorId): UnitValue => ({ dtype: at(fusion.tensors, id).dtype, shape: shapeOf(id) });
  const values = fusion.inputs.map(valueLike);
  const numbers = new Map<TensorId, number>();
  const valueOf = (id: TensorId): number => {
    const number = numbers.get(id);
    invariant(number !== undefined, "a host unit makes a value before it uses it", { id });
    return number;
  };
  fusion.inputs.forEach((id, i) => numbers.set(id, i));
  const steps: UnitStep[] = [];
  for (const op of fusion.ops) {
    requireWholeAxes(recorder, op, fusion.tensors);
    const inputs = op.inputs.map((id, operand) => {
      const order = operandOrder(op, operand);
      const value = valueOf(id);
      if (order === null) return value;
      const { dtype, shape } = at(values, value);
      const output = values.push({ dtype, shape: order.map((axis) => at(shape, axis)) }) - 1;
      steps.push({ kind: "Permute", order, inputs: [value], output });
      return output;
    });
    const made = valueLike(op.output);
    const flags = op.kind === "Reduction" ? partialFlags(op, fusion.tensors) : [];
    const shape = made.shape.filter((_, axis) => flags[axis] !== true);
    const output = values.push({ ...made, shape }) - 1;
    const step = stepOf(recorder, op, inputs, output, fusion.tensors, shapeOf, sizeOf);
    const shapes = inputs.map((value) => at(values, value).shape);
    requireStepFits(recorder, step, shapes, shape);
    steps.push(step);
    numbers.set(op.output, output);
    if (!flags.includes(true)) continue;
    const whole = values.push(made) - 1;
    steps.push({ kind: "Broadcast", flags, inputs: [output], output: whole });
    numbers.set(op.output, whole);
  }
  return { values, steps, results: fusion.outputs.map(valueOf) };
}

/** Of each axis of the output, whether it numbers devices' partial results: on each device it has one element. */
function partialFlags(op: Op, tensors: readonly Tensor[]): readonly boolean[] {
  const partial = partialAxes(op, tensors);
  return withoutReductions(at(tensors, op.output).domain.logical).map((axis) => partial.includes(axis));
}

function stepOf(
  recorder: Recorder,
  op: Op,
  inputs: readonly number[],
  output: number,
  tensors: readonly Tensor[],
  shapeOf: ShapeOf,
  sizeOf: UnitSize,
): UnitStep {
  if (op.kind === "Select") {
    const source = at(op.inputs, 0);
    const axis = at(withoutReductions(at(tensors, source).domain.logical), op.axis);
    const size = at(shapeOf(source), op.axis);
    return { ...op, inputs, output, index: indexInto(recorder, axis, size, evaluate(recorder, op.index), op.axis) };
  }
  if (op.kind === "Slice") {
    const source = at(tensors, at(op.inputs, 0));
    const sharded = shardsOf(source).map(({ axis }) => axis.id);
    const axes = withoutReductions(source.domain.logical);
    const ranges = op.ranges.map((range, axis) => {
      const size = at(shapeOf(source.id), axis);
      // A sharded axis is not sliced: each device keeps its shard.
      const isWhole = sharded.includes(at(axes, axis).id) || isWholeRange(range, at(axes, axis));
      if (isWhole) return { start: 0, stop: size };
      return rangeInto(recorder, range, axis, size, (bound) => evaluate(recorder, bound, sizeOf));
    });
    return { ...op, inputs, output, ranges };
  }
  if (op.kind === "Sdpa" || op.kind === "SdpaBackward") {
    return fail(recorder, {
      code: "kernel-opaque",
      message: "attention is in a host unit, and has a kernel of its own",
      found: `T${op.output} = ${op.kind}(...) in a HostUnit`,
      expected: "attention as a statement of the program",
      help: "move it out of the unit, and make its outputs inputs of the unit",
    });
  }
  if (op.kind === "Iota") {
    return fail(recorder, {
      code: "kernel-opaque",
      message: "iota is in a host unit, which does not know where its chunk or share begins",
      found: `T${op.output} = iota(...) in a HostUnit`,
      expected: "iota as a statement of the program",
      help: "move it out of the unit, and make its output an input of the unit",
    });
  }
  if (op.kind === "Matmul" || op.kind === "Linear") return { kind: op.kind, inputs, output };
  return { ...op, inputs, output };
}

/**
 * PostOnStream as one launch of a unit kernel. A unit has separate tables, so its symbolic extents take their sizes
 * from the tensors that are passed in. A name that no input has keeps its value in the program.
 */
import type { OpaqueKernel, UnitKernel, UnitStep, UnitValue } from "../../commands/kernel.ts";
import type { View } from "../../commands/view.ts";
import type { HostUnit, LaunchKernel, PostOnStream, Statement } from "../../host/nodes.ts";
import { axisShards } from "../../ir/axis-shards.ts";
import { isDID, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { operandOrder } from "../../ir/ops/axis-map.ts";
import type { Op, SliceOp } from "../../ir/ops/op.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import { at, invariant } from "../../support/invariant.ts";
import { launch } from "../launch.ts";
import { localLayout } from "../local-layout.ts";
import { indexInto, outOfRange, requireShape, requireWholeAxes, shapeText } from "../checks.ts";
import { evaluate, fail, type Recorder } from "../recorder.ts";
import { outputView, viewOf } from "../tensors.ts";

export function recordPost(recorder: Recorder, statement: PostOnStream): void {
  const unit = at(recorder.program.units, statement.unit);
  const inputs = statement.inputs.map((id) => viewOf(recorder, id));
  const outputs = statement.outputs.map((id) => outputView(recorder, id));
  const { fusion, opaque } = unit;
  if (opaque !== undefined)
    return launchOpaque(recorder, statement, `${opaque.op} in HostUnit${unit.id}`, inputs, outputs);
  launch(recorder, {
    statement,
    inputs,
    outputs,
    inPlace: false,
    fixed: fusion.ops.every((op) => op.kind !== "Select" || op.index.kind === "constant"),
    make: (operands, results): UnitKernel => {
      const shapes = unitShapes(
        recorder,
        unit,
        operands.map(({ shape }) => shape),
      );
      results.forEach(({ shape }, i) => {
        requireShape(recorder, `T${at(statement.outputs, i)}`, shape, shapes(at(fusion.outputs, i)));
      });
      return { kind: "unit", inputs: operands, outputs: results, ...unitSteps(recorder, unit, shapes) };
    },
  });
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

type SliceRange = SliceOp["ranges"][number];

/** The local shape of a tensor of the unit. */
type ShapeOf = (id: TensorId) => readonly number[];

function unitShapes(recorder: Recorder, { id, fusion }: HostUnit, given: readonly (readonly number[])[]): ShapeOf {
  const tensors = fusion.inputs.map((input) => at(fusion.tensors, input));
  const sizes = sizesFromMeshes(fusion.tensors);
  tensors.forEach((tensor, i) => bindSizes(tensor, at(given, i), sizes));
  const sizeOf = (name: string): number | undefined => sizes.get(name) ?? recorder.sizeOf(name);
  const shapes = new Map<TensorId, readonly number[]>();
  const shapeOf: ShapeOf = (tensor) => {
    const known = shapes.get(tensor);
    if (known !== undefined) return known;
    const { shape } = localLayout(at(fusion.tensors, tensor), sizeOf, tensors);
    shapes.set(tensor, shape);
    return shape;
  };
  fusion.inputs.forEach((input, i) => {
    const expected = shapeOf(input);
    const shape = at(given, i);
    if (shapeText(expected) === shapeText(shape)) return;
    fail(recorder, {
      code: "size-mismatch",
      message: `input ${i} of HostUnit${id} does not have the unit's size`,
      found: shapeText(shape),
      expected: shapeText(expected),
      help: "pass a tensor of the unit's shape; a sharded axis has size 1 on each device",
    });
  });
  return shapeOf;
}

/**
 * The first axis with an extent determines its size. The shapes of all inputs are checked against the sizes afterwards.
 */
function bindSizes(tensor: Tensor, shape: readonly number[], sizes: Map<string, number>): void {
  const shards = axisShards(tensor);
  withoutReductions(tensor.domain.logical).forEach(({ id, extent, parallelType }, i) => {
    const size = shape[i];
    if (extent.kind !== "symbol" || isDID(parallelType) || size === undefined || sizes.has(extent.name)) return;
    const devices = shards.flatMap(({ axis, type }) => (axis.id === id ? (tensor.mesh?.size(type) ?? 1) : []));
    sizes.set(
      extent.name,
      devices.reduce((product, count) => product * count, size),
    );
  });
}

/**
 * The first values are the inputs. Every op adds a value, preceded by one value for each operand that it reads
 * permuted.
 */
function unitSteps(
  recorder: Recorder,
  { fusion }: HostUnit,
  shapeOf: ShapeOf,
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
    const output = values.push(valueLike(op.output)) - 1;
    steps.push(stepOf(recorder, op, inputs, output, fusion.tensors, shapeOf));
    numbers.set(op.output, output);
  }
  return { values, steps, results: fusion.outputs.map(valueOf) };
}

function stepOf(
  recorder: Recorder,
  op: Op,
  inputs: readonly number[],
  output: number,
  tensors: readonly Tensor[],
  shapeOf: ShapeOf,
): UnitStep {
  if (op.kind === "Select") {
    const source = at(op.inputs, 0);
    const axis = at(withoutReductions(at(tensors, source).domain.logical), op.axis);
    const size = at(shapeOf(source), op.axis);
    return { ...op, inputs, output, index: indexInto(recorder, axis, size, evaluate(recorder, op.index), op.axis) };
  }
  if (op.kind === "Slice") {
    const source = at(tensors, at(op.inputs, 0));
    const sharded = axisShards(source).map(({ axis }) => axis.id);
    const axes = withoutReductions(source.domain.logical);
    const ranges = op.ranges.map((range, axis) => {
      const size = at(shapeOf(source.id), axis);
      // A sharded axis is not sliced: each device keeps its shard.
      return sharded.includes(at(axes, axis).id) ? { start: 0, stop: size } : localRange(recorder, range, axis, size);
    });
    return { ...op, inputs, output, ranges };
  }
  if (op.kind === "Matmul" || op.kind === "Linear") return { kind: op.kind, inputs, output };
  return { ...op, inputs, output };
}

function localRange(recorder: Recorder, range: SliceRange, axis: number, size: number): SliceRange {
  return range.stop <= size ? range : outOfRange(recorder, `[${range.start}, ${range.stop})`, axis, size);
}

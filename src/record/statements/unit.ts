/**
 * PostOnStream as one launch of a unit kernel. The sizes of the unit's tensors are found below.
 */
import type { InPlace, OpaqueKernel, UnitKernel, UnitStep, UnitValue } from "../../commands/kernel.ts";
import { sameNumbers, type View } from "../../commands/view.ts";
import type { HostUnit, LaunchKernel, PostOnStream, Statement } from "../../host/nodes.ts";
import { isUnitAxis, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap, operandOrder, partialAxes } from "../../ir/ops/axis-map.ts";
import { fastAccumulationOf } from "../../ir/ops/kinds/contractions.ts";
import { isWholeRange } from "../../ir/ops/kinds/views/slice.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { shardsOf } from "../../ir/shards.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Actual } from "../actual-sizes.ts";
import { indexInto, rangeInto, requireShape, requireWholeAxes, localShapeText } from "../checks.ts";
import { launch } from "../launch.ts";
import { mayOverlap, sameElements } from "../views.ts";
import { type SizeOf, wholeExtents } from "../local-layout.ts";
import { evaluate, failRecording, type Recorder } from "../recorder.ts";
import { localExtents, localLayout, localLayoutOf, outputView, tensorOf, viewOf } from "../tensors.ts";
import { requireStepFits } from "./step-sizes.ts";

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
  const inPlace = pairsInPlace(fusion).filter(({ input, output }) => {
    const [from, to] = [at(inputs, input), at(outputs, output)];
    return sameElements(from, to) && !inputs.some((other, i) => i !== input && mayOverlap(other, to));
  });
  launch(recorder, {
    statement,
    inputs,
    outputs,
    inPlace,
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
      const made = unitSteps(recorder, unit, shapes, sizeOf);
      return {
        kind: "unit",
        inputs: operands,
        outputs: results,
        ...made,
        ...(inPlace.length === 0 ? {} : { inPlace }),
      };
    },
  });
}

/**
 * Outputs that a unit can write over inputs: of a scatter of which nothing else reads the tensor, and the only one of
 * elementwise ops, which reads an element of each input before it writes the same one.
 */
function pairsInPlace({ ops, inputs, outputs }: HostUnit["fusion"]): readonly InPlace[] {
  const readsOf = (id: TensorId): number => ops.flatMap((op) => op.inputs).filter((input) => input === id).length;
  const isElementwise = outputs.length === 1 && ops.every(({ kind }) => elementwise.has(kind));
  return outputs.flatMap((id, output) => {
    const maker = ops.find((op) => op.output === id);
    return inputs.flatMap((tensor, input): readonly InPlace[] => {
      const isScattered = maker?.kind === "ScatterAdd" && maker.inputs[0] === tensor && readsOf(tensor) === 1;
      return isScattered || isElementwise ? [{ input, output }] : [];
    });
  });
}

const elementwise: ReadonlySet<Op["kind"]> = new Set(["Unary", "Cast", "Binary", "Ternary"]);

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
  sizeOf: SizeOf,
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
  sizeOf: SizeOf,
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
    return failRecording(recorder, "kernel-opaque", "attention is in a host unit, and has a kernel of its own", {
      found: `T${op.output} = ${op.kind}(...) in a HostUnit`,
      expected: "attention as a statement of the program",
      help: "move it out of the unit, and make its outputs inputs of the unit",
    });
  }
  if (op.kind === "Iota") {
    return failRecording(recorder, {
      code: "kernel-opaque",
      message: "iota is in a host unit, which does not know where its chunk or share begins",
      found: `T${op.output} = iota(...) in a HostUnit`,
      expected: "iota as a statement of the program",
      help: "move it out of the unit, and make its output an input of the unit",
    });
  }
  if (op.kind === "Linear" && op.to !== undefined) {
    if (shapeOf(at(op.inputs, 1)).length <= 2)
      return { kind: op.kind, to: op.to, ...fastAccumulationOf(op), inputs, output };
    return failRecording(recorder, "kernel-opaque", "a scaled linear of several weights is in a host unit", {
      found: `T${op.output} = scaled_linear(...) in a HostUnit`,
      expected: "a statement of the program, which is a kernel for each weight",
      help: "move it out of the unit",
    });
  }
  if (op.kind === "Matmul" || op.kind === "Linear") return { kind: op.kind, inputs, output };
  return { ...op, inputs, output };
}

// The sizes of a host unit's tensors. A unit has separate tables, so its symbolic extents take their sizes from the
// tensors that are passed in; a name that no input has keeps its value in the program. Where an input is a chunk or a
// short share, everything that is computed from it is as short, axis by axis. What is made without an input is as short
// as what it is used with.

/** The shape of a tensor of the unit. */
type ShapeOf = (id: TensorId) => readonly number[];

/** The local shapes, for inputs and outputs of the given ones. Throws `size-mismatch`. */
function unitShapes(
  recorder: Recorder,
  statement: PostOnStream,
  unit: HostUnit,
  given: readonly (readonly number[])[],
  made: readonly (readonly number[])[] = [],
): ShapeOf {
  const declared = declaredExtents(recorder, statement, unit);
  const local: ShapeOf = (id) => localLayout(recorder, at(unit.fusion.tensors, id), declared(id)).shape;
  unit.fusion.inputs.forEach((input, i) => {
    const shape = at(given, i);
    const isChunk = recorder.actuals.has(at(statement.inputs, i));
    const expected = local(input);
    if (isChunk ? shape.length === expected.length : sameNumbers(shape, expected)) return;
    failRecording(recorder, "size-mismatch", `input ${i} of HostUnit${unit.id} does not have the unit's size`, {
      found: localShapeText(shape),
      expected: localShapeText(expected),
      help: "pass a tensor of the unit's shape; a sharded axis has size 1 on each device",
    });
  });
  return shapesFrom(recorder, unit, given, made, local);
}

/** The sizes of the unit's outputs, of which an input's are not the declared ones; null for one made without inputs. */
function outputSizes(recorder: Recorder, statement: PostOnStream, unit: HostUnit): readonly (Actual | null)[] {
  const views = statement.inputs.map((id) => viewOf(recorder, id).shape);
  const local = unitShapes(recorder, statement, unit, views);
  const declared = declaredExtents(recorder, statement, unit);
  const whole = shapesFrom(recorder, unit, unit.fusion.inputs.map(declared), [], declared);
  const inputless = withoutInputs(unit.fusion);
  return statement.outputs.map((id, i) => {
    const tensor = tensorOf(recorder, id);
    const output = at(unit.fusion.outputs, i);
    if (inputless.has(output)) return null;
    const sizes = { extents: whole(output), local: local(output) };
    const differs =
      !sameNumbers(sizes.extents, localExtents(recorder, tensor)) ||
      !sameNumbers(sizes.local, localLayoutOf(recorder, tensor).shape);
    return { ...sizes, differs, exists: new Map(), chunk: null };
  });
}

/** Of the unit's own symbols. An axis that an op makes, as an expand does, has its extent in the output alone. */
function unitSizes(recorder: Recorder, statement: PostOnStream, { fusion }: HostUnit): SizeOf {
  const sizes = new Map(recorder.common.meshSizes(fusion.tensors));
  const bind = (ids: readonly TensorId[], own: readonly TensorId[]): void =>
    ids.forEach((id, i) => {
      const given = recorder.actuals.get(id)?.extents ?? localExtents(recorder, tensorOf(recorder, id));
      // The first axis with an extent determines its size. The shapes of all inputs are checked afterwards.
      withoutReductions(at(fusion.tensors, at(own, i)).domain.logical).forEach(({ extent }, axis) => {
        const size = given[axis];
        if (extent.kind === "symbol" && size !== undefined && !sizes.has(extent.name)) sizes.set(extent.name, size);
      });
    });
  bind(statement.inputs, fusion.inputs);
  let isBound = false;
  return (name) => {
    const known = sizes.get(name) ?? recorder.sizeOf(name);
    if (known !== undefined || isBound) return known;
    isBound = true;
    bind(statement.outputs, fusion.outputs);
    return sizes.get(name);
  };
}

/** The extents over all devices. Inputs have those of the tensors that are passed in. */
function declaredExtents(recorder: Recorder, statement: PostOnStream, unit: HostUnit): ShapeOf {
  const { fusion } = unit;
  const tensors = fusion.inputs.map((input) => at(fusion.tensors, input));
  const sizeOf = unitSizes(recorder, statement, unit);
  return (id) => {
    const input = fusion.inputs.indexOf(id);
    const actual = input < 0 ? undefined : recorder.actuals.get(at(statement.inputs, input));
    return actual?.extents ?? wholeExtents(at(fusion.tensors, id), sizeOf, tensors);
  };
}

/**
 * Every axis that an op takes over from an operand has the operand's size; the others have the declared one. Values made
 * without inputs take over sizes from `made`, or from what reads them.
 */
function shapesFrom(
  recorder: Recorder,
  { fusion }: HostUnit,
  given: readonly (readonly number[])[],
  made: readonly (readonly number[])[],
  declared: ShapeOf,
): ShapeOf {
  const inputless = withoutInputs(fusion);
  const shapes = new Map<TensorId, readonly number[]>();
  fusion.inputs.forEach((id, i) => shapes.set(id, at(given, i)));
  const shapeOf: ShapeOf = (id) => {
    const shape = shapes.get(id);
    invariant(shape !== undefined, "a host unit makes a value before it uses it", { id });
    return shape;
  };
  for (const op of fusion.ops) {
    if (inputless.has(op.output)) continue;
    shapes.set(op.output, outputShape(recorder, op, fusion.tensors, inputless, shapeOf, declared));
  }
  if (inputless.size === 0) return shapeOf;
  fusion.outputs.forEach((id, i) => {
    if (inputless.has(id)) shapes.set(id, made[i] ?? declared(id));
  });
  for (const op of fusion.ops.toReversed()) {
    if (inputless.has(op.output) && !shapes.has(op.output)) shapes.set(op.output, declared(op.output));
    op.inputs.forEach((id, operand) => {
      if (inputless.has(id) && !shapes.has(id))
        shapes.set(id, operandShape(op, operand, fusion.tensors, shapeOf, declared));
    });
  }
  return shapeOf;
}

/** The values that no input of the unit is needed for. */
function withoutInputs({ ops }: HostUnit["fusion"]): ReadonlySet<TensorId> {
  const found = new Set<TensorId>();
  for (const op of ops) if (op.inputs.every((id) => found.has(id))) found.add(op.output);
  return found;
}

/** The shape that an operand has for an output of known shape. */
function operandShape(
  op: Op,
  operand: number,
  tensors: readonly Tensor[],
  shapeOf: ShapeOf,
  declared: ShapeOf,
): readonly number[] {
  const id = at(op.inputs, operand);
  const shape = [...declared(id)];
  const axes = withoutReductions(at(tensors, id).domain.logical);
  const images = withoutReductions(at(tensors, op.output).domain.logical);
  for (const pair of axisMap(op, tensors)) {
    if (pair.operand !== operand || pair.broadcast || pair.outermost) continue;
    const from = images.findIndex((image) => image.id === pair.consumer.id);
    const axis = axes.findIndex((own) => own.id === pair.producer.id);
    if (from >= 0) shape[axis] = at(shapeOf(op.output), from);
  }
  return shape;
}

function outputShape(
  recorder: Recorder,
  op: Op,
  tensors: readonly Tensor[],
  inputless: ReadonlySet<TensorId>,
  shapeOf: ShapeOf,
  declared: ShapeOf,
): readonly number[] {
  const shape = [...declared(op.output)];
  const axes = withoutReductions(at(tensors, op.output).domain.logical);
  const known = new Set<number>();
  for (const { operand, producer, consumer, broadcast, outermost } of axisMap(op, tensors)) {
    const axis = axes.findIndex(({ id }) => id === consumer.id);
    if (axis < 0 || broadcast || outermost) continue;
    const source = at(op.inputs, operand);
    if (inputless.has(source)) continue;
    const from = withoutReductions(at(tensors, source).domain.logical).findIndex(({ id }) => id === producer.id);
    const size = at(shapeOf(source), from);
    // A device whose share of a one-element axis is empty may have the whole axis of an operand.
    const isEmpty = size + at(shape, axis) === 1 && (known.has(axis) || (size === 1 && isUnitAxis(producer)));
    if (known.has(axis) && !isEmpty && size !== shape[axis]) {
      failRecording(recorder, "size-mismatch", `the operands of ${op.kind} in a host unit differ in size`, {
        found: `${size} and ${at(shape, axis)} along axis ${axis}`,
        expected: "equal sizes",
        help: "pass chunks of equal length",
      });
    }
    shape[axis] = isEmpty ? 0 : size;
    known.add(axis);
  }
  return shape;
}

/**
 * Computations: one row per kind of op. Set, Slice, Select, Broadcast, Expand, Squeeze, Permute and Reshape copy if their
 * output has memory. Otherwise they bind it to a view of the input, as nvFuser's evaluator does. All other kinds launch
 * a kernel, and allocate the output if it is not bound.
 */
import { elementCount } from "../../numerics/tensor/host-tensor.ts";
import type {
  BinaryKernel,
  CastKernel,
  IotaKernel,
  Operand,
  ReductionKernel,
  SdpaBackwardKernel,
  SdpaKernel,
  UnaryKernel,
  UnitKernel,
} from "../../commands/kernel.ts";
import { isEmpty, narrowView, type View } from "../../commands/view.ts";
import { agreed } from "../../host/alike/classes.ts";
import { type TensorId, withoutReductions } from "../../ir/domain.ts";
import { scaleOf } from "../../ir/ops/kinds/attention/attention.ts";
import { isWholeRange } from "../../ir/ops/kinds/views/slice.ts";
import {
  type BinaryOp,
  type CastOp,
  type ExpandOp,
  type GroupedMatmulOp,
  type IotaOp,
  type Op,
  outputsOf,
  type ReductionOp,
  type ReshapeOp,
  type SdpaBackwardOp,
  type SdpaOp,
  type SelectOp,
  type SliceOp,
  type TernaryOp,
  type UnaryOp,
} from "../../ir/ops/op.ts";
import type { Runs } from "../../ir/runs.ts";
import { shardsOf } from "../../ir/shards.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { dispatch, type RuleTable, at, invariant } from "../../support/invariant.ts";
import type { Actual } from "../actual-sizes.ts";
import { actualOutput } from "../actual.ts";
import { indexInto, rangeInto, requireShape, requireWholeAxes, localShapeText } from "../checks.ts";
import { alias, contiguousTemporary, copyView, launch, type MakeKernel, ordinaryOutput, release } from "../launch.ts";
import { evaluate, failRecording, ranksOf, type Recorder } from "../recorder.ts";
import { findView, localLayoutOf, outputView, tensorOf, viewOf } from "../tensors.ts";
import { declaredRuns, insertAxis, permuteView, reshapeView, selectView, stretchView, strideView } from "../views.ts";
import { operandViews, recordLinear, recordMatmul } from "./contraction.ts";
import { recordLocalSet } from "./shard.ts";
import { requireStepFits } from "./step-sizes.ts";

/** Records an op as a launch, a copy or a new binding. Throws diagnostics for sizes that the op does not support. */
export function recordOp(recorder: Recorder, op: Op): void {
  requireWholeAxes(recorder, op, recorder.program.tensors);
  dispatch(rules, op, recorder);
}

const rules: RuleTable<Op, void, [Recorder]> = {
  Set: (op, recorder) => {
    if (op.local !== true) return bindOrCopy(recorder, op, inputView(recorder, op));
    recordLocalSet(recorder, op, (view, actual) => {
      bindOrCopyTo(recorder, op, view, actual);
    });
  },
  Unary: recordUnary,
  Cast: recordCast,
  Binary: recordBinary,
  Ternary: (op, recorder) => launchPointwise(recorder, op, false, (inputs, outputs) => stepKernel(op, inputs, outputs)),
  Reduction: recordReduction,
  Broadcast: (op, recorder) => {
    const axes = op.flags.flatMap((flag, axis) => (flag ? [axis] : []));
    bindOrCopy(recorder, op, axes.reduce(insertAxis, inputView(recorder, op)));
  },
  Expand: recordExpand,
  Cat: recordStep,
  Pad: recordStep,
  IndexSelect: recordStep,
  Gather: recordStep,
  ScatterAdd: recordStep,
  Scan: recordStep,
  Argsort: recordStep,
  GroupedMatmul: recordGrouped,
  Squeeze: (op, recorder) => {
    const view = inputView(recorder, op);
    const kept = view.shape.flatMap((_, axis) => (op.axes.includes(axis) ? [] : [axis]));
    bindOrCopy(recorder, op, permuteView(view, kept));
  },
  Permute: (op, recorder) => bindOrCopy(recorder, op, permuteView(inputView(recorder, op), op.order)),
  Reshape: recordReshape,
  Slice: recordSlice,
  Select: recordSelect,
  Matmul: (op, recorder) => recordMatmul(recorder, op),
  Linear: (op, recorder) => recordLinear(recorder, op),
  Full: recordStep,
  RandomBits: recordStep,
  Iota: (op, recorder) => recordIota(recorder, op),
  Sdpa: recordAttention,
  SdpaBackward: recordAttention,
};

function inputView(recorder: Recorder, op: Op): View {
  return viewOf(recorder, at(op.inputs, 0));
}

/**
 * The output's memory. Null if it has none, or if this statement bound it to a view in an earlier iteration: then the
 * tensor follows its source again.
 */
function ownMemory(recorder: Recorder, op: Op): View | null {
  const binding = recorder.memory.bindings.get(op.output);
  return binding?.aliasedBy === op ? null : findView(recorder, op.output);
}

function bindOrCopy(recorder: Recorder, op: Op, view: View): void {
  bindOrCopyTo(recorder, op, view, actualOutput(recorder, op));
}

function bindOrCopyTo(recorder: Recorder, op: Op, view: View, actual: Actual | null): void {
  if (ownMemory(recorder, op) === null) alias(recorder, op, view, actual);
  else copyView(recorder, view, outputView(recorder, op.output, actual));
}

function recordUnary(statement: UnaryOp, recorder: Recorder): void {
  const { op } = statement;
  launchPointwise(recorder, statement, true, (inputs, outputs): UnaryKernel => ({
    kind: "unary",
    op,
    inputs,
    outputs,
  }));
}

function recordCast(statement: CastOp, recorder: Recorder): void {
  const bytesOf = (id: TensorId): number => dtypes[tensorOf(recorder, id).dtype].bytes;
  const inPlace = bytesOf(at(statement.inputs, 0)) === bytesOf(statement.output);
  launchPointwise(recorder, statement, inPlace, (inputs, outputs): CastKernel => ({ kind: "cast", inputs, outputs }));
}

function recordBinary(statement: BinaryOp, recorder: Recorder): void {
  const { op, scalar } = statement;
  launchPointwise(recorder, statement, true, (inputs, outputs): BinaryKernel => ({
    kind: "binary",
    op,
    ...(scalar === undefined ? {} : { scalar }),
    inputs,
    outputs,
  }));
}

/** Broadcasts the operands to the output's shape. */
function launchPointwise(
  recorder: Recorder,
  op: UnaryOp | CastOp | BinaryOp | TernaryOp,
  inPlace: boolean,
  make: MakeKernel,
): void {
  const views = op.inputs.map((id) => viewOf(recorder, id));
  const output = outputView(recorder, op.output, actualOutput(recorder, op));
  const inputs = views.map((view) => {
    const sameRank = view.shape.length === output.shape.length;
    return (sameRank ? stretchView(view, output.shape) : null) ?? unfit(recorder, op, view, output);
  });
  launch(recorder, { statement: op, inputs, outputs: [output], inPlace, make });
}

function unfit(recorder: Recorder, op: Op, view: View, output: View): never {
  return failRecording(recorder, "size-mismatch", `an operand does not have the size of T${op.output}`, {
    found: localShapeText(view.shape),
    expected: `${localShapeText(output.shape)}, or 1 on broadcast axes`,
    help: "give equal sizes; a sharded axis has size 1 on each device",
  });
}

function recordReduction(statement: ReductionOp, recorder: Recorder): void {
  const { op } = statement;
  const axes = statement.axes.toSorted((a, b) => a - b);
  const input = inputView(recorder, statement);
  const output = ordinaryOutput(recorder, statement);
  const kept = input.shape.filter((_, axis) => !axes.includes(axis));
  requireShape(recorder, `T${statement.output}`, output.shape, kept);
  launch(recorder, {
    statement,
    inputs: [input],
    outputs: [output],
    make: (inputs, outputs): ReductionKernel => ({ kind: "reduction", op, axes, inputs, outputs }),
  });
}

function recordReshape(op: ReshapeOp, recorder: Recorder): void {
  const view = inputView(recorder, op);
  const actual = actualOutput(recorder, op);
  const shape = actual?.local ?? localLayoutOf(recorder, tensorOf(recorder, op.output)).shape;
  if (elementCount(view.shape) !== elementCount(shape)) requireShape(recorder, `T${op.output}`, shape, view.shape);
  const reshaped = reshapeView(view, shape);
  if (reshaped !== null) return bindOrCopy(recorder, op, reshaped);
  // The output's memory under the input's shape. A new output is contiguous and always has such a view.
  const target = outputView(recorder, op.output, actual);
  const spread = reshapeView(target, view.shape);
  if (spread !== null) return copyView(recorder, view, spread);
  const temporary = contiguousTemporary(recorder, view);
  copyView(recorder, view, temporary);
  const packed = reshapeView(temporary, shape);
  invariant(packed !== null, "a contiguous view has every shape with the same number of elements", { shape });
  copyView(recorder, packed, target);
  release(recorder, temporary);
}

function recordExpand(op: ExpandOp, recorder: Recorder): void {
  const view = inputView(recorder, op);
  const actual = actualOutput(recorder, op);
  const shape = actual?.local ?? localLayoutOf(recorder, tensorOf(recorder, op.output)).shape;
  const stretched = view.shape.length === shape.length ? stretchView(view, shape) : null;
  if (stretched === null) requireShape(recorder, `T${op.output}`, shape, view.shape);
  bindOrCopyTo(recorder, op, stretched ?? view, actual);
}

function recordSlice(op: SliceOp, recorder: Recorder): void {
  const source = tensorOf(recorder, at(op.inputs, 0));
  const axes = withoutReductions(source.domain.logical);
  const shards = shardsOf(source);
  const view = op.ranges.reduce(
    (sliced, range, axis) => {
      // A sharded axis is not sliced: each device keeps its shard. A chunk may be shorter than the whole range.
      if (shards.some((shard) => shard.axis.id === at(axes, axis).id) || isWholeRange(range, at(axes, axis)))
        return sliced;
      const {
        start,
        stop,
        step = 1,
      } = rangeInto(recorder, range, axis, at(sliced.shape, axis), (each) => evaluate(recorder, each));
      return strideView(narrowView(sliced, axis, start, Math.ceil((stop - start) / step)), axis, step);
    },
    inputView(recorder, op),
  );
  bindOrCopy(recorder, op, view);
}

function recordSelect(op: SelectOp, recorder: Recorder): void {
  const view = inputView(recorder, op);
  const axis = at(withoutReductions(tensorOf(recorder, at(op.inputs, 0)).domain.logical), op.axis);
  const index = indexInto(recorder, axis, at(view.shape, op.axis), evaluate(recorder, op.index), op.axis);
  bindOrCopy(recorder, op, selectView(view, op.axis, index));
}

// Iota as one launch for each run of indices that this rank holds of the axis: a launch's origin is the first index of
// its run. All launches of equal length share a kernel.
//
//   iota(8) on [i{8} split outer 2 Serial, DIDx 2, S 2], device 1     2 3 | 6 7     origins 2 and 6

function recordIota(recorder: Recorder, statement: IotaOp): void {
  const view = outputView(recorder, statement.output);
  const [start, step] = [evaluate(recorder, statement.start), evaluate(recorder, statement.step)];
  let position = 0;
  const runs = ranksOf(recorder).map((rank) => heldRuns(recorder, statement, rank));
  for (const [i, run] of agreed(runs, sameLengths).entries()) {
    const length = run.stop - run.start;
    launch(recorder, {
      statement,
      inputs: [],
      outputs: [narrowView(view, 0, position, length)],
      originsOn: runs.map((own) => [at(own, i).start]),
      fixed: false,
      make: (inputs, outputs): IotaKernel => ({ kind: "iota", start, step, inputs, outputs }),
    });
    position += length;
  }
}

function sameLengths(a: Runs, b: Runs): boolean {
  return a.length === b.length && a.every(({ start, stop }, i) => stop - start === at(b, i).stop - at(b, i).start);
}

/** The indices of the whole axis that lie in the output's memory on a rank, in its order. */
function heldRuns(recorder: Recorder, { output }: IotaOp, rank: number): Runs {
  const chunk = recorder.actuals.get(output)?.chunk ?? null;
  return chunk?.runs(rank) ?? declaredRuns(recorder, tensorOf(recorder, output), 0, rank);
}

// A statement of an op that has no kernel of its own: a unit of one step.

type StepOp = Extract<
  Op,
  {
    kind:
      | "Cat"
      | "Full"
      | "Pad"
      | "IndexSelect"
      | "Gather"
      | "ScatterAdd"
      | "Scan"
      | "Argsort"
      | "GroupedMatmul"
      | "RandomBits";
  }
>;

/** A kernel's operands are permuted already. */
function recordGrouped(op: GroupedMatmulOp, recorder: Recorder): void {
  const { orders: _, ...step } = op;
  recordStep(op, recorder, step, operandViews(recorder, op));
}

function recordStep(
  statement: StepOp,
  recorder: Recorder,
  op = statement,
  operands: readonly View[] = op.inputs.map((id) => viewOf(recorder, id)),
): void {
  launch(recorder, {
    statement,
    inputs: operands,
    outputs: [ordinaryOutput(recorder, op)],
    make: (inputs, outputs) => {
      const kernel = stepKernel(op, inputs, outputs);
      const shapes = inputs.map(({ shape }) => shape);
      for (const step of kernel.steps) requireStepFits(recorder, step, shapes, at(outputs, 0).shape);
      return kernel;
    },
  });
}

function stepKernel(op: StepOp | TernaryOp, inputs: readonly Operand[], outputs: readonly Operand[]): UnitKernel {
  const output = inputs.length;
  return {
    kind: "unit",
    inputs,
    outputs,
    values: [...inputs, ...outputs].map(({ dtype, shape }) => ({ dtype, shape })),
    steps: [{ ...op, inputs: inputs.map((_, i) => i), output }],
    results: [output],
  };
}

// Attention as one launch.

function recordAttention(statement: SdpaOp | SdpaBackwardOp, recorder: Recorder): void {
  const inputs = statement.inputs.map((id) => viewOf(recorder, id));
  const outputs = outputsOf(statement).map((id, i) => outputView(recorder, id, actualOutput(recorder, statement, i)));
  if (outputs.every(isEmpty)) return;
  const kind = statement.kind === "Sdpa" ? "sdpa" : "sdpaBackward";
  const { causal, window } = statement;
  const { shape } = at(inputs, statement.kind === "Sdpa" ? 0 : 1);
  const scale = scaleOf(statement, at(shape, shape.length - 1));
  launch(recorder, {
    statement,
    inputs,
    outputs,
    make: (read: readonly Operand[], written: readonly Operand[]): SdpaKernel | SdpaBackwardKernel => ({
      kind,
      causal,
      window,
      scale,
      inputs: read,
      outputs: written,
    }),
  });
}

/**
 * Matmul and Linear as kernels with operands [.., M, K], [.., K, N] and [.., M, N]. Missing and unit batch axes
 * broadcast with stride 0. Batch axes along which the second operand does not change fold into M, which makes one
 * larger GEMM with the same bits. A permuted operand is read in place, through its strides.
 */
import type {
  BinaryKernel,
  FillKernel,
  LinearKernel,
  MatmulKernel,
  Operand,
  UnitKernel,
} from "../../commands/kernel.ts";
import { isEmpty, type View } from "../../commands/view.ts";
import { fastAccumulationOf } from "../../ir/ops/kinds/contractions.ts";
import type { ContractionOp, LinearOp, MatmulOp } from "../../ir/ops/op.ts";
import type { DType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { contiguousTemporary, emitCopy, launch, ordinaryOutput, release } from "../launch.ts";
import { requireShape, localShapeText } from "../checks.ts";
import { failRecording, type Recorder } from "../recorder.ts";
import { viewOf } from "../tensors.ts";
import { insertAxis, mayOverlap, permuteView, selectView, stretchView } from "../views.ts";

export function recordMatmul(recorder: Recorder, statement: MatmulOp): void {
  const operands = operandViews(recorder, statement);
  const [a, b] = [at(operands, 0), at(operands, 1)];
  const output = ordinaryOutput(recorder, statement);
  const left = a.shape.length === 1 ? insertAxis(a, 0) : a;
  const right = b.shape.length === 1 ? insertAxis(b, 1) : b;
  const result = resultMatrix(output, a.shape.length > 1, b.shape.length > 1);
  const batch = result.shape.slice(0, -2);
  const [m, k] = lastTwo(left);
  const [inner, n] = lastTwo(right);
  requireContraction(recorder, a, b, k === inner);
  requireShape(recorder, `T${statement.output}`, result.shape, [...batch, m, n]);
  const folded = foldRows({
    left: stretched(recorder, left, [...batch, m, k]),
    right: stretched(recorder, right, [...batch, k, n]),
    result,
  });
  launchGemm(recorder, statement, [folded.left, folded.right], folded.result);
}

export function recordLinear(recorder: Recorder, statement: LinearOp): void {
  if (statement.to !== undefined) return recordScaled(recorder, statement, statement.to);
  const operands = operandViews(recorder, statement);
  const [rows, columns] = [at(operands, 0), at(operands, 1)];
  const [, , bias] = operands;
  const output = ordinaryOutput(recorder, statement);
  const left = rows.shape.length === 1 ? insertAxis(rows, 0) : rows;
  const right = columns.shape.length === 1 ? insertAxis(columns, 0) : columns;
  const result = resultMatrix(output, rows.shape.length > 1, columns.shape.length > 1);
  const [n, inner] = lastTwo(right);
  const k = at(left.shape, left.shape.length - 1);
  requireContraction(recorder, rows, columns, k === inner);
  requireShape(recorder, `T${statement.output}`, result.shape, [...left.shape.slice(0, -1), n]);
  const offset = bias === undefined ? [] : [stretched(recorder, bias, [n])];
  const folded = foldRows({ left, right: null, result });
  launchGemm(recorder, statement, [folded.left, right, ...offset], folded.result);
}

function recordScaled(recorder: Recorder, statement: LinearOp, to: DType): void {
  const operands = operandViews(recorder, statement);
  const [x, weight] = [at(operands, 0), at(operands, 1)];
  const output = ordinaryOutput(recorder, statement);
  requireContraction(recorder, x, weight, x.shape.at(-1) === weight.shape.at(-1));
  const made = [...x.shape.slice(0, -1), ...weight.shape.slice(-2, -1)];
  requireShape(recorder, `T${statement.output}`, output.shape, made);
  launchScaled(recorder, statement, to, operands, output);
}

/** As a unit of one step, from which its kernel is planned: one for each weight. */
function launchScaled(
  recorder: Recorder,
  statement: LinearOp,
  to: DType,
  operands: readonly View[],
  output: View,
): void {
  if (operands.slice(0, 2).some(isEmpty)) return recordEmpty(recorder, statement, null, output);
  const { shape } = at(operands, 1);
  if (shape.length > 2) {
    for (let i = 0; i < at(shape, 0); i++) {
      const own = operands.map((view) => (view.shape.length === 0 ? view : selectView(view, 0, i)));
      launchScaled(recorder, statement, to, own, selectView(output, 0, i));
    }
    return;
  }
  launch(recorder, {
    statement,
    inputs: operands,
    outputs: [output],
    make: (inputs, outputs): UnitKernel => ({
      kind: "unit",
      inputs,
      outputs,
      values: [...inputs, ...outputs].map(({ dtype, shape }) => ({ dtype, shape })),
      steps: [{ kind: "Linear", to, ...fastAccumulationOf(statement), inputs: [0, 1, 2, 3], output: 4 }],
      results: [4],
    }),
  });
}

export function operandViews(recorder: Recorder, { inputs, orders }: ContractionOp): readonly View[] {
  return inputs.map((id, operand) => {
    const order = orders?.[operand] ?? null;
    return order === null ? viewOf(recorder, id) : permuteView(viewOf(recorder, id), order);
  });
}

/**
 * An accumulating GEMM needs its output in place. If an operand shares memory with the output, the operand is copied
 * instead.
 */
function launchGemm(recorder: Recorder, statement: MatmulOp | LinearOp, operands: readonly View[], result: View): void {
  const accumulation = statement.accumulate === true ? ({ accumulate: true } as const) : {};
  const kind = statement.kind === "Matmul" ? "matmul" : "linear";
  // Of an empty contraction, the result is 0, and the bias.
  if (operands.slice(0, 2).some(isEmpty)) return recordEmpty(recorder, statement, operands[2] ?? null, result);
  const copies: View[] = [];
  const inputs = operands.map((operand) => {
    if (statement.accumulate !== true || !mayOverlap(operand, result)) return operand;
    const copy = contiguousTemporary(recorder, operand);
    emitCopy(recorder, operand, copy);
    copies.push(copy);
    return copy;
  });
  launch(recorder, {
    statement,
    inputs,
    outputs: [result],
    make: (read, written): MatmulKernel | LinearKernel => ({ kind, inputs: read, outputs: written, ...accumulation }),
  });
  for (const copy of copies) release(recorder, copy);
}

function recordEmpty(recorder: Recorder, statement: MatmulOp | LinearOp, bias: View | null, result: View): void {
  const request = { statement, outputs: [result], fixed: false } as const;
  if (statement.accumulate !== true) {
    const make = (inputs: readonly Operand[], outputs: readonly Operand[]): FillKernel => ({
      kind: "fill",
      inputs,
      outputs,
    });
    launch(recorder, { ...request, inputs: [], make });
  }
  if (bias === null) return;
  launch(recorder, {
    ...request,
    inputs: [result, stretched(recorder, bias, result.shape)],
    inPlace: true,
    make: (inputs, outputs): BinaryKernel => ({ kind: "binary", op: "add", inputs, outputs }),
  });
}

/** The output as [.., M, N], with unit axes for the ones that a 1-D operand omits. */
function resultMatrix(output: View, hasRows: boolean, hasColumns: boolean): View {
  const withColumns = hasColumns ? output : insertAxis(output, output.shape.length);
  return hasRows ? withColumns : insertAxis(withColumns, withColumns.shape.length - 1);
}

function lastTwo({ shape }: View): readonly [number, number] {
  return [at(shape, shape.length - 2), at(shape, shape.length - 1)];
}

function requireContraction(recorder: Recorder, a: View, b: View, fits: boolean): void {
  if (fits) return;
  failRecording(recorder, "size-mismatch", "the contracted axes have different sizes", {
    found: `${localShapeText(a.shape)} and ${localShapeText(b.shape)}`,
    expected: "the last axis of the first operand and the contracted axis of the second with equal extents",
    help: "give equal sizes; a sharded axis has size 1 on each device",
  });
}

function stretched(recorder: Recorder, view: View, shape: readonly number[]): View {
  return (
    stretchView(view, shape) ??
    failRecording(recorder, "size-mismatch", "an operand does not broadcast to the result's shape", {
      found: localShapeText(view.shape),
      expected: `${localShapeText(shape)}, or 1 on broadcast axes`,
      help: "give equal sizes; a sharded axis has size 1 on each device",
    })
  );
}

/** `right` is null if the second operand has no batch axes. */
interface Matrices<Right extends View | null> {
  readonly left: View;
  readonly right: Right;
  readonly result: View;
}

/**
 * Drops unit batch axes, and folds the innermost batch axes into M while the second operand does not change along them.
 */
function foldRows<Right extends View | null>(matrices: Matrices<Right>): Matrices<Right> {
  let { left, right, result } = matrices;
  for (let axis = result.shape.length - 3; axis >= 0; axis--) {
    const count = at(result.shape, axis);
    if (count === 1) {
      left = dropAxis(left, axis);
      result = dropAxis(result, axis);
      right = dropBatch(right, axis);
      continue;
    }
    const rows = axis + 1;
    // Only an axis next to M can fold.
    const isInnermost = rows === result.shape.length - 2;
    const isShared = right === null || at(right.strides, axis) === 0;
    if (!isInnermost || !isShared || !joins(left, axis) || !joins(result, axis)) continue;
    left = mergeAxes(left, axis);
    result = mergeAxes(result, axis);
    right = dropBatch(right, axis);
  }
  return { left, right, result };
}

function dropAxis(view: View, axis: number): View {
  return permuteView(
    view,
    view.shape.flatMap((_, other) => (other === axis ? [] : [other])),
  );
}

function dropBatch<Right extends View | null>(right: Right, axis: number): Right;
function dropBatch(right: View | null, axis: number): View | null {
  return right === null ? null : dropAxis(right, axis);
}

/** Whether memory steps evenly across `axis` and the next axis, so that the two can be one axis. */
function joins({ shape, strides }: View, axis: number): boolean {
  const rows = at(shape, axis + 1);
  return rows === 1 || at(strides, axis) === rows * at(strides, axis + 1);
}

function mergeAxes(view: View, axis: number): View {
  const { shape, strides } = view;
  const rows = at(shape, axis + 1);
  const stride = rows === 1 ? at(strides, axis) : at(strides, axis + 1);
  return {
    ...view,
    shape: shape.toSpliced(axis, 2, at(shape, axis) * rows),
    strides: strides.toSpliced(axis, 2, stride),
  };
}

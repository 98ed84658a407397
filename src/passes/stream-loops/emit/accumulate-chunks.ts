/**
 * One iteration of a matmul or linear with Stream on the contracted axis: the GEMM of one chunk is added to the output.
 * The iterations run on several streams. Each waits for the previous one, so that the additions happen in the order of
 * the loop.
 *
 *   IF Manual ( streamIdx == 0 ):
 *     T2 = matmul(T3, T4, accumulate = false)
 *   ELSE:
 *     Synchronize Stream ( ( streamIdx - 1 ) % numberOfStreams )
 *     T2 = matmul(T3, T4, accumulate = true)
 */
import type { HirAliasSelect, ShardByStream, Statement } from "../../../host/nodes.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../../ir/domain.ts";
import { operandOrder } from "../../../ir/ops/axis-map.ts";
import type { BroadcastOp, LinearOp, MatmulOp, Op, ReductionOp } from "../../../ir/ops/op.ts";
import { cutOf } from "../../../ir/parts.ts";
import { foldCeilDiv } from "../../../ir/scalar/fold.ts";
import { binary, constant, named, type Scalar } from "../../../ir/scalar/scalar.ts";
import { at, invariant } from "../../../support/invariant.ts";
import {
  type ModelledAxis,
  splitLike,
  addAxis,
  addTensor,
  copyAxes,
  reparallelize,
  type TensorEdit,
} from "../../edit/tensor-edit.ts";
import { withoutBias } from "../../routes/split-over-devices.ts";
import type { LoopMember } from "../loop-member.ts";
import { addStream, type LoopContext, type LoopEdit } from "./loop-context.ts";
import { selectAt, type LoopSlice, withoutLoopedAxis } from "./slicer.ts";

type Contraction = MatmulOp | LinearOp;

/** Whether an iteration adds to the results of earlier ones. */
export function accumulatesChunks(op: Op, { stream }: LoopMember): op is Contraction {
  return isMatmul(op) && stream.iterType === "reduction";
}

function isMatmul(op: Op): op is Contraction {
  return op.kind === "Matmul" || op.kind === "Linear";
}

/**
 * If `waits`, the op is the first accumulating one in its iteration. It waits for the previous iteration on behalf of
 * the others.
 */
export function accumulationStatements(
  op: Contraction,
  { read, stream, counted, chunks }: LoopMember,
  context: LoopContext,
  waits: boolean,
): readonly Statement[] {
  const { edit, slicer, iteration } = context;
  const sliced = chunks === null ? withoutLoopedAxis(op, read, counted, edit.tensors) : op;
  invariant(isMatmul(sliced), "slicing keeps the kind of an op", sliced);
  const isWholeContraction = at(edit.tensors, op.output).domain.logical.at(-1)?.id === counted.id;
  const bindings: Statement[] = [];
  const slices = op.inputs.map((input, operand) => {
    const axis = read[operand] ?? null;
    if (axis === null) return input;
    const { slice, binding } = slicer.slice(input, axis);
    bindings.push(...binding);
    return slice;
  });
  let chunk: Contraction = { ...sliced, inputs: slices };
  if (isWholeContraction || chunks !== null) {
    makeSerial(edit, op.output, stream);
    if (chunks === null) chunk = withUnitAxes(op, chunk, read, edit, bindings);
  } else {
    const { slice, binding } = slicer.slice(op.output, counted);
    bindings.push(...binding);
    chunk = { ...chunk, output: slice };
  }
  const order = waits ? [previousIteration(context)] : [];
  return [
    ...bindings,
    {
      kind: "IfThenElse",
      predicate: binary("eq", iteration, constant(0)),
      // The first chunk adds the bias.
      then: [{ ...chunk, accumulate: false }],
      else: [...order, { ...withoutBias(chunk), accumulate: true }],
    },
  ];
}

/** Waits for the iteration before, which has added its chunk. */
function previousIteration({ edit, iteration }: LoopContext): Statement {
  const previous = binary("mod", binary("sub", iteration, constant(1)), named("numberOfStreams"));
  return { kind: "Synchronize", stream: addStream(edit, previous) };
}

/** Removes the Stream axis, because every iteration writes the whole output. */
function makeSerial(edit: LoopEdit, id: TensorId, stream: IterDomain): void {
  edit.tensors[id] = reparallelize(at(edit.tensors, id), (axis) =>
    axis.id === stream.id ? "Serial" : axis.parallelType,
  );
}

/** Restores the contracted axis of sliced operands as a view with one element, because a contraction needs the axis. */
function withUnitAxes(
  whole: Contraction,
  chunk: Contraction,
  read: readonly (IterDomain | null)[],
  edit: LoopEdit,
  bindings: Statement[],
): Contraction {
  const orders: (readonly number[] | null)[] = whole.inputs.map((_, operand) => chunk.orders?.[operand] ?? null);
  const inputs = chunk.inputs.map((slice, operand) => {
    const axis = read[operand] ?? null;
    if (axis === null) return slice;
    const stored = withoutReductions(at(edit.tensors, at(whole.inputs, operand)).domain.logical);
    const own = stored.findIndex(({ id }) => id === axis.id);
    const order = orders[operand] ?? null;
    // Last, if the operand has an order that places it; otherwise at its old position.
    const position = order === null ? own : stored.length - 1;
    if (order !== null) {
      orders[operand] = order.toSpliced(operandOrder(whole, operand)?.indexOf(own) ?? 0, 0, position);
    }
    const view = unitView(edit, slice, position);
    bindings.push(view);
    return view.output;
  });
  return { ...chunk, inputs, ...(chunk.orders === undefined ? {} : { orders }) };
}

/** A view of a slice with one more axis, of one element, at `position`. */
function unitView(edit: LoopEdit, id: TensorId, position: number): BroadcastOp {
  const slice = at(edit.tensors, id);
  const kept = withoutReductions(slice.domain.logical);
  const axes = copyAxes(edit, kept, ({ parallelType }) => parallelType);
  const unit = addAxis(edit, { extent: constant(1), iterType: "broadcast" });
  const modelled = axes.map((axis, i): ModelledAxis => ({ axis, model: cutOf(slice.domain, at(kept, i)) }));
  const domain = splitLike(edit, modelled.toSpliced(position, 0, { axis: unit, model: null }));
  const view = addTensor(edit, slice, domain, slice.mesh, "local");
  const flags = domain.logical.map((axis) => axis.id === unit.id);
  return { kind: "Broadcast", flags, inputs: [id], output: view.id };
}

// One iteration of a sum over the axis that the loop takes chunks of: the sum of one chunk is added to the output, in
// the order of the loop.
//
//   T4 = reduction( T3 )
//   IF Manual ( streamIdx == 0 ):
//     T5 = Set( T4 )
//   ELSE:
//     Synchronize Stream ( ( streamIdx - 1 ) % numberOfStreams )
//     T5 = T5 + T4
//
// T5 is the output without its reduced axes, which take no memory. The sums of two iterations share T4, so that an
// iteration begins when the one before has added its sum.

/** Whether the op sums over the chunks. */
export function sumsChunks(op: Op, { stream, chunks, form }: LoopMember): op is ReductionOp {
  return op.kind === "Reduction" && form === null && chunks !== null && stream.iterType === "reduction";
}

/** If `waits`, the op is the first accumulating one in its iteration: it waits for the previous iteration. */
export function sumStatements(
  op: ReductionOp,
  { read, stream, counted, chunks }: LoopMember,
  context: LoopContext,
  waits: boolean,
): readonly Statement[] {
  const { edit, slicer, iteration } = context;
  const input = at(op.inputs, 0);
  const axis = read[0] ?? null;
  const { slice, binding } = axis === null ? { slice: input, binding: [] } : slicer.slice(input, axis);
  makeSerial(edit, op.output, stream);
  const output = at(edit.tensors, op.output);
  const part = partOf(edit, output, counted, chunks?.parts ?? constant(1));
  const { slice: whole, binding: views } = withoutReduced(edit, output.id);
  const isFirst = binary("eq", iteration, constant(0));
  return [
    ...binding,
    ...views,
    // The sum of the iteration before is in the same memory.
    ...(waits ? [branch(isFirst, [], [previousIteration(context)])] : []),
    { ...op, inputs: [slice], output: part.id },
    branch(
      isFirst,
      [{ kind: "Set", inputs: [part.id], output: whole }],
      [{ kind: "Binary", op: "add", inputs: [whole, part.id], output: whole }],
    ),
  ];
}

function branch(predicate: Scalar, then: readonly Statement[], otherwise: readonly Statement[]): Statement {
  return { kind: "IfThenElse", predicate, then, else: otherwise };
}

/** A tensor for the sum of one chunk of `counted`. */
function partOf(edit: TensorEdit, output: Tensor, counted: IterDomain, parts: Scalar): Tensor {
  const { logical } = output.domain;
  const axes = copyAxes(edit, logical, ({ parallelType }) => parallelType).map((axis, i): ModelledAxis => {
    const own = at(logical, i);
    if (own.id !== counted.id) return { axis, model: cutOf(output.domain, own) };
    return { axis: { ...axis, extent: foldCeilDiv(axis.extent, parts) }, model: null };
  });
  return addTensor(edit, output, splitLike(edit, axes), output.mesh, "local", "partial sum");
}

/** A view of the tensor without its reduced axes. */
function withoutReduced(edit: TensorEdit, id: TensorId): LoopSlice {
  const binding: (HirAliasSelect | ShardByStream)[] = [];
  let slice = id;
  for (;;) {
    const reduced = at(edit.tensors, slice).domain.logical.find(({ iterType }) => iterType === "reduction");
    if (reduced === undefined) return { slice, binding };
    const view = selectAt(edit, slice, reduced, constant(0));
    binding.push(...view.binding);
    slice = view.slice;
  }
}

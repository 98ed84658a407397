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
import { type IterDomain, type TensorId, withoutReductions } from "../../../ir/domain.ts";
import { operandOrder } from "../../../ir/ops/axis-map.ts";
import type { BroadcastOp, LinearOp, MatmulOp, Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import type { Statement } from "../../../host/nodes.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { type ModelledAxis, splitLike } from "../../edit/split-axes.ts";
import { addAxis, addTensor, copyAxes, reparallelize } from "../../edit/tensor-edit.ts";
import { withoutBias } from "../../routes/linear-bias.ts";
import type { LoopMember } from "../loop-member.ts";
import { addStream, type LoopContext, type LoopEdit } from "./loop-context.ts";
import { withoutLoopedAxis } from "./slice-op.ts";
import { cutOf } from "../../../ir/parts.ts";

type Contraction = MatmulOp | LinearOp;

/** Whether an iteration adds to the results of earlier ones. */
export function accumulates(op: Op, { stream }: LoopMember): op is Contraction {
  return isContraction(op) && stream.iterType === "reduction";
}

function isContraction(op: Op): op is Contraction {
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
  invariant(isContraction(sliced), "slicing keeps the kind of an op", sliced);
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
export function previousIteration({ edit, iteration }: LoopContext): Statement {
  const previous = binary("mod", binary("sub", iteration, constant(1)), named("numberOfStreams"));
  return { kind: "Synchronize", stream: addStream(edit, previous) };
}

/** Removes the Stream axis, because every iteration writes the whole output. */
export function makeSerial(edit: LoopEdit, id: TensorId, stream: IterDomain): void {
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

/**
 * One iteration of a contraction whose Stream axis is contracted: the product of one chunk of the operands is added to the output. The
 * iterations are on several streams, so that each waits for the one before: the order of the additions is that of the loop.
 *
 *   IF Manual ( streamIdx == 0 ):
 *     T2 = matmul(T3, T4, accumulate = false)
 *   ELSE:
 *     Synchronize Stream ( ( streamIdx - 1 ) % numberOfStreams )
 *     T2 = matmul(T3, T4, accumulate = true)
 */
import { type IterDomain, type IterDomainId, type TensorId, withoutReductions } from "../../../ir/domain.ts";
import { operandOrder } from "../../../ir/ops/axis-map.ts";
import type { BroadcastOp, LinearOp, MatmulOp, Op } from "../../../ir/ops/op.ts";
import { binary, constant, named } from "../../../ir/scalar/scalar.ts";
import type { Statement } from "../../../host/nodes.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import { cloneAxes, domainLike, newTensor, partsOf, reparallelize } from "../../edit/fusion-edit.ts";
import type { LoopContext } from "./loop-context.ts";
import { addStream, type LoopEdit } from "./loop-edit.ts";
import type { LoopMember } from "../loop-member.ts";
import { contractionWithoutAxis } from "./slice-op.ts";
import { withoutBias } from "../../reshard/without-bias.ts";

type ContractionMember = LoopMember & { readonly op: MatmulOp | LinearOp };

/** Whether an iteration adds to what the ones before have made. */
export function accumulates(member: LoopMember): member is ContractionMember {
  return isContraction(member.op) && member.stream.iterType === "reduction";
}

function isContraction(op: Op): op is MatmulOp | LinearOp {
  return op.kind === "Matmul" || op.kind === "Linear";
}

/** `waits`: the op is the first of its iteration that adds, and waits for the iteration before on behalf of all. */
export function accumulationStatements(
  { op, read, stream }: ContractionMember,
  context: LoopContext,
  waits: boolean,
): readonly Statement[] {
  const { edit, slicer, iteration } = context;
  const sliced = contractionWithoutAxis(op, read, stream, edit.tensors);
  const isWholeContraction = at(edit.tensors, op.output).domain.logical.at(-1)?.id === stream.id;
  const bindings: Statement[] = [];
  const slices = op.inputs.map((input, operand) => {
    const axis = read[operand] ?? null;
    if (axis === null) return input;
    const { slice, binding } = slicer.slice(input, axis);
    bindings.push(...binding);
    return slice;
  });
  let chunk: Contraction = { ...sliced, inputs: slices };
  if (isWholeContraction) {
    withoutStream(edit, op.output, stream);
    chunk = withUnitAxes(op, chunk, read, edit, bindings);
  } else {
    const { slice, binding } = slicer.slice(op.output, stream);
    bindings.push(...binding);
    chunk = { ...chunk, output: slice };
  }
  const previous = binary("mod", binary("sub", iteration, constant(1)), named("numberOfStreams"));
  const order: readonly Statement[] = waits ? [{ kind: "Synchronize", stream: addStream(edit, previous) }] : [];
  return [
    ...bindings,
    {
      kind: "IfThenElse",
      predicate: binary("eq", iteration, constant(0)),
      // A bias is added once, with the first chunk.
      then: [{ ...chunk, accumulate: false }],
      else: [...order, { ...withoutBias(chunk), accumulate: true }],
    },
  ];
}

type Contraction = MatmulOp | LinearOp;

/** What a loop writes whole has no Stream axis any more. */
function withoutStream(edit: LoopEdit, id: TensorId, stream: IterDomain): void {
  const tensor = at(edit.tensors, id);
  edit.tensors[id] = reparallelize(
    tensor,
    (axis) => (axis.id === stream.id ? "Serial" : axis.parallelType),
    tensor.mesh,
  );
}

/** One index of the contracted axis is an axis of one element: operands that lack it get it back, as views. */
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
    // Behind all others where the order says its place, else where it was.
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
  const axes = cloneAxes(kept, edit.iterDomainCount, ({ parallelType }) => parallelType);
  const unit: IterDomain = {
    id: makeId<IterDomainId>(edit.iterDomainCount + axes.length),
    extent: constant(1),
    iterType: "broadcast",
    parallelType: "Serial",
  };
  edit.iterDomainCount += axes.length + 1;
  const modelled = axes.map((axis, i) => ({ axis, model: partsOf(slice, at(kept, i)) }));
  const { domain, count } = domainLike(
    modelled.toSpliced(position, 0, { axis: unit, model: partsOf(slice, unit) }),
    edit.iterDomainCount,
  );
  edit.iterDomainCount += count;
  const plain = newTensor(edit.tensors.length, slice, domain.logical, slice.mesh);
  edit.tensors.push({ ...plain, domain, memory: "local" });
  return {
    kind: "Broadcast",
    flags: domain.logical.map((axis) => axis.id === unit.id),
    inputs: [id],
    output: plain.id,
  };
}

/**
 * One iteration of a sum over the axis that the loop takes chunks of: the sum of one chunk is added to the output, in
 * the order of the loop.
 *
 *   T4 = reduction( T3 )
 *   IF Manual ( streamIdx == 0 ):
 *     T5 = Set( T4 )
 *   ELSE:
 *     Synchronize Stream ( ( streamIdx - 1 ) % numberOfStreams )
 *     T5 = T5 + T4
 *
 * T5 is the output without its reduced axes, which take no memory. The sums of two iterations share T4, so that an
 * iteration begins when the one before has added its sum.
 */
import type { IterDomain, Tensor, TensorId } from "../../../ir/domain.ts";
import type { Op, ReductionOp } from "../../../ir/ops/op.ts";
import { foldCeilDiv } from "../../../ir/scalar/fold.ts";
import { binary, constant, type Scalar } from "../../../ir/scalar/scalar.ts";
import type { HirAliasSelect, ShardByStream, Statement } from "../../../host/nodes.ts";
import { at } from "../../../support/invariant.ts";
import { type ModelledAxis, splitLike } from "../../edit/split-axes.ts";
import { addTensor, copyAxes, type TensorEdit } from "../../edit/tensor-edit.ts";
import type { LoopMember } from "../loop-member.ts";
import { makeSerial, previousIteration } from "./accumulate-chunks.ts";
import type { LoopContext } from "./loop-context.ts";
import { selectAt, type Slice } from "./slicer.ts";
import { cutOf } from "../../../ir/parts.ts";

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
function withoutReduced(edit: TensorEdit, id: TensorId): Slice {
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

/**
 * Lets contractions read permuted operands in place, which avoids a permuted copy.
 *
 *   T2 = permute(T1, {1, 0}); T3 = matmul(T0, T2)     ->     T3 = matmul(T0, permute(T1, {1, 0}))
 *
 * A permute that also reshards leaves a Set, which moves its operand to the layout of the result.
 */
import { loopAxesOf } from "../../ir/parts.ts";
import { type Tensor, type TensorId, withoutReductions, type IterDomain } from "../../ir/domain.ts";
import { isScaled } from "../../ir/ops/kinds/contractions.ts";
import { axisMap, operandAxes } from "../../ir/ops/axis-map.ts";
import {
  type ContractionOp,
  isContraction,
  type Op,
  type PermuteOp,
  type MatmulOp,
  type ReductionOp,
} from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit, copyAxes } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { layoutOf } from "../../ir/layout.ts";
import { imagesOf, moveTo, streamOn, isResharding } from "../routes/layouts.ts";
import { streamPart } from "../../ir/stream.ts";
import { shardsOf } from "../../ir/shards.ts";
import { type FusionData, withoutDeadOps } from "../../ir/fusion-data.ts";
import type { LoweringOptions } from "../options.ts";
import { rejectReducedStream, requireReducedChunks } from "../stream-loops/looped-axis.ts";

export const foldPermutes: Pass<"checked", "checked"> = {
  name: "fold-permutes",
  from: "checked",
  to: "checked",
  run: (fusion) => {
    if (!fusion.ops.some(({ kind }) => kind === "Permute")) return fusion;
    const producers = new Map(fusion.ops.map((op) => [op.output, op]));
    const edit = editFusion(fusion);
    const moved = new Map<TensorId, TensorId>();
    let changed = false;
    for (const op of fusion.ops) {
      const folded = isContraction(op) ? foldOperands(edit, op, producers, moved) : op;
      changed ||= folded !== op;
      edit.ops.push(folded);
    }
    return changed ? withoutDeadOps({ ...fusion, ...edit }) : fusion;
  },
};

interface ReadOperand {
  readonly id: TensorId;
  readonly order: readonly number[] | null;
}

/** The op with its operands' permutes folded in; the same object if it can read none of them in place. */
function foldOperands(
  edit: FusionEdit,
  op: ContractionOp,
  producers: ReadonlyMap<TensorId, Op>,
  moved: Map<TensorId, TensorId>,
): ContractionOp {
  const operands = op.inputs.map((id, operand): ReadOperand => {
    // A bias and the ends of groups are read as they are; scales of blocks are best read by columns.
    if (operand > 1 && !isScaled(op)) return { id, order: null };
    let read: ReadOperand = { id, order: null };
    for (;;) {
      const producer = producers.get(read.id);
      if (producer?.kind !== "Permute") return read;
      const from = at(producer.inputs, 0);
      const within = read.order ?? producer.order.map((_, axis) => axis);
      const order = within.map((axis) => at(producer.order, axis));
      if (!readsInPlace(at(edit.tensors, from), order)) return read;
      const source = isResharding(producer, edit.tensors) ? movedSource(edit, producer, moved) : from;
      read = { id: source, order };
    }
  });
  if (operands.every(({ id }, operand) => id === op.inputs[operand])) return op;
  const inputs = operands.map(({ id }) => id);
  const orders = operands.map(({ order }) => (order?.every((axis, i) => axis === i) === true ? null : order));
  return orders.every((order) => order === null) ? { ...op, inputs } : { ...op, inputs, orders };
}

/**
 * Whether GEMM libraries read the operand in place: one of the two axes of the matrix is innermost in memory. For any
 * other permuted operand, a copy costs less than a GEMM over scattered elements.
 */
function readsInPlace({ domain }: Tensor, order: readonly number[]): boolean {
  const axes = withoutReductions(domain.logical);
  const innermost = withoutReductions(domain.allocation ?? domain.logical).at(-1);
  const axis = axes.findIndex((own) => loopAxesOf(domain, own).some(({ id }) => id === innermost?.id));
  const last = axis < 0 ? axes.findIndex(({ id }) => id === innermost?.id) : axis;
  return order.slice(-2).includes(last);
}

/**
 * The operand of a permute that also reshards, moved to the layout of the result. Each permute moves its operand
 * once.
 */
function movedSource(edit: FusionEdit, permute: PermuteOp, moved: Map<TensorId, TensorId>): TensorId {
  const known = moved.get(permute.output);
  if (known !== undefined) return known;
  const source = at(edit.tensors, at(permute.inputs, 0));
  const result = at(edit.tensors, permute.output);
  const axes = withoutReductions(source.domain.logical);
  const images = imagesOf(axes, axisMap(permute, edit.tensors));
  const to = layoutOf(result, images, axes);
  // Without a mesh nothing reshards.
  if (to === null) return source.id;
  const copy = addSerialTensor(edit, source, axes, to.mesh);
  const stream = streamPart(result);
  const chunked = images.findIndex((axis) => axis !== null && axis.id === stream?.axis.id);
  moveTo(edit, copy, copy.domain.logical, to, streamOn(stream, copy.domain.logical[chunked]));
  edit.tensors[copy.id] = { ...at(edit.tensors, copy.id), memory: result.memory };
  edit.ops.push({ kind: "Set", inputs: [source.id], output: copy.id });
  moved.set(permute.output, copy.id);
  return copy.id;
}

/*
 * With the option `accumulate`, turns the sum of a batched matmul's results into a matmul, if the sum runs chunk by
 * chunk. The loop then adds each chunk's result to the output, and never stores the separate results.
 *
 *   T2[b, M, N] = matmul(T0, T1)
 *   T3[rStream b, M, N] = sum(T2, {b})
 * becomes
 *   T3[rStream b, M, N, rK] = matmul(T0, T1)
 *
 * Without the option, such a sum is rejected.
 */

/** Throws `stream-on-reduction-axis`. */
export const foldSums: Pass<"checked", "checked"> = {
  name: "fold-sums",
  from: "checked",
  to: "checked",
  run: (fusion, { options }) => {
    const producers = new Map(fusion.ops.map((op) => [op.output, op]));
    const edit = editFusion(fusion);
    let changed = false;
    for (const op of fusion.ops) {
      requireReducedChunks(op, fusion.tensors, options);
      const folded = op.kind === "Reduction" ? foldSum(edit, op, producers, fusion, options) : op;
      changed ||= folded !== op;
      edit.ops.push(folded);
    }
    return changed ? withoutDeadOps({ ...fusion, ...edit }) : fusion;
  },
};

/** The matmul that computes the sum; the same op if it is not a sum over the chunks of a matmul. */
function foldSum(
  edit: FusionEdit,
  op: ReductionOp,
  producers: ReadonlyMap<TensorId, Op>,
  fusion: FusionData,
  { accumulate }: Pick<LoweringOptions, "accumulate">,
): ReductionOp | MatmulOp {
  const matmul = producers.get(at(op.inputs, 0));
  if (matmul?.kind !== "Matmul") return op;
  const contracted = at(fusion.tensors, matmul.output).domain.logical.at(-1);
  const chunked = chunkedAxis(op, matmul, fusion);
  if (contracted?.iterType !== "reduction" || chunked === null) return op;
  const output = at(edit.tensors, op.output);
  if (!accumulate) rejectReducedStream(op, output, chunked, true);
  const axes = copyAxes(edit, [contracted], () => "Serial");
  const { logical, loop } = output.domain;
  edit.tensors[output.id] = {
    ...output,
    domain: { ...output.domain, logical: [...logical, ...axes], loop: [...loop, ...axes] },
  };
  return { ...matmul, output: output.id };
}

/**
 * The reduced axis of a sum over one batch axis of a matmul. Null unless it has Stream, no devices share the batches,
 * and no other op reads the matmul's results.
 */
function chunkedAxis(op: ReductionOp, matmul: MatmulOp, { tensors, ops, outputs }: FusionData): IterDomain | null {
  const [axis, ...others] = op.axes;
  if (op.op !== "sum" || axis === undefined || others.length > 0) return null;
  const reduced = at(tensors, op.output).domain.logical[axis];
  if (reduced?.iterType !== "reduction" || reduced.parallelType !== "Stream") return null;
  const parts = at(tensors, matmul.output);
  const batch = withoutReductions(parts.domain.logical)[axis];
  const [a, b] = [operandAxes(matmul, 0, tensors), operandAxes(matmul, 1, tensors)];
  const isBatch = a.length > 1 && b.length > 1 && axis < Math.max(a.length, b.length) - 2;
  const isShared = shardsOf(parts).some((shard) => shard.axis.id === batch?.id);
  const readers = ops.filter(({ inputs }) => inputs.includes(matmul.output));
  const isAlone = readers.length === 1 && !outputs.includes(matmul.output);
  return isBatch && !isShared && isAlone ? reduced : null;
}

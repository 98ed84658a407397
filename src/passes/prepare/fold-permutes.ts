/**
 * Lets contractions read permuted operands in place, which avoids a permuted copy.
 *
 *   T2 = permute(T1, {1, 0}); T3 = matmul(T0, T2)     ->     T3 = matmul(T0, permute(T1, {1, 0}))
 *
 * A permute that also reshards leaves a Set, which moves its operand to the layout of the result.
 */
import { loopAxesOf } from "../../ir/parts.ts";
import { type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import { axisMap } from "../../ir/ops/axis-map.ts";
import { type ContractionOp, isContraction, type Op, type PermuteOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { addSerialTensor, editFusion, type FusionEdit } from "../edit/tensor-edit.ts";
import type { Pass } from "../pass.ts";
import { layoutOf } from "../../ir/layout.ts";
import { imagesOf, moveTo, streamOn } from "../routes/layouts.ts";
import { streamPart } from "../../ir/stream.ts";
import { isResharding } from "../routes/sharding.ts";
import { withoutDeadOps } from "./remove-dead-ops.ts";

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
    // A bias and the ends of groups are read as they are.
    if (operand > 1) return { id, order: null };
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

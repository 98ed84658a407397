/**
 * What contractions take in, so that no copy is made and chunks run one after the other:
 *
 * A permute of an operand, which is then read where it lies:
 *   T2 = permute(T1, {1, 0}); T3 = matmul(T0, T2)            ->   T3 = matmul(T0, permute(T1, {1, 0}))
 *
 * With `accumulate`, a sum over a batch axis with Stream, whose chunks are added in the output:
 *   T2[b, M, N] = matmul(T0, T1); T3[rStream b, M, N] = sum(T2, {b})   ->   T3[rStream b, M, N, rK] = matmul(T0, T1)
 */
import { axisMap, operandAxes } from "../../ir/ops/axis-map.ts";
import { axisParts, axisShards } from "../../ir/axis-shards.ts";
import { type IterDomain, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { LinearOp, MatmulOp, Op, PermuteOp, ReductionOp } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { addTensor, cloneAxes, type FusionEdit } from "../edit/fusion-edit.ts";
import { rejectReducedStream } from "../stream-loops/looped-axis.ts";
import type { LoweringOptions } from "../options.ts";
import { moveTo, placementOf } from "../reshard/placement.ts";
import { withoutDeadOps } from "./prepare-fusion.ts";
import { isResharding } from "../reshard/sharding.ts";

/** The same Fusion where there is nothing to take in. Throws `stream-on-reduction-axis`. */
export function foldContractions(fusion: FusionData, { accumulate }: Pick<LoweringOptions, "accumulate">): FusionData {
  return foldSums(foldPermutes(fusion), accumulate);
}

type Producers = ReadonlyMap<TensorId, Op>;

function foldPermutes(fusion: FusionData): FusionData {
  if (!fusion.ops.some(({ kind }) => kind === "Permute")) return fusion;
  const producers: Producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const edit: FusionEdit = { tensors: [...fusion.tensors], ops: [], iterDomainCount: fusion.iterDomainCount };
  const moved = new Map<TensorId, TensorId>();
  let changed = false;
  for (const op of fusion.ops) {
    const folded = op.kind === "Matmul" || op.kind === "Linear" ? foldOperands(edit, op, producers, moved) : op;
    changed ||= folded !== op;
    edit.ops.push(folded);
  }
  if (!changed) return fusion;
  const { tensors, ops, iterDomainCount } = edit;
  return withoutDeadOps({ ...fusion, tensors, ops, iterDomainCount });
}

interface ReadOperand {
  readonly id: TensorId;
  readonly order: readonly number[] | null;
}

/** The same op where no operand is a permute that it can read in place. */
function foldOperands(
  edit: FusionEdit,
  op: MatmulOp | LinearOp,
  producers: Producers,
  moved: Map<TensorId, TensorId>,
): MatmulOp | LinearOp {
  const operands = op.inputs.map((id, operand): ReadOperand => {
    // The bias is read by columns, not as a matrix.
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
 * Whether libraries read the operand where it lies: its axis that is innermost in memory is one of the matrix. Other permutes are
 * copied, which costs less than a product over scattered elements.
 */
function readsInPlace({ domain }: Tensor, order: readonly number[]): boolean {
  const axes = withoutReductions(domain.logical);
  const innermost = withoutReductions(domain.allocation ?? domain.logical).at(-1);
  const axis = axes.findIndex((own) => axisParts(domain, own).some(({ id }) => id === innermost?.id));
  const last = axis < 0 ? axes.findIndex(({ id }) => id === innermost?.id) : axis;
  return order.slice(-2).includes(last);
}

/** A permute that also reshards, in two: its operand goes to the place of the result, and is permuted there. */
function movedSource(edit: FusionEdit, permute: PermuteOp, moved: Map<TensorId, TensorId>): TensorId {
  const known = moved.get(permute.output);
  if (known !== undefined) return known;
  const source = at(edit.tensors, at(permute.inputs, 0));
  const result = at(edit.tensors, permute.output);
  const axes = withoutReductions(source.domain.logical);
  const pairs = axisMap(permute, edit.tensors);
  const images = axes.map(
    ({ id }): IterDomain | null => pairs.find(({ producer }) => producer.id === id)?.consumer ?? null,
  );
  const placement = placementOf(result, images);
  // Without a mesh nothing reshards.
  if (placement === null) return source.id;
  const copy = addTensor(edit, source, axes, placement.mesh);
  const stream = images.findIndex((axis) => axis?.parallelType === "Stream");
  moveTo(edit, copy, copy.domain.logical, placement, copy.domain.logical[stream]?.id ?? null);
  edit.tensors[copy.id] = { ...at(edit.tensors, copy.id), memory: result.memory };
  edit.ops.push({ kind: "Set", inputs: [source.id], output: copy.id });
  moved.set(permute.output, copy.id);
  return copy.id;
}

function foldSums(fusion: FusionData, accumulate: boolean): FusionData {
  const producers: Producers = new Map(fusion.ops.map((op) => [op.output, op]));
  const tensors = [...fusion.tensors];
  let { iterDomainCount } = fusion;
  let changed = false;
  const ops = fusion.ops.map((op): Op => {
    const product = op.kind === "Reduction" ? producers.get(at(op.inputs, 0)) : undefined;
    if (op.kind !== "Reduction" || product?.kind !== "Matmul") return op;
    const contracted = at(tensors, product.output).domain.logical.at(-1);
    const chunked = sumOfChunks(op, product, fusion);
    if (contracted?.iterType !== "reduction" || chunked === null) return op;
    const output = at(tensors, op.output);
    if (!accumulate) rejectReducedStream(op, output, chunked, true);
    const axes = cloneAxes([contracted], iterDomainCount, () => "Serial");
    iterDomainCount += axes.length;
    const { logical, loop } = output.domain;
    tensors[output.id] = {
      ...output,
      domain: { ...output.domain, logical: [...logical, ...axes], loop: [...loop, ...axes] },
    };
    changed = true;
    return { ...product, output: output.id };
  });
  return changed ? withoutDeadOps({ ...fusion, tensors, ops, iterDomainCount }) : fusion;
}

/**
 * The reduced axis of a sum over one batch axis, with Stream, of a product that nothing else reads and whose batches no devices share;
 * null for other reductions.
 */
function sumOfChunks(op: ReductionOp, product: MatmulOp, { tensors, ops, outputs }: FusionData): IterDomain | null {
  const [axis, ...others] = op.axes;
  if (op.op !== "sum" || axis === undefined || others.length > 0) return null;
  const reduced = at(tensors, op.output).domain.logical[axis];
  if (reduced?.iterType !== "reduction" || reduced.parallelType !== "Stream") return null;
  const parts = at(tensors, product.output);
  const batch = withoutReductions(parts.domain.logical)[axis];
  const [a, b] = [operandAxes(product, 0, tensors), operandAxes(product, 1, tensors)];
  const isBatch = a.length > 1 && b.length > 1 && axis < Math.max(a.length, b.length) - 2;
  const isShared = axisShards(parts).some((shard) => shard.axis.id === batch?.id);
  const readers = ops.filter(({ inputs }) => inputs.includes(product.output));
  const isAlone = readers.length === 1 && !outputs.includes(product.output);
  return isBatch && !isShared && isAlone ? reduced : null;
}

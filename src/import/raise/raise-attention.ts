/**
 * Attention that a model writes as ops, as one op: `sdpa`. JAX has no such op in StableHLO.
 *
 *   s = matmul(q, k^T) c;  m = where(j <= i, s, -1e38);  e = exp(m - amax(m));  p = e / sum(e);  y = matmul(p, v)
 * becomes
 *   y = sdpa(q, k, v, { causal: "topLeft", scale: c })
 *
 * in any order of axes, with heads that share keys, and with a mask: it is known by its arithmetic, or is added, as other
 * terms of the scores are. Its gradients become `sdpaBackward`. Scores must be as wide as sums are, no other op may read
 * what goes, and no annotation may place it.
 */
import { type FusionBuilder, snapshotFusion } from "../../ir/api/fusion-builder.ts";
import {
  add,
  cast,
  div,
  eq,
  logicalAnd,
  sdpa,
  sdpaBackward,
  type SdpaGradients,
  type SdpaMask,
  type SdpaResult,
  sum,
  where,
} from "../../ir/api/ops.ts";
import { addedMask } from "../../ir/api/ops/compositions/attention.ts";
import { inDType, keepAxes, wide } from "../../ir/api/ops/compositions/compose.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { withoutDeadOps } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { DType } from "../../numerics/dtype.ts";
import { at, once } from "../../support/invariant.ts";
import { readExtents } from "../manual/parts.ts";
import { arranged, type AxisNumbers, restored, sizesOfTensor } from "./axes.ts";
import { attentionAt, type Bias, type MatchedAttention, traced } from "./match-attention.ts";
import { type AttentionGradient, gradientsAt } from "./match-gradients.ts";
import { type MadeOps, madeOpsOf, type OperandAxes } from "./match-softmax.ts";
import { type MadeFor, replaceOps } from "./replace-ops.ts";

/** Changes the ops of the builder, of which those that no output needs go where some attention is found. */
export function raiseAttention(builder: FusionBuilder, madeFor: MadeFor): void {
  const fusion = withoutDeadOps(snapshotFusion(builder));
  const { ops: all } = fusion;
  const graph = madeOpsOf(fusion);
  const names = new Map<TensorId, TensorId>();
  const masks = new Map<string, SdpaMask>();
  const makers = new Map(
    all.flatMap((op) => {
      const attention = op.kind === "Matmul" ? attentionAt(graph, op) : null;
      return attention === null ? [] : makersOf(builder, graph, all, attention, names, masks);
    }),
  );
  replaceOps(builder, all, makers, names, madeFor);
}

/** Whether what the products are made of is theirs alone. */
function isApart(graph: MadeOps, within: ReadonlySet<Op>, products: readonly Op[]): boolean {
  const all = new Set([...within, ...products]);
  return [...all].every(
    (op) =>
      products.includes(op) || (graph.isOwn(op.output) && graph.readersOf(op.output).every((each) => all.has(each))),
  );
}

/** The matmuls that go, each with what makes its result instead. `names`: of results that are made; `masks`: of layers. */
function makersOf(
  builder: FusionBuilder,
  graph: MadeOps,
  ops: readonly Op[],
  attention: MatchedAttention,
  names: ReadonlyMap<TensorId, TensorId>,
  masks: Map<string, SdpaMask>,
): readonly (readonly [Op, () => TensorView])[] {
  const { product, front, row, key, depth, width, extents, seen, scale, bias } = attention;
  const { dtype } = at(graph.tensors, product.output);
  const hasEmptyRows = bias.conditions.length > 0;
  const isAlone = isApart(graph, attention.within, [product]);
  const gradients = isAlone ? null : gradientsAt(graph, ops, attention);
  const g = gradients === null ? null : traced(graph, gradients.g, dtype, extents);
  const found = gradients?.found ?? [];
  const products = [product, ...found.map((each) => each.product)];
  const isWhole = gradients !== null && g !== null && isApart(graph, gradients.within, products);
  if (!isAlone && !(isWhole && found.every((each) => isRoundedTo(graph, each.product.output, dtype)))) return [];
  const view = ({ id, axes }: OperandAxes, order: readonly number[]): TensorView =>
    arranged(new TensorView({ builder, id: names.get(id) ?? id }), axes, order, extents);
  const orders = { q: [...front, row, depth], k: [...front, key, depth], v: [...front, key, width] };
  const results = [...front, row, width];
  const operands = once(
    () => [view(attention.q, orders.q), view(attention.k, orders.k), view(attention.v, orders.v)] as const,
  );
  const mask = (): SdpaMask => {
    const scores = [...front, row, key];
    const name = JSON.stringify([bias, scores]);
    const made =
      masks.get(name) ?? maskOf(bias, (each) => view(each, scores), at(graph.tensors, attention.scores).dtype);
    masks.set(name, made);
    return made;
  };
  const options = once(() => ({ ...seen, scale, ...mask() }));
  const forward = once((): SdpaResult => sdpa(...operands(), options()));
  const output = once(() => (hasEmptyRows ? withMeans(forward(), operands()[2]) : forward().output));
  const backward = once((): SdpaGradients | null => {
    if (g === null) return null;
    const cotangent = view(g, results);
    const { dq, dk, dv } = sdpaBackward(cotangent, ...operands(), forward(), options());
    return { dq, dk, dv: hasEmptyRows ? withMeansOf(dv, cotangent, forward()) : dv };
  });
  const made = (tensor: TensorView, order: readonly number[], axes: AxisNumbers, of: Op): TensorView => {
    const like = at(graph.tensors, of.output);
    const moved = restored(tensor, order, axes, sizesOfTensor(like));
    return moved.dtype === like.dtype ? moved : cast(moved, like.dtype);
  };
  const ofGradient = ({ name, product: own, result }: AttentionGradient): readonly [Op, () => TensorView] => [
    own,
    () => made(backward()?.[name] ?? output(), { dq: orders.q, dk: orders.k, dv: orders.v }[name], result, own),
  ];
  return [[product, () => made(output(), results, attention.result, product)], ...found.map(ofGradient)];
}

/** What is added to the scores, of their dtype. */
function maskOf({ conditions, added }: Bias, view: (of: OperandAxes) => TensorView, dtype: DType): SdpaMask {
  const terms = added.map(view);
  const total = terms.length === 0 ? null : terms.reduce((a, b) => add(a, b));
  if (conditions.length === 0) return total === null ? {} : { mask: total };
  const isShown = conditions.map(view).reduce(logicalAnd);
  return { mask: total === null ? addedMask(isShown, dtype) : where(isShown, total, -Infinity) };
}

// A row that sees no key has equal probabilities in the model, and gives 0 in the op.

/** The output, with the mean of all values where a row sees no key. */
function withMeans({ output, logsumexp }: SdpaResult, v: TensorView): TensorView {
  const keys = [v.rank - 2];
  const mean = inDType(keepAxes(div(sum(wide(v), keys), at(readExtents(v), v.rank - 2)), keys, v), v.dtype);
  return where(isEmpty(logsumexp, output), mean, output);
}

/** The gradient of the values, with what such rows add to that of each key. */
function withMeansOf(dv: TensorView, g: TensorView, { logsumexp }: SdpaResult): TensorView {
  const [values, rows] = [readExtents(dv), readExtents(g)];
  const [keys] = [at(values, dv.rank - 2)];
  const shared = values.flatMap((extent, axis) => (axis === dv.rank - 2 || extent !== rows[axis] ? [axis] : []));
  const own = div(where(isEmpty(logsumexp, g), wide(g), 0), keys);
  return add(dv, inDType(keepAxes(sum(own, shared), shared, g), dv.dtype));
}

/** Of each row, with an axis of extent 1 behind. */
function isEmpty(logsumexp: TensorView, like: TensorView): TensorView {
  return keepAxes(eq(logsumexp, -Infinity), [like.rank - 1], like);
}

/** Whether a tensor has the dtype, or is only read in it. */
function isRoundedTo(graph: MadeOps, id: TensorId, dtype: DType): boolean {
  if (at(graph.tensors, id).dtype === dtype) return true;
  const readers = graph.readersOf(id);
  return (
    readers.length > 0 &&
    readers.every((op) =>
      op.kind === "Cast"
        ? op.to === dtype
        : ["Set", "Permute", "Reshape", "Broadcast", "Squeeze"].includes(op.kind) &&
          isRoundedTo(graph, op.output, dtype),
    )
  );
}

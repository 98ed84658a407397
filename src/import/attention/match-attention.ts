/** Attention among the ops of a Fusion: the products of its parts, and what they are of. */
import type { TensorId } from "../../ir/domain.ts";
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import type { BinaryOp, MatmulOp, Op } from "../../ir/ops/op.ts";
import { accumulatorOf, type DType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { mapped, maskIn } from "../index-forms.ts";
import { type AxisNumbers, axesAfter, axesBefore, type Extents, sizesOfTensor } from "./axes.ts";
import { formOf } from "./mask-forms.ts";
import { type MadeOps, type OperandAxes, operandsOf, softmaxOf, stretched } from "./match-softmax.ts";

export interface Attention {
  /** The matmul of probabilities and values. */
  readonly product: MatmulOp;
  readonly q: OperandAxes;
  readonly k: OperandAxes;
  readonly v: OperandAxes;
  readonly extents: Extents;
  /** Numbers of axes of q: those in front, the rows and the elements of a head. */
  readonly front: readonly number[];
  readonly row: number;
  readonly key: number;
  readonly depth: number;
  /** Of the values. */
  readonly width: number;
  readonly result: AxisNumbers;
  readonly seen: SeenKeys;
  readonly scale: number;
}

/** With what its gradients are found by. */
export interface MatchedAttention extends Attention {
  readonly own: AxisNumbers;
  readonly scores: TensorId;
  readonly powers: TensorId;
  readonly quotient: TensorId;
  readonly scoresProduct: MatmulOp;
  /** What it is made of. */
  readonly within: ReadonlySet<Op>;
}

export function attentionAt(graph: MadeOps, product: MatmulOp): MatchedAttention | null {
  const [a, b] = product.inputs;
  if (a === undefined || b === undefined || a === b) return null;
  return attentionOf(graph, product, 0) ?? attentionOf(graph, product, 1);
}

/** Of the matmul whose operand at `side` are the probabilities. */
function attentionOf(graph: MadeOps, product: MatmulOp, side: 0 | 1): MatchedAttention | null {
  const { tensors } = graph;
  const within = new Set<Op>([product]);
  const softmax = softmaxOf(graph, at(product.inputs, side), within);
  if (softmax === null) return null;
  const { key, own, extents } = softmax;
  const sizes = sizesOfTensor(at(tensors, softmax.scores));
  const moved = softmax.views.reduce<AxisNumbers | null>(
    (axes, op) => (axes === null ? null : axesAfter(op, axes, at(tensors, op.output), extents)),
    own,
  );
  const scores = scoresOf(graph, { id: softmax.scores, axes: own }, within, extents);
  if (moved === null || scores === null) return null;
  // Numbers of further axes: elements of heads of q and k, those of v, and rows if there is one.
  const [depth, width, one] = [sizes.length, sizes.length + 1, sizes.length + 2];
  const values = operandsOf(graph, product, side, moved, width, extents);
  const contracted = at(moved, side === 0 ? moved.length - 1 : moved.length - 2);
  const [a, b] = factorsOf(graph, scores, depth, extents);
  if (values === null || contracted.length !== 1 || contracted[0] !== key) return null;
  const has = ({ axes }: OperandAxes, axis: number): boolean => axes.flat().includes(axis);
  const [q, k] = has(a, key) ? [b, a] : [a, b];
  const others = own.flat().filter((axis) => axis !== key);
  const isPaired = others.every((axis) => has(q, axis) && has(k, axis) === has(values.operand, axis));
  if (!isPaired || !has(k, key) || has(q, key)) return null;
  const rows = others.filter((axis) => !has(k, axis));
  const seen = seenBy(graph, scores.mask, { sizes, extents }, key, rows);
  if (seen === null) return null;
  const { dtype, mesh } = at(tensors, product.output);
  const [ownQ, ownK, ownV] = [q, k, values.operand].map((each) => traced(graph, each, dtype, extents));
  if (!ownQ || !ownK || !ownV || mesh !== null || scores.dtype !== accumulatorOf(dtype)) return null;
  const row = seen.row ?? one;
  return {
    ...softmax,
    scoresProduct: scores.product,
    within,
    product,
    q: ownQ,
    k: ownK,
    v: ownV,
    extents,
    // Heads that share one of keys follow each other.
    front: [...others.filter((axis) => has(k, axis)), ...rows.filter((axis) => axis !== row)],
    row,
    key,
    depth,
    width,
    result: values.result,
    seen: seen.keys,
    scale: scores.scale,
  };
}

interface Scores {
  readonly product: MatmulOp;
  /** Of its result. */
  readonly axes: AxisNumbers;
  readonly dtype: DType;
  readonly scale: number;
  readonly mask: OperandAxes | null;
}

/** Masked scores are at most this, as frameworks have it: their exponentials are 0. */
const hidden = -1e9;

/** The matmul that the scores come from, and what is done to them on the way. */
function scoresOf(graph: MadeOps, { id, axes }: OperandAxes, within: Set<Op>, extents: Extents): Scores | null {
  const { tensors } = graph;
  let [current, own]: [TensorId, AxisNumbers] = [id, axes];
  let scale = 1;
  let mask: OperandAxes | null = null;
  for (;;) {
    const op: Op | undefined = graph.makers.get(current);
    if (op === undefined) return null;
    within.add(op);
    if (op.kind === "Matmul") {
      return { product: op, axes: own, dtype: at(tensors, op.output).dtype, scale, mask };
    }
    if (op.kind === "Cast") return null;
    const factor = op.kind === "Binary" ? factorIn(graph, op) : null;
    if (factor !== null) {
      scale *= factor.by;
      current = factor.of;
    } else if (op.kind === "Ternary" && op.op === "where" && mask === null) {
      const [condition, chosen, other] = op.inputs;
      const value = op.scalar === undefined ? constantIn(graph, other) : Number(op.scalar.text);
      if (op.scalar?.position === 1 || condition === undefined || chosen === undefined) return null;
      if (value === null || !(value <= hidden)) return null;
      mask = { id: condition, axes: stretched(graph, condition, own) };
      current = chosen;
    } else {
      const [input] = op.inputs;
      const before = input === undefined ? null : axesBefore(op, own, at(tensors, input), extents);
      if (input === undefined || before === null) return null;
      [current, own] = [input, before];
      continue;
    }
    own = stretched(graph, current, own);
  }
}

/** The scores of `x c` or `x / c`, for a number c above 0. */
function factorIn(
  graph: MadeOps,
  { op, inputs, scalar }: BinaryOp,
): { readonly of: TensorId; readonly by: number } | null {
  const [a, b] = inputs;
  if (a === undefined || (op !== "mul" && op !== "div") || (op === "div" && scalar?.position === 0)) return null;
  const second = scalar === undefined ? constantIn(graph, b) : Number(scalar.text);
  const first = second === null && op === "mul" ? constantIn(graph, a) : null;
  const number = second ?? first;
  const of = second === null ? b : a;
  if (number === null || of === undefined || !(number > 0 && number < Infinity)) return null;
  return { of, by: op === "mul" ? number : 1 / number };
}

/** The one number that a tensor consists of; null for others. */
function constantIn(graph: MadeOps, id: TensorId | undefined): number | null {
  const op = id === undefined ? undefined : graph.makers.get(id);
  if (op === undefined) return null;
  if (op.kind === "Full") return Number(op.value);
  return op.kind === "Broadcast" || op.kind === "Expand" || op.kind === "Reshape"
    ? constantIn(graph, op.inputs[0])
    : null;
}

/** The operands of the matmul of scores, in which `depth` is contracted. */
function factorsOf(
  { tensors }: MadeOps,
  { product, axes }: Scores,
  depth: number,
  extents: Extents,
): readonly [OperandAxes, OperandAxes] {
  const [a, b] = [at(product.inputs, 0), at(product.inputs, 1)];
  const [left, right] = [sizesOfTensor(at(tensors, a)), sizesOfTensor(at(tensors, b))];
  extents.set(depth, at(left, left.length - 1));
  // Leading axes may be absent.
  const batch = (shape: readonly number[]): AxisNumbers =>
    shape.slice(0, -2).map((size, i) => (size === 1 ? [] : at(axes, axes.length - shape.length + i)));
  return [
    { id: a, axes: [...batch(left), at(axes, axes.length - 2), [depth]] },
    { id: b, axes: [...batch(right), [depth], at(axes, axes.length - 1)] },
  ];
}

/** The tensor of this dtype that the operand has its elements from. */
export function traced(graph: MadeOps, operand: OperandAxes, dtype: DType, extents: Extents): OperandAxes | null {
  const { tensors } = graph;
  let [found, current]: [OperandAxes | null, OperandAxes] = [null, operand];
  for (;;) {
    const tensor = at(tensors, current.id);
    if (tensor.dtype === dtype) found = current;
    const op = graph.makers.get(current.id);
    const [input] = op?.inputs ?? [];
    if (op === undefined || input === undefined || tensor.mesh !== null) return found;
    const source = at(tensors, input);
    const isRounding = op.kind === "Cast" && accumulatorOf(source.dtype) !== tensor.dtype;
    const before = isRounding || op.kind === "Expand" ? null : axesBefore(op, current.axes, source, extents);
    if (before === null) return found;
    current = { id: input, axes: before };
  }
}

/** What rows see, and which of the axes the rows are; null for a mask of another form. */
function seenBy(
  graph: MadeOps,
  mask: OperandAxes | null,
  { sizes, extents }: { readonly sizes: readonly number[]; readonly extents: Extents },
  key: number,
  rows: readonly number[],
): { readonly keys: SeenKeys; readonly row: number | null } | null {
  const longest = rows.reduce<number | null>(
    (most, axis) => (most !== null && at(sizes, most) >= at(sizes, axis) ? most : axis),
    null,
  );
  if (mask === null) return { keys: { causal: null, window: null }, row: longest };
  const form = formOf({ ...graph, sizes, extents }, mask.id, mask.axes);
  if (form === null) return null;
  const counted = rows.filter((axis) => form.sums.some(({ steps }) => steps[axis] !== 0));
  const [row = longest] = counted;
  const isOther = (axis: number): boolean => axis !== row && axis !== key;
  if (form.sums.some(({ steps }) => steps.some((step, axis) => step !== 0 && isOther(axis)))) return null;
  const rowSize = row === null ? 1 : at(sizes, row);
  const plain = mapped(form, ({ offset, steps }) => ({
    offset,
    steps: [row === null ? 0 : at(steps, row), at(steps, key)],
  }));
  const keys = maskIn(plain, [rowSize, at(sizes, key)]);
  // A row that sees no key is 0 in one op, and a mean of all values in ops.
  const isEmpty =
    keys === null ||
    (keys.causal === "bottomRight" ? rowSize > at(sizes, key) : keys.window !== null && rowSize > at(sizes, key));
  return isEmpty ? null : { keys, row };
}

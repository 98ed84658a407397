/** Attention among the ops of a Fusion: the products of its parts, and what they are of. */
import type { TensorId } from "../../ir/domain.ts";
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import type { BinaryOp, MatmulOp, Op } from "../../ir/ops/op.ts";
import { accumulatorOf, type DType, dtypes } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { type IndexForm, knownConditions, mapped, maskIn } from "../index-forms.ts";
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
  readonly bias: Bias;
}

/** What hides keys, or is added to the scores, beside what rows see by their positions. */
export interface Bias {
  /**
   * All must hold; where one does not, the model writes a large negative number, so that the probabilities of a row
   * without a key are equal.
   */
  readonly conditions: readonly OperandAxes[];
  readonly added: readonly OperandAxes[];
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
  const scores = scoresOf(graph, { id: softmax.scores, axes: own }, { scale: 1, hasSum: false }, extents);
  if (moved === null || scores === null) return null;
  for (const op of scores.within) within.add(op);
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
  // What is hidden by a smaller number than others are would be seen beside these.
  const isOrdered = (scores.hidden ?? -Infinity) <= absorbing || !scores.added.some((term) => mayHide(graph, term.id));
  if (!isOrdered) return null;
  const { seen, conditions } = seenBy(graph, scores.conditions, { sizes, extents }, key, rows);
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
    bias: { conditions, added: scores.added },
  };
}

interface Scores extends Bias {
  readonly product: MatmulOp;
  /** Of its result. */
  readonly axes: AxisNumbers;
  readonly dtype: DType;
  readonly scale: number;
  /** What is written where a condition does not hold. */
  readonly hidden: number | null;
  readonly within: readonly Op[];
}

/** Masked scores are at most this, as frameworks have it: their exponentials are 0. */
const hidden = -1e9;
/** A sum of it and a score is the number itself. */
const absorbing = -1e30;

/** What is done to the scores after a step: by what they are multiplied, and whether something is added. */
interface After {
  readonly scale: number;
  readonly hasSum: boolean;
}

/** The matmul that the scores come from, and what is done to them on the way. */
function scoresOf(graph: MadeOps, { id, axes }: OperandAxes, after: After, extents: Extents): Scores | null {
  const { tensors } = graph;
  const op = graph.makers.get(id);
  if (op === undefined) return null;
  if (op.kind === "Matmul") {
    const { dtype } = at(tensors, id);
    return { product: op, axes, dtype, scale: after.scale, conditions: [], added: [], hidden: null, within: [op] };
  }
  const before = (of: TensorId, then = after, own = stretched(graph, of, axes)): Scores | null => {
    const found = op.kind === "Cast" ? null : scoresOf(graph, { id: of, axes: own }, then, extents);
    return found && { ...found, within: [...found.within, op] };
  };
  const factor = op.kind === "Binary" ? factorIn(graph, op) : null;
  if (factor !== null) return before(factor.of, { ...after, scale: after.scale * factor.by });
  const [first, second] = op.inputs;
  if (op.kind === "Binary" && op.op === "add" && first !== undefined && second !== undefined && after.scale === 1) {
    for (const [of, other] of [
      [first, second],
      [second, first],
    ] as const) {
      const found = before(of, { ...after, hasSum: true });
      const term = { id: other, axes: stretched(graph, other, axes) };
      if (found !== null && at(tensors, other).dtype === found.dtype)
        return { ...found, added: [...found.added, term] };
    }
    return null;
  }
  if (op.kind === "Ternary" && op.op === "where") {
    const value = op.scalar === undefined ? constantIn(graph, op.inputs[2]) : Number(op.scalar.text);
    if (op.scalar?.position === 1 || first === undefined || second === undefined) return null;
    if (value === null || !(value <= (after.hasSum ? absorbing : hidden))) return null;
    const found = before(second);
    const condition = { id: first, axes: stretched(graph, first, axes) };
    if (found === null || (found.hidden ?? value) !== value) return null;
    return { ...found, hidden: value, conditions: [condition, ...found.conditions] };
  }
  const own = first === undefined ? null : axesBefore(op, axes, at(tensors, first), extents);
  return first === undefined || own === null ? null : before(first, after, own);
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

/** From it on, numbers that are added are masks. */
const low = -1e4;

/** Whether what is added is made of such numbers. */
export function mayHide({ tensors, makers }: MadeOps, first: TensorId): boolean {
  const [seen, next] = [new Set<TensorId>(), [first]];
  for (let id = next.pop(); id !== undefined; id = next.pop()) {
    const op = makers.get(id);
    if (op === undefined || seen.has(id) || dtypes[at(tensors, id).dtype].family !== "float") continue;
    seen.add(id);
    const numbers = [op.kind === "Full" ? op.value : null, "scalar" in op ? op.scalar?.text : null];
    if (numbers.some((number) => Number(number ?? 0) <= low)) return true;
    next.push(...op.inputs);
  }
  return false;
}

interface SeenByRows {
  readonly keys: SeenKeys;
  /** Which of the axes the rows are; null where there is one row. */
  readonly row: number | null;
}

/** What rows see by their positions, and the conditions that are left. */
function seenBy(
  graph: MadeOps,
  masks: readonly OperandAxes[],
  { sizes, extents }: { readonly sizes: readonly number[]; readonly extents: Extents },
  key: number,
  rows: readonly number[],
): { readonly seen: SeenByRows; readonly conditions: readonly OperandAxes[] } {
  const all = masks.flatMap((mask) => conditionsIn(graph, mask, extents));
  const scope = { ...graph, sizes, extents };
  const { form, rest } = knownConditions(all, ({ id, axes }) => formOf(scope, id, axes), sizes.length);
  const seen = form && seenIn(form, sizes, key, rows);
  if (seen !== null) return { seen, conditions: rest };
  return { seen: { keys: { causal: null, window: null }, row: longestOf(rows, sizes) }, conditions: all };
}

/** The conditions that a condition joins. */
function conditionsIn(graph: MadeOps, condition: OperandAxes, extents: Extents): readonly OperandAxes[] {
  const op = graph.makers.get(condition.id);
  const [input] = op?.inputs ?? [];
  if (op === undefined || input === undefined) return [condition];
  const of = (id: TensorId, axes: AxisNumbers): readonly OperandAxes[] => conditionsIn(graph, { id, axes }, extents);
  if (op.kind === "Binary" && op.op === "logicalAnd" && op.scalar === undefined) {
    return op.inputs.flatMap((id) => of(id, stretched(graph, id, condition.axes)));
  }
  const before = op.kind === "Cast" ? null : axesBefore(op, condition.axes, at(graph.tensors, input), extents);
  return before === null ? [condition] : of(input, before);
}

/** Null for a mask of another form, and for one that leaves rows without a key. */
function seenIn(form: IndexForm, sizes: readonly number[], key: number, rows: readonly number[]): SeenByRows | null {
  const counted = rows.filter((axis) => form.sums.some(({ steps }) => steps[axis] !== 0));
  const [row = longestOf(rows, sizes)] = counted;
  const isOther = (axis: number): boolean => axis !== row && axis !== key;
  if (form.sums.some(({ steps }) => steps.some((step, axis) => step !== 0 && isOther(axis)))) return null;
  const rowSize = row === null ? 1 : at(sizes, row);
  const plain = mapped(form, ({ offset, steps }) => ({
    offset,
    steps: [row === null ? 0 : at(steps, row), at(steps, key)],
  }));
  const keys = maskIn(plain, [rowSize, at(sizes, key)]);
  if (keys === null) return null;
  const isEmpty =
    keys.causal === "bottomRight" ? rowSize > at(sizes, key) : keys.window !== null && rowSize > at(sizes, key);
  return isEmpty ? null : { keys, row };
}

function longestOf(axes: readonly number[], sizes: readonly number[]): number | null {
  return axes.reduce<number | null>(
    (most, axis) => (most !== null && at(sizes, most) >= at(sizes, axis) ? most : axis),
    null,
  );
}

/**
 * Attention that a model writes as ops, as one op: `sdpa`. JAX has no such op in StableHLO.
 *
 *   s = matmul(q, k^T) c;  m = where(j <= i, s, -1e38);  e = exp(m - amax(m));  p = e / sum(e);  y = matmul(p, v)
 * becomes
 *   y = sdpa(q, k, v, { causal: "topLeft", scale: c })
 *
 * in any order of axes, with heads that share keys, and with a mask that is known by its arithmetic. Scores must be as
 * wide as sums are, no other op may read what goes, and no annotation may place it.
 */
import type { FusionBuilder } from "../../ir/api/fusion-builder.ts";
import { sdpa } from "../../ir/api/ops.ts";
import { TensorView } from "../../ir/api/tensor-view.ts";
import type { TensorId } from "../../ir/domain.ts";
import { type BinaryOp, type MatmulOp, type Op, outputsOf, type ReductionOp, renamedOp } from "../../ir/ops/op.ts";
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import { accumulatorOf, type DType, dtypes } from "../../numerics/dtype.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { mapped, maskIn } from "../index-forms.ts";
import { arranged, type AxisNumbers, axesAfter, axesBefore, type Extents, restored, sizesOfTensor } from "./axes.ts";
import { formOf, type MadeTensors } from "./mask-forms.ts";

/** Changes the ops of the builder. `madeFor`: makes tensors that come from where this one does. */
export function raiseAttention(builder: FusionBuilder, madeFor: (id: TensorId, make: () => void) => void): void {
  const all = [...builder.ops];
  const { tensors } = builder;
  const makers = new Map(all.flatMap((op) => outputsOf(op).map((id) => [id, op] as const)));
  const readers = new Map<TensorId, Op[]>();
  for (const op of all) for (const id of op.inputs) pushTo(readers, id, op);
  const outputs = new Set(builder.outputs);
  const graph: Graph = {
    tensors,
    makers,
    isOwn: (id, within) =>
      tensors[id]?.mesh === null && !outputs.has(id) && (readers.get(id) ?? []).every((op) => within.has(op)),
  };
  const found = all.flatMap((op) => (op.kind === "Matmul" ? (attentionAt(graph, op) ?? []) : []));
  if (found.length === 0) return;
  const byProduct = new Map(found.map((each) => [each.product, each]));
  const names = new Map<TensorId, TensorId>();
  builder.ops.length = 0;
  builder.snapshot = null;
  for (const op of all) {
    const attention = op.kind === "Matmul" ? byProduct.get(op) : undefined;
    if (attention === undefined) builder.ops.push(renamedOp(op, (id) => names.get(id) ?? id));
    else {
      madeFor(op.output, () => {
        names.set(op.output, build(builder, attention, names).id);
      });
    }
  }
  builder.outputs.forEach((id, i) => {
    builder.outputs[i] = names.get(id) ?? id;
  });
}

interface Graph extends MadeTensors {
  /** Whether a tensor is read by these ops alone, and no annotation places it. */
  readonly isOwn: (id: TensorId, within: ReadonlySet<Op>) => boolean;
}

interface Operand {
  readonly id: TensorId;
  readonly axes: AxisNumbers;
}

interface Attention {
  /** The matmul of probabilities and values. */
  readonly product: MatmulOp;
  readonly q: Operand;
  readonly k: Operand;
  readonly v: Operand;
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

function build(builder: FusionBuilder, attention: Attention, names: ReadonlyMap<TensorId, TensorId>): TensorView {
  const { front, row, key, depth, width, extents, seen, scale } = attention;
  const product = at(builder.tensors, attention.product.output);
  const view = ({ id, axes }: Operand, order: readonly number[]): TensorView => {
    const tensor = new TensorView({ builder, id: names.get(id) ?? id });
    return arranged(tensor, axes, order, extents);
  };
  const { output } = sdpa(
    view(attention.q, [...front, row, depth]),
    view(attention.k, [...front, key, depth]),
    view(attention.v, [...front, key, width]),
    { ...seen, scale },
  );
  return restored(output, [...front, row, width], attention.result, sizesOfTensor(product));
}

function attentionAt(graph: Graph, product: MatmulOp): Attention | null {
  const [a, b] = product.inputs;
  if (a === undefined || b === undefined || a === b) return null;
  return attentionOf(graph, product, 0) ?? attentionOf(graph, product, 1);
}

/** Of the matmul whose operand at `side` are the probabilities. */
function attentionOf(graph: Graph, product: MatmulOp, side: 0 | 1): Attention | null {
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
  const values = valuesOf(graph, product, side, moved, [key, width], extents);
  const [a, b] = factorsOf(graph, scores, depth, extents);
  if (values === null) return null;
  const has = ({ axes }: Operand, axis: number): boolean => axes.flat().includes(axis);
  const [q, k] = has(a, key) ? [b, a] : [a, b];
  const others = own.flat().filter((axis) => axis !== key);
  const isPaired = others.every((axis) => has(q, axis) && has(k, axis) === has(values.operand, axis));
  if (!isPaired || !has(k, key) || has(q, key)) return null;
  const rows = others.filter((axis) => !has(k, axis));
  const seen = seenBy(graph, scores.mask, { sizes, extents }, key, rows);
  if (seen === null) return null;
  const isApart = [...within].every((op) => op === product || graph.isOwn(op.output, within));
  const { dtype, mesh } = at(tensors, product.output);
  const [ownQ, ownK, ownV] = [q, k, values.operand].map((each) => traced(graph, each, dtype, extents));
  if (!ownQ || !ownK || !ownV || !isApart || mesh !== null || scores.dtype !== accumulatorOf(dtype)) return null;
  const row = seen.row ?? one;
  return {
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

/** The maker of a tensor, if it has this kind. */
function makerOf<K extends Op["kind"]>({ makers }: Graph, id: TensorId | undefined, kind: K): OpOf<K> | null {
  const op = id === undefined ? undefined : makers.get(id);
  return op !== undefined && isKind(op, kind) ? op : null;
}

type OpOf<K extends Op["kind"]> = Extract<Op, { readonly kind: K }>;

function isKind<K extends Op["kind"]>(op: Op, kind: K): op is OpOf<K> {
  return op.kind === kind;
}

/** The softmax of `scores` along the axis of number `key`, and the ops that move its elements on to `id`. */
interface Softmax {
  readonly scores: TensorId;
  readonly key: number;
  readonly views: readonly Op[];
  /** Those of its axes, in order. */
  readonly own: AxisNumbers;
  readonly extents: Extents;
}

function softmaxOf(graph: Graph, id: TensorId, within: Set<Op>): Softmax | null {
  const { tensors } = graph;
  const views: Op[] = [];
  let quotient = id;
  for (let op = graph.makers.get(id); op !== undefined && op.kind !== "Binary"; op = graph.makers.get(quotient)) {
    const isFloat = dtypes[at(tensors, op.inputs[0] ?? op.output).dtype].family === "float";
    if (op.inputs.length !== 1 || !isFloat) return null;
    views.unshift(op);
    [quotient = quotient] = op.inputs;
  }
  const division = makerOf(graph, quotient, "Binary");
  const powers = makerOf(graph, division?.inputs[0], "Unary");
  const distance = makerOf(graph, powers?.inputs[0], "Binary");
  if (division?.op !== "div" || powers?.op !== "exp" || distance?.op !== "sub") return null;
  const [scores, most] = distance.inputs;
  const [, total] = division.inputs;
  if (scores === undefined || most === undefined || total === undefined) return null;
  const sizes = sizesOfTensor(at(tensors, scores));
  if (!sizes.every((size) => size > 0)) return null;
  const own: AxisNumbers = sizes.map((size, axis) => (size === 1 ? [] : [axis]));
  const extents: Extents = new Map(sizes.entries());
  const sum = reductionOf(graph, total, "sum", { id: powers.output, axes: own }, extents, within);
  const largest = reductionOf(graph, most, "amax", { id: scores, axes: own }, extents, within);
  if (sum === null || sum !== largest) return null;
  for (const op of [...views, division, powers, distance]) within.add(op);
  return { scores, key: sum, views, own, extents };
}

/** The number of the one axis of `of` along which `id` is the reduction, which has the extent 1 there. */
function reductionOf(
  graph: Graph,
  id: TensorId,
  name: ReductionOp["op"],
  of: Operand,
  extents: Extents,
  within: Set<Op>,
): number | null {
  const { tensors } = graph;
  const shape = sizesOfTensor(at(tensors, id));
  const gone = of.axes.flatMap((own, axis) => (own.length > 0 && shape[axis] === 1 ? own : []));
  const [key] = gone;
  if (shape.length !== of.axes.length || gone.length !== 1 || key === undefined) return null;
  let current: Operand = { id, axes: of.axes.map((own) => (own.includes(key) ? [] : own)) };
  let op = graph.makers.get(id);
  while (op !== undefined && op.kind !== "Reduction") {
    // A maximum with -Infinity is what it is of.
    const isNone = op.kind === "Binary" && op.op === "maximum" && op.scalar?.text === "-Infinity";
    const input = at(op.inputs, 0);
    const before = isNone ? current.axes : axesBefore(op, current.axes, at(tensors, input), extents);
    if (before === null || op.kind === "Cast") return null;
    within.add(op);
    current = { id: input, axes: before };
    op = graph.makers.get(input);
  }
  const [axis] = op?.axes ?? [];
  if (op?.op !== name || axis === undefined || op.axes.length > 1) return null;
  within.add(op);
  // Of the tensor itself, or of one that it has its elements from.
  const reduced = { id: at(op.inputs, 0), axes: current.axes.toSpliced(axis, 0, [key]) };
  for (let source: Operand | null = of; source !== null; source = sourceOf(graph, source, extents)) {
    if (source.id === reduced.id) return JSON.stringify(source.axes) === JSON.stringify(reduced.axes) ? key : null;
  }
  return null;
}

/** What the tensor has its elements from; null if an op computes them. */
function sourceOf(graph: Graph, { id, axes }: Operand, extents: Extents): Operand | null {
  const op = graph.makers.get(id);
  const [input] = op?.inputs ?? [];
  const before =
    op === undefined || input === undefined ? null : axesBefore(op, axes, at(graph.tensors, input), extents);
  return before === null || input === undefined || op?.kind === "Cast" ? null : { id: input, axes: before };
}

interface Scores {
  readonly product: MatmulOp;
  /** Of its result. */
  readonly axes: AxisNumbers;
  readonly dtype: DType;
  readonly scale: number;
  readonly mask: Operand | null;
}

/** Masked scores are at most this, as frameworks have it: their exponentials are 0. */
const hidden = -1e9;

/** The matmul that the scores come from, and what is done to them on the way. */
function scoresOf(graph: Graph, { id, axes }: Operand, within: Set<Op>, extents: Extents): Scores | null {
  const { tensors } = graph;
  let [current, own]: [TensorId, AxisNumbers] = [id, axes];
  let scale = 1;
  let mask: Operand | null = null;
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

/** The axes of an operand of an elementwise op: those of one element repeat. */
function stretched({ tensors }: Graph, id: TensorId, axes: AxisNumbers): AxisNumbers {
  const shape = sizesOfTensor(at(tensors, id));
  return axes.map((own, axis) => (shape[axis] === 1 ? [] : own));
}

/** The scores of `x c` or `x / c`, for a number c above 0. */
function factorIn(
  graph: Graph,
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
function constantIn(graph: Graph, id: TensorId | undefined): number | null {
  const op = id === undefined ? undefined : graph.makers.get(id);
  if (op === undefined) return null;
  if (op.kind === "Full") return Number(op.value);
  return op.kind === "Broadcast" || op.kind === "Expand" || op.kind === "Reshape"
    ? constantIn(graph, op.inputs[0])
    : null;
}

/** The operands of the matmul of scores, in which `depth` is contracted. */
function factorsOf(
  { tensors }: Graph,
  { product, axes }: Scores,
  depth: number,
  extents: Extents,
): readonly [Operand, Operand] {
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

/** The values, and the axes of their product with probabilities that have the axes `moved`. */
function valuesOf(
  { tensors }: Graph,
  product: MatmulOp,
  side: 0 | 1,
  moved: AxisNumbers,
  [key, width]: readonly [number, number],
  extents: Extents,
): { readonly operand: Operand; readonly result: AxisNumbers } | null {
  const id = at(product.inputs, 1 - side);
  const shape = sizesOfTensor(at(tensors, id));
  const rank = moved.length;
  const [contracted, free] = side === 1 ? [rank - 2, rank - 1] : [rank - 1, rank - 2];
  const isKey = moved[contracted]?.length === 1 && moved[contracted][0] === key;
  const lacks = moved.slice(0, -2).some((own, axis) => own.length === 0 && shape[axis] !== 1);
  if (shape.length !== rank || !isKey || lacks) return null;
  const batch = moved.slice(0, -2);
  const own = batch.map((axes, axis) => (shape[axis] === 1 ? [] : axes));
  extents.set(width, at(shape, side === 1 ? rank - 2 : rank - 1));
  const rows = at(moved, free);
  return side === 1
    ? { operand: { id, axes: [...own, [width], [key]] }, result: [...batch, [width], rows] }
    : { operand: { id, axes: [...own, [key], [width]] }, result: [...batch, rows, [width]] };
}

/** The tensor of this dtype that the operand has its elements from. */
function traced(graph: Graph, operand: Operand, dtype: DType, extents: Extents): Operand | null {
  const { tensors } = graph;
  let [found, current]: [Operand | null, Operand] = [null, operand];
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
  graph: Graph,
  mask: Operand | null,
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

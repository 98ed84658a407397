/** The softmax that probabilities of attention come from, as ops of a Fusion. */
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type MatmulOp, type Op, outputsOf, type ReductionOp } from "../../ir/ops/op.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { at, pushTo } from "../../support/invariant.ts";
import { type AxisNumbers, axesBefore, type Extents, sizesOfTensor } from "./axes.ts";
import type { MadeTensors } from "./mask-forms.ts";

export interface MadeOps extends MadeTensors {
  readonly readersOf: (id: TensorId) => readonly Op[];
  /** Whether a tensor is no output, and no annotation places it. */
  readonly isOwn: (id: TensorId) => boolean;
}

export function madeOpsOf({ ops, tensors, outputs }: Pick<FusionData, "ops" | "tensors" | "outputs">): MadeOps {
  const readers = new Map<TensorId, Op[]>();
  for (const op of ops) for (const id of op.inputs) pushTo(readers, id, op);
  return {
    tensors,
    makers: new Map(ops.flatMap((op) => outputsOf(op).map((id) => [id, op] as const))),
    readersOf: (id) => readers.get(id) ?? [],
    isOwn: (id) => tensors[id]?.mesh === null && !outputs.includes(id),
  };
}

export interface OperandAxes {
  readonly id: TensorId;
  readonly axes: AxisNumbers;
}

/** The maker of a tensor, if it has this kind. */
function makerOf<K extends Op["kind"]>({ makers }: MadeOps, id: TensorId | undefined, kind: K): OpOf<K> | null {
  const op = id === undefined ? undefined : makers.get(id);
  return op !== undefined && isKind(op, kind) ? op : null;
}

type OpOf<K extends Op["kind"]> = Extract<Op, { readonly kind: K }>;

function isKind<K extends Op["kind"]>(op: Op, kind: K): op is OpOf<K> {
  return op.kind === kind;
}

/** The softmax of `scores` along the axis of number `key`, and the ops that move its elements on to `id`. */
export interface Softmax {
  readonly scores: TensorId;
  readonly key: number;
  readonly views: readonly Op[];
  /** Those of its axes, in order. */
  readonly own: AxisNumbers;
  readonly extents: Extents;
  /** The exponentials, and the probabilities. */
  readonly powers: TensorId;
  readonly quotient: TensorId;
}

export function softmaxOf(graph: MadeOps, id: TensorId, within: Set<Op>): Softmax | null {
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
  return { scores, key: sum, views, own, extents, powers: powers.output, quotient };
}

/** The number of the one axis of `of` along which `id` is the reduction, which has the extent 1 there. */
function reductionOf(
  graph: MadeOps,
  id: TensorId,
  name: ReductionOp["op"],
  of: OperandAxes,
  extents: Extents,
  within: Set<Op>,
): number | null {
  const { tensors } = graph;
  const shape = sizesOfTensor(at(tensors, id));
  const gone = of.axes.flatMap((own, axis) => (own.length > 0 && shape[axis] === 1 ? own : []));
  const [key] = gone;
  if (shape.length !== of.axes.length || gone.length !== 1 || key === undefined) return null;
  let current: OperandAxes = { id, axes: of.axes.map((own) => (own.includes(key) ? [] : own)) };
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
  for (let source: OperandAxes | null = of; source !== null; source = sourceOf(graph, source, extents)) {
    if (source.id === reduced.id) return JSON.stringify(source.axes) === JSON.stringify(reduced.axes) ? key : null;
  }
  return null;
}

/** What the tensor has its elements from; null if an op computes them. */
function sourceOf(graph: MadeOps, { id, axes }: OperandAxes, extents: Extents): OperandAxes | null {
  const op = graph.makers.get(id);
  const [input] = op?.inputs ?? [];
  const before =
    op === undefined || input === undefined ? null : axesBefore(op, axes, at(graph.tensors, input), extents);
  return before === null || input === undefined || op?.kind === "Cast" ? null : { id: input, axes: before };
}

/** The axes of an operand of an elementwise op: those of one element repeat. */
export function stretched({ tensors }: MadeOps, id: TensorId, axes: AxisNumbers): AxisNumbers {
  const shape = sizesOfTensor(at(tensors, id));
  return axes.map((own, axis) => (shape[axis] === 1 ? [] : own));
}

/** The operand itself, or what it has its elements from, also in a narrower dtype, or stretched. */
export function rootOf(graph: MadeOps, operand: OperandAxes, extents: Extents): OperandAxes {
  for (let current = operand; ;) {
    const op = graph.makers.get(current.id);
    const [input] = op?.inputs ?? [];
    if (op === undefined || input === undefined) return current;
    const before = axesBefore(op, current.axes, at(graph.tensors, input), extents);
    if (before === null) return current;
    current = { id: input, axes: before };
  }
}

/**
 * Of a matmul whose operand at `side` has these axes: the other operand, whose free axis gets the number `free`, and the
 * axes of the result.
 */
export function operandsOf(
  { tensors }: MadeOps,
  product: MatmulOp,
  side: 0 | 1,
  axes: AxisNumbers,
  free: number,
  extents: Extents,
): { readonly operand: OperandAxes; readonly result: AxisNumbers } | null {
  const id = at(product.inputs, 1 - side);
  const shape = sizesOfTensor(at(tensors, id));
  const rank = axes.length;
  const batch = axes.slice(0, -2);
  if (shape.length !== rank || batch.some((own, axis) => own.length === 0 && shape[axis] !== 1)) return null;
  const own = batch.map((each, axis) => (shape[axis] === 1 ? [] : each));
  const [rows, contracted] =
    side === 0 ? [at(axes, rank - 2), at(axes, rank - 1)] : [at(axes, rank - 1), at(axes, rank - 2)];
  extents.set(free, at(shape, side === 1 ? rank - 2 : rank - 1));
  return side === 1
    ? { operand: { id, axes: [...own, [free], contracted] }, result: [...batch, [free], rows] }
    : { operand: { id, axes: [...own, contracted, [free]] }, result: [...batch, rows, [free]] };
}

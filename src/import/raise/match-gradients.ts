/**
 * The gradients of attention among the ops of a Fusion. With P the probabilities and dP = g v^T,
 *
 *   dv = P^T g    dq = dS k    dk = dS^T q    where    dS = P (dP - sum(P dP)) c
 *
 * What a framework derives is dS in another form, as in e (dP / z - sum(dP e / z^2)). So dS is computed at a few points
 * of small extents, from the ops and from that formula, and compared.
 */
import type { TensorId } from "../../ir/domain.ts";
import type { MatmulOp, Op } from "../../ir/ops/op.ts";
import { at } from "../../support/invariant.ts";
import { createRandom } from "../../support/random.ts";
import { type AxisNumbers, axesAfter, axesBefore, sizesOfTensor } from "./axes.ts";
import { type MatchedAttention, mayHide } from "./match-attention.ts";
import { type MadeOps, type OperandAxes, operandsOf, rootOf, stretched } from "./match-softmax.ts";

export type GradientName = "dq" | "dk" | "dv";

export interface AttentionGradient {
  readonly name: GradientName;
  readonly product: MatmulOp;
  /** Of the product. */
  readonly result: AxisNumbers;
}

export interface AttentionGradients {
  readonly g: OperandAxes;
  readonly found: readonly AttentionGradient[];
  /** All that goes, but the products. */
  readonly within: ReadonlySet<Op>;
}

/** Null where something else is made of the scores or probabilities. */
export function gradientsAt(
  graph: MadeOps,
  ops: readonly Op[],
  attention: MatchedAttention,
): AttentionGradients | null {
  // A logsumexp has too few digits for the probabilities of a row whose scores are all that low.
  if (attention.bias.added.some(({ id }) => mayHide(graph, id))) return null;
  const family = familyOf(graph, ops, attention);
  const within = new Set<Op>([...attention.within, ...family.within]);
  const found: AttentionGradient[] = [];
  const cotangents: OperandAxes[] = [];
  for (const product of family.products) {
    const gradient = gradientOf(graph, attention, family.axes, product, within);
    if (gradient === null) return null;
    found.push(gradient);
    cotangents.push(...gradient.cotangents);
  }
  const [g] = cotangents;
  const text = (operand: OperandAxes | undefined): string =>
    JSON.stringify(operand && rootOf(graph, operand, attention.extents));
  const areSame = cotangents.every((each) => text(each) === text(g));
  return g !== undefined && areSame ? { g, found, within } : null;
}

interface Family {
  /** Of what is computed from the exponentials, element by element and by sums. */
  readonly axes: ReadonlyMap<TensorId, AxisNumbers>;
  readonly within: readonly Op[];
  /** The matmuls that read such tensors, beside that of attention itself. */
  readonly products: readonly MatmulOp[];
}

function familyOf({ tensors, makers }: MadeOps, ops: readonly Op[], attention: MatchedAttention): Family {
  const axes = new Map<TensorId, AxisNumbers>([[attention.powers, attention.own]]);
  const within: Op[] = [];
  const products: MatmulOp[] = [];
  for (const op of ops.slice(ops.findIndex((each) => each === makers.get(attention.powers)) + 1)) {
    if (!op.inputs.some((id) => axes.has(id)) || op === attention.product) continue;
    if (op.kind === "Matmul") products.push(op);
    else {
      const made = axesOfResult(op, axes, at(tensors, op.output), attention);
      if (made === null) continue;
      axes.set(op.output, made);
      within.push(op);
    }
  }
  return { axes, within, products };
}

type Tensor = MadeOps["tensors"][number];

function axesOfResult(
  op: Op,
  axes: ReadonlyMap<TensorId, AxisNumbers>,
  result: Tensor,
  { extents }: MatchedAttention,
): AxisNumbers | null {
  const known = op.inputs.map((id) => axes.get(id));
  const first = known.find((own) => own !== undefined);
  if (first === undefined) return null;
  switch (op.kind) {
    case "Unary":
    case "Binary":
    case "Ternary":
      return first.map((_, axis) => known.map((own) => own?.[axis] ?? []).find((own) => own.length > 0) ?? []);
    case "Reduction":
      return first.filter((_, axis) => !op.axes.includes(axis));
    default:
      return axesAfter(op, first, result, extents);
  }
}

interface FoundGradient extends AttentionGradient {
  /** The gradients of the attention's result that it is of. */
  readonly cotangents: readonly OperandAxes[];
}

/** Adds to `within` what it is made of. */
function gradientOf(
  graph: MadeOps,
  attention: MatchedAttention,
  family: ReadonlyMap<TensorId, AxisNumbers>,
  product: MatmulOp,
  within: Set<Op>,
): FoundGradient | null {
  const { key, depth, width, extents } = attention;
  const side = family.has(at(product.inputs, 0)) ? 0 : 1;
  const id = at(product.inputs, side);
  const axes = family.get(id);
  const other = at(product.inputs, 1 - side);
  if (axes === undefined || family.has(other)) return null;
  const rank = axes.length;
  const contracted = at(axes, side === 0 ? rank - 1 : rank - 2);
  const isOfRows = !contracted.includes(key);
  const source = rootOf(graph, { id, axes }, extents);
  const isValues = isOfRows && source.id === attention.quotient;
  const operands = operandsOf(graph, product, side, axes, isValues ? width : depth, extents);
  if (operands === null || (!isOfRows && contracted.length > 1)) return null;
  const { operand, result } = operands;
  // A sum over some of the rows only, or over fewer heads than share one of keys, is another one.
  const like = isValues ? attention.v : isOfRows ? attention.k : attention.q;
  if (numbersOf(result) !== numbersOf(like.axes)) return null;
  if (isValues) return { name: "dv", product, result, cotangents: [operand] };
  const known = isOfRows ? attention.q : attention.k;
  const cotangent = cotangentOf(graph, attention, family, source, within);
  if (!isSameRoot(graph, attention, operand, known) || cotangent === null) return null;
  return { name: isOfRows ? "dk" : "dq", product, result, cotangents: [cotangent] };
}

function numbersOf(axes: AxisNumbers): string {
  return axes
    .flat()
    .toSorted((a, b) => a - b)
    .join(" ");
}

function isSameRoot(graph: MadeOps, { extents }: MatchedAttention, a: OperandAxes, b: OperandAxes): boolean {
  return JSON.stringify(rootOf(graph, a, extents)) === JSON.stringify(rootOf(graph, b, extents));
}

/* Points of dS. */

/** So many indices along each axis. */
const points = 3;
/** Of numbers below 1, times the scale. */
const tolerance = 1e-5;

type Point = ReadonlyMap<number, number>;

/** The gradient g of the result that `ds` is of, if it is dS. */
function cotangentOf(
  graph: MadeOps,
  attention: MatchedAttention,
  family: ReadonlyMap<TensorId, AxisNumbers>,
  ds: OperandAxes,
  within: Set<Op>,
): OperandAxes | null {
  const { own, key, quotient, scale } = attention;
  const probe = probeOf(graph, attention, family, within);
  const indices = [...new Set(own.flat())].filter((axis) => axis !== key);
  const random = createRandom(17);
  for (let trial = 0; trial < 4; trial++) {
    const fixed = indices.map((axis): [number, number] => [axis, Math.floor(random.float() * points)]);
    const along = Array.from({ length: points }, (_, i): Point => new Map([...fixed, [key, i]]));
    const found = along.map((point) => probe.valueOf(ds.id, ds.axes, point));
    const p = along.map((point) => probe.valueOf(quotient, own, point));
    const [product] = probe.products;
    if (product === undefined || probe.products.length > 1) return null;
    const dp = along.map((point) => probe.valueOf(product.id, product.axes, point));
    const total = p.reduce((sum, each, i) => sum + each * at(dp, i), 0);
    const fits = found.every((each, i) => Math.abs(each - at(p, i) * (at(dp, i) - total) * scale) < tolerance * scale);
    if (!fits) return null;
  }
  const [product] = probe.products;
  const matmul = product === undefined ? undefined : graph.makers.get(product.id);
  if (product === undefined || matmul?.kind !== "Matmul") return null;
  within.add(matmul);
  return cotangentIn(graph, attention, matmul, product.axes);
}

/** Of dP = g v^T: the operand that is not the values. */
function cotangentIn(
  graph: MadeOps,
  attention: MatchedAttention,
  product: MatmulOp,
  axes: AxisNumbers,
): OperandAxes | null {
  const { v, width } = attention;
  const shapes = product.inputs.map((id) => sizesOfTensor(at(graph.tensors, id)));
  const batch = (shape: readonly number[]): AxisNumbers =>
    shape.slice(0, -2).map((size, axis) => (size === 1 ? [] : at(axes, axes.length - shape.length + axis)));
  const [left = [], right = []] = shapes;
  const a: OperandAxes = { id: at(product.inputs, 0), axes: [...batch(left), at(axes, axes.length - 2), [width]] };
  const b: OperandAxes = { id: at(product.inputs, 1), axes: [...batch(right), [width], at(axes, axes.length - 1)] };
  if (isSameRoot(graph, attention, a, v)) return b;
  return isSameRoot(graph, attention, b, v) ? a : null;
}

interface Probe {
  readonly valueOf: (id: TensorId, axes: AxisNumbers, point: Point) => number;
  /** The matmuls that were read beside that of the scores. */
  readonly products: readonly OperandAxes[];
}

/** Computes elements of small tensors: results of matmuls and conditions are random. NaN for other ops. */
function probeOf(
  graph: MadeOps,
  attention: MatchedAttention,
  family: ReadonlyMap<TensorId, AxisNumbers>,
  within: Set<Op>,
): Probe {
  const { makers, tensors } = graph;
  const products: OperandAxes[] = [];
  const drawn = new Map<string, number>();
  const random = createRandom(5);
  const leaf = (id: TensorId, axes: AxisNumbers, point: Point): number => {
    const place = axes.map((own) => own.map((axis) => point.get(axis) ?? 0));
    const name = JSON.stringify([id, place]);
    const known = drawn.get(name) ?? 2 * random.float() - 1;
    drawn.set(name, known);
    return known;
  };
  const valueOf = (id: TensorId, axes: AxisNumbers, point: Point): number => {
    const op = makers.get(id);
    if (attention.bias.added.some((each) => each.id === id)) return leaf(id, axes, point);
    if (op === undefined) return NaN;
    const operand = (input: TensorId): number => valueOf(input, stretched(graph, input, axes), point);
    if (op.kind !== "Matmul" && op.kind !== "Full" && op.kind !== "Reduction") {
      if (op !== makers.get(attention.scores)) within.add(op);
    }
    switch (op.kind) {
      case "Matmul":
        if (op !== attention.scoresProduct && !products.some((each) => each.id === id)) products.push({ id, axes });
        return leaf(id, axes, point);
      case "Full":
        return Number(op.value);
      case "Unary": {
        const x = operand(at(op.inputs, 0));
        return op.op === "exp" ? Math.exp(x) : op.op === "neg" ? -x : NaN;
      }
      case "Binary": {
        const [x = NaN, y = NaN] = withScalar(op.inputs.map(operand), op.scalar);
        return arithmetic[op.op]?.(x, y) ?? NaN;
      }
      case "Ternary": {
        const [condition, ...rest] = op.inputs;
        if (op.op !== "where" || condition === undefined) return NaN;
        const [x = NaN, y = NaN] = withScalar(
          rest.map(operand),
          op.scalar && { ...op.scalar, position: op.scalar.position - 1 },
        );
        // A row sees its first key.
        const isSeen = point.get(attention.key) === 0 || leaf(condition, stretched(graph, condition, axes), point) < 0;
        return isSeen ? x : y;
      }
      case "Reduction": {
        const input = at(op.inputs, 0);
        const inner = family.get(input) ?? (input === attention.scores ? attention.own : undefined);
        const gone = op.axes.flatMap((axis) => inner?.[axis] ?? []);
        if (inner === undefined || (op.op !== "sum" && op.op !== "amax")) return NaN;
        const values = pointsAlong(gone, point).map((each) => valueOf(input, inner, each));
        return op.op === "sum" ? values.reduce((sum, x) => sum + x, 0) : Math.max(...values);
      }
      default: {
        const input = at(op.inputs, 0);
        const before = axesBefore(op, axes, at(tensors, input), attention.extents);
        return before === null ? NaN : valueOf(input, before, point);
      }
    }
  };
  return { valueOf, products };
}

const arithmetic: Readonly<Partial<Record<string, (x: number, y: number) => number>>> = {
  add: (x, y) => x + y,
  sub: (x, y) => x - y,
  mul: (x, y) => x * y,
  div: (x, y) => x / y,
  maximum: Math.max,
};

function withScalar(
  values: readonly number[],
  scalar: { readonly position: number; readonly text: string } | undefined,
): readonly number[] {
  return scalar === undefined ? values : values.toSpliced(scalar.position, 0, Number(scalar.text));
}

function pointsAlong(axes: readonly number[], point: Point): readonly Point[] {
  return axes.reduce<readonly Point[]>(
    (all, axis) =>
      all.flatMap((each) => Array.from({ length: points }, (_, i): Point => new Map([...each, [axis, i]]))),
    [point],
  );
}

/**
 * The closed forms of compositions: one row per name of a marker. They need fewer ops than the rules of the ops between
 * would make, and no more of their results than the composition's inputs and outputs, and statistics of rows.
 */
import { at, invariant } from "../../support/invariant.ts";
import {
  add,
  dropout,
  eq,
  exp,
  expand,
  gt,
  logicalAnd,
  lt,
  mul,
  neg,
  permute,
  scatterAdd,
  sigmoid,
  silu,
  sub,
  sum,
  unsqueeze,
  where,
} from "../api/ops.ts";
import { alignRight, indicesAlong, inDType, keepAxes, wide } from "../api/ops/compositions/compose.ts";
import { columnsOf, float8Product } from "../api/ops/compositions/float8-linear.ts";
import { pairsOf, rotated } from "../api/ops/compositions/rope.ts";
import { meanOf, perElement } from "../api/ops/compositions/statistics.ts";
import type { TensorView } from "../api/tensor-view.ts";
import type { TensorId } from "../domain.ts";
import type { FusionData, Marker, MarkerName, OperandsOf } from "../fusion-data.ts";
import { call } from "../ops/call.ts";
import { outputsOf } from "../ops/op.ts";
import { rowsAt } from "./rules.ts";
import { type Cotangent, filled, sumTo } from "./vjp.ts";

/** A composition of the sweep. */
interface Composition<K extends MarkerName> {
  /** The cotangents of the outputs; null for an output that nothing differentiated reads. */
  readonly g: readonly (TensorView | null)[];
  readonly operands: OperandsOf<K, TensorView>;
  readonly outputs: readonly TensorView[];
  readonly kept: readonly TensorView[];
  readonly marker: Marker<K>;
}

/** One cotangent per operand. */
export type CompositionVjp<K extends MarkerName> = (composition: Composition<K>) => OperandsOf<K, Cotangent>;

/** Null if the composition has no derivative. */
export const compositionVjps: { readonly [K in MarkerName]: CompositionVjp<K> | null } = {
  argmax: null,
  detach: null,
  extreme: ({ g, operands: { x }, kept, marker: { axes } }) => ({
    x: () => {
      const isTaken = eq(indicesAlong(x, at(axes, 0), call("extreme")), keepAxes(at(kept, 0), axes, x));
      return where(isTaken, keepAxes(only(g), axes, x), 0);
    },
  }),
  paddedRows: ({ g, operands: { table, index }, marker: { padding = -1 } }) => ({
    // Where an index is negative, nothing is added.
    table: () =>
      scatterAdd(filled(table, table.extents, 0), 0, ...rowsAt(0, where(eq(index, padding), -1, index), only(g))),
    index: null,
  }),
  // Of x between the bounds and on them; otherwise of the bound that was taken.
  clamp: ({ g, operands: { x, low, high }, outputs: [y = x], kept: [raised = x] }) => {
    const part = (of: TensorView, takes: TensorView): TensorView =>
      inDType(sumTo(where(takes, only(g), 0), of), of.dtype);
    return {
      x: () => part(x, logicalAnd(eq(x, raised), eq(raised, y))),
      ...(low && { low: () => part(low, logicalAnd(lt(x, raised), eq(raised, y))) }),
      ...(high && { high: () => part(high, gt(raised, y)) }),
    };
  },
  varMean: ({ g: [gm = null, gv = null], operands: { x }, kept, marker: { axes, correction = 0 } }) => ({
    x: () => {
      const [wideX, average] = [wide(x), at(kept, 0)];
      const perMean = gm === null ? [] : [keepAxes(perElement(wide(gm), wideX, axes, 0), axes, x)];
      const perDistance = gv === null ? [] : [keepAxes(perElement(mul(wide(gv), 2), wideX, axes, correction), axes, x)];
      const terms = [...perMean, ...perDistance.map((each) => mul(each, sub(wideX, keepAxes(average, axes, x))))];
      return inDType(expand(terms.reduce(add), x.extents), x.dtype);
    },
  }),
  softmax: ({ g, operands: { x }, outputs, marker: { axes } }) => ({
    x: () => inDType(softmaxCotangent(only(g), at(outputs, 0), axes), x.dtype),
  }),
  logSoftmax: ({ g, operands: { x }, kept, marker: { axes } }) => ({
    x: () => inDType(logSoftmaxCotangent(only(g), at(kept, 0), axes), x.dtype),
  }),
  logsumexp: ({ g, operands: { x }, kept, marker: { axes } }) => ({
    x: () => {
      const share = exp(sub(wide(x), keepAxes(at(kept, 0), axes, x)));
      return inDType(mul(share, keepAxes(wide(only(g)), axes, x)), x.dtype);
    },
  }),
  // The softmax, less 1 at the target.
  crossEntropy: ({ g, operands: { logits, target }, kept, marker: { axes } }) => ({
    logits: () => {
      const sums = at(kept, 0);
      const share = exp(sub(wide(logits), keepAxes(sums, axes, logits)));
      const index = unsqueeze(target, at(axes, 0));
      const distance = scatterAdd(share, at(axes, 0), index, filled(share, index.extents, -1));
      const rows = [...sums.extents.keys()];
      const perRow = rows.length === 0 ? wide(only(g)) : perElement(wide(only(g)), sums, rows, 0);
      return inDType(mul(distance, perRow), logits.dtype);
    },
    target: null,
  }),
  layerNorm: ({ g, operands, kept, marker: { axes } }) => {
    const x = wide(operands.x);
    const root = keepAxes(at(kept, 1), axes, x);
    const normal = (): TensorView => mul(sub(x, keepAxes(at(kept, 0), axes, x)), root);
    return normCotangents(operands, only(g), { axes, normal, root, centres: true });
  },
  rmsNorm: ({ g, operands, kept, marker: { axes } }) => {
    const x = wide(operands.x);
    const root = keepAxes(at(kept, 0), axes, x);
    return normCotangents(operands, only(g), { axes, normal: () => mul(x, root), root, centres: false });
  },
  // The same elements stay, by the same counters: no mask is kept.
  dropout: ({ g, operands: { seed }, marker: { random } }) => ({
    x: () => {
      invariant(random !== undefined, "a dropout has a probability");
      return dropout(only(g), random.p, seed, { offset: random.offset });
    },
    seed: null,
  }),
  float8Linear: ({ g, operands: { x, weight }, marker: { recipe = "rowwise", parts } }) => {
    const ofA = recipe === "tensorwise" ? "float8_e5m2" : "float8_e4m3fn";
    return {
      x: () => float8Product(only(g), permute(weight, [1, 0]), recipe, { ofA, parts }),
      weight: () =>
        inDType(float8Product(columnsOf(only(g)), columnsOf(x), recipe, { ofA, ofRows: null }), weight.dtype),
    };
  },
  // The rotation in the other direction.
  rope: ({ g, operands: { x, cos, sin }, marker: { pairs = "halves" } }) => {
    let cut: readonly (readonly [TensorView, TensorView])[] | null = null;
    const factor = (like: TensorView, combine: typeof add, order: readonly [0 | 1, 0 | 1]) => (): TensorView => {
      cut ??= [only(g), x].map((each) => pairsOf(each, pairs));
      const [gs, xs] = [at(cut, 0), at(cut, 1)];
      const product = combine(mul(gs[order[0]], xs[0]), mul(gs[order[1]], xs[1]));
      return inDType(sumTo(product, like), like.dtype);
    };
    const back = (): TensorView => rotated(only(g), cos, neg(sin), { pairs, dtype: x.dtype });
    return { x: back, cos: factor(cos, add, [0, 1]), sin: factor(sin, sub, [1, 0]) };
  },
  // silu(gate) is computed again, from what its own derivative needs anyway.
  swiglu: ({ g, operands: { gate, up } }) => {
    const x = wide(gate);
    const gy = wide(only(g));
    const product = (factor: TensorView, of: TensorView): TensorView => inDType(sumTo(mul(gy, factor), of), of.dtype);
    return {
      gate: () => {
        const s = sigmoid(x);
        return product(mul(wide(up), mul(s, add(1, mul(x, sub(1, s))))), gate);
      },
      up: () => product(silu(x), up),
    };
  },
};

/** The cotangent of the only output. */
function only(g: readonly (TensorView | null)[]): TensorView {
  const [first = null] = g;
  invariant(first !== null, "a composition of one output has its cotangent");
  return first;
}

/** From the softmax `y`. */
export function softmaxCotangent(g: TensorView, y: TensorView, axes: readonly number[]): TensorView {
  const [share, gy] = [wide(y), wide(g)];
  return mul(share, sub(gy, keepAxes(sum(mul(gy, share), axes), axes, y)));
}

/** From the logarithm `y` of a softmax. */
export function logSoftmaxCotangent(g: TensorView, y: TensorView, axes: readonly number[]): TensorView {
  const gy = wide(g);
  return sub(gy, mul(exp(wide(y)), keepAxes(sum(gy, axes), axes, y)));
}

interface Norm {
  readonly axes: readonly number[];
  /** The tensor before its weight and bias. */
  readonly normal: () => TensorView;
  /** What each row was multiplied with. */
  readonly root: TensorView;
  /** Whether the mean of the row was subtracted. */
  readonly centres: boolean;
}

/** With q = g w and h the normal: r (q - mean(q) - h mean(q h)), sum(g h), sum(g). */
export function normCotangents(
  { x, weight, bias }: OperandsOf<"layerNorm", TensorView>,
  g: TensorView,
  { axes, normal, root, centres }: Norm,
): OperandsOf<"layerNorm", Cotangent> {
  const gy = wide(g);
  return {
    x: () => {
      const [q, h] = [weight === undefined ? gy : mul(gy, alignRight(weight, gy)), normal()];
      const across = (each: TensorView): TensorView => keepAxes(meanOf(each, axes), axes, gy);
      const along = sub(centres ? sub(q, across(q)) : q, mul(h, across(mul(q, h))));
      return inDType(mul(root, along), x.dtype);
    },
    ...(weight && { weight: () => inDType(sumTo(mul(gy, normal()), weight), weight.dtype) }),
    ...(bias && { bias: () => inDType(sumTo(gy, bias), bias.dtype) }),
  };
}

// The ops between the inputs and outputs of compositions.

export interface MarkedRegion {
  readonly marker: Marker;
  /** The tensors that the composition made. */
  readonly made: readonly TensorId[];
}

/**
 * The compositions by the tensor that each made last, where the sweep has all cotangents from outside. Of those that
 * share it, the outermost comes first.
 */
export function markedRegions({ ops, markers = [] }: FusionData): ReadonlyMap<TensorId, readonly MarkedRegion[]> {
  const producers = new Map(ops.flatMap((op) => outputsOf(op).map((id) => [id, op.inputs] as const)));
  const regions = new Map<TensorId, MarkedRegion[]>();
  for (const marker of markers.toReversed()) {
    const made: TensorId[] = [];
    const open = [...marker.outputs];
    const seen = new Set([...Object.values<TensorId>(marker.operands), ...open]);
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      made.push(id);
      for (const input of producers.get(id) ?? []) {
        if (seen.has(input)) continue;
        seen.add(input);
        open.push(input);
      }
    }
    const last = at(
      made.toSorted((a, b) => b - a),
      0,
    );
    regions.set(last, [...(regions.get(last) ?? []), { marker, made }]);
  }
  return regions;
}

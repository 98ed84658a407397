/**
 * The closed forms of compositions: one row per name of a marker. They need fewer ops than the rules of the ops between
 * would make, and no more of their results than the composition's inputs and outputs, and statistics of rows.
 */
import { at, invariant } from "../../support/invariant.ts";
import {
  add,
  dropout,
  exp,
  expand,
  mul,
  neg,
  rope,
  scatterAdd,
  sigmoid,
  silu,
  sub,
  sum,
  unsqueeze,
} from "../api/ops.ts";
import { alignRight, inDType, keepAxes, wide } from "../api/ops/compositions/compose.ts";
import { halves } from "../api/ops/compositions/rope.ts";
import { meanOf, perElement } from "../api/ops/compositions/statistics.ts";
import type { TensorView } from "../api/tensor-view.ts";
import type { Marker, MarkerName } from "../marker.ts";
import { filled, sumTo } from "./shapes.ts";
import type { Cotangent } from "./vjp.ts";

/** A composition of the sweep. */
export interface Composition {
  /** The cotangents of the outputs; null for an output that nothing differentiated reads. */
  readonly g: readonly (TensorView | null)[];
  readonly inputs: readonly TensorView[];
  readonly outputs: readonly TensorView[];
  readonly kept: readonly TensorView[];
  readonly marker: Marker;
}

/** One cotangent per input. Null if the composition has no derivative. */
type CompositionVjp = ((composition: Composition) => readonly Cotangent[]) | null;

export const compositionVjps: { readonly [K in MarkerName]: CompositionVjp } = {
  argmax: null,
  varMean: ({ g: [gm = null, gv = null], inputs, kept, marker: { axes, correction = 0 } }) => [
    () => {
      const [x, average] = [at(inputs, 0), at(kept, 0)];
      const wideX = wide(x);
      const perMean = gm === null ? [] : [keepAxes(perElement(wide(gm), wideX, axes, 0), axes, x)];
      const perDistance = gv === null ? [] : [keepAxes(perElement(mul(wide(gv), 2), wideX, axes, correction), axes, x)];
      const terms = [...perMean, ...perDistance.map((each) => mul(each, sub(wideX, keepAxes(average, axes, x))))];
      return inDType(expand(terms.reduce(add), x.extents), x.dtype);
    },
  ],
  softmax: ({ g, inputs, outputs, marker: { axes } }) => [
    () => {
      const [y, gy] = [wide(at(outputs, 0)), wide(only(g))];
      return inDType(mul(y, sub(gy, keepAxes(sum(mul(gy, y), axes), axes, y))), at(inputs, 0).dtype);
    },
  ],
  logSoftmax: ({ g, inputs, kept, marker: { axes } }) => [
    () => {
      const [y, gy] = [at(kept, 0), wide(only(g))];
      return inDType(sub(gy, mul(exp(y), keepAxes(sum(gy, axes), axes, y))), at(inputs, 0).dtype);
    },
  ],
  logsumexp: ({ g, inputs, kept, marker: { axes } }) => [
    () => {
      const x = at(inputs, 0);
      const share = exp(sub(wide(x), keepAxes(at(kept, 0), axes, x)));
      return inDType(mul(share, keepAxes(wide(only(g)), axes, x)), x.dtype);
    },
  ],
  // The softmax, less 1 at the target.
  crossEntropy: ({ g, inputs, kept, marker: { axes } }) => [
    () => {
      const [z, target, sums] = [at(inputs, 0), at(inputs, 1), at(kept, 0)];
      const share = exp(sub(wide(z), keepAxes(sums, axes, z)));
      const index = unsqueeze(target, at(axes, 0));
      const distance = scatterAdd(share, at(axes, 0), index, filled(share, index.extents, -1));
      const rows = [...sums.extents.keys()];
      const perRow = rows.length === 0 ? wide(only(g)) : perElement(wide(only(g)), sums, rows, 0);
      return inDType(mul(distance, perRow), z.dtype);
    },
    null,
  ],
  layerNorm: (composition) => {
    const { kept, marker, inputs } = composition;
    const x = wide(at(inputs, 0));
    const root = keepAxes(at(kept, 1), marker.axes, x);
    const normal = (): TensorView => mul(sub(x, keepAxes(at(kept, 0), marker.axes, x)), root);
    return normCotangents(composition, { normal, root, centres: true });
  },
  rmsNorm: (composition) => {
    const { kept, marker, inputs } = composition;
    const x = wide(at(inputs, 0));
    const root = keepAxes(at(kept, 0), marker.axes, x);
    return normCotangents(composition, { normal: () => mul(x, root), root, centres: false });
  },
  // The same elements stay, by the same counters: no mask is kept.
  dropout: ({ g, inputs, marker: { random } }) => [
    () => {
      invariant(random !== undefined, "a dropout has a probability");
      return dropout(only(g), random.p, at(inputs, 1), { offset: random.offset });
    },
    null,
  ],
  // The rotation in the other direction.
  rope: ({ g, inputs }) => {
    const [x, cos, sin] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    let cut: readonly (readonly [TensorView, TensorView])[] | null = null;
    const factor = (like: TensorView, combine: typeof add, order: readonly [0 | 1, 0 | 1]) => (): TensorView => {
      cut ??= [only(g), x].map((each) => halves(wide(each)));
      const [gs, xs] = [at(cut, 0), at(cut, 1)];
      const product = combine(mul(gs[order[0]], xs[0]), mul(gs[order[1]], xs[1]));
      return inDType(sumTo(product, like), like.dtype);
    };
    return [() => rope(only(g), cos, neg(sin)), factor(cos, add, [0, 1]), factor(sin, sub, [1, 0])];
  },
  // silu(gate) is computed again, from what its own derivative needs anyway.
  swiglu: ({ g, inputs }) => {
    const [gate, up] = [at(inputs, 0), at(inputs, 1)];
    const x = wide(gate);
    const gy = wide(only(g));
    const product = (factor: TensorView, of: TensorView): TensorView => inDType(sumTo(mul(gy, factor), of), of.dtype);
    return [
      () => {
        const s = sigmoid(x);
        return product(mul(wide(up), mul(s, add(1, mul(x, sub(1, s))))), gate);
      },
      () => product(silu(x), up),
    ];
  },
};

/** The cotangent of the only output. */
function only(g: readonly (TensorView | null)[]): TensorView {
  const [first = null] = g;
  invariant(first !== null, "a composition of one output has its cotangent");
  return first;
}

interface Norm {
  /** The tensor before its weight and bias. */
  readonly normal: () => TensorView;
  /** What each row was multiplied with. */
  readonly root: TensorView;
  /** Whether the mean of the row was subtracted. */
  readonly centres: boolean;
}

/** With q = g w and h the normal: r (q - mean(q) - h mean(q h)), sum(g h), sum(g). */
function normCotangents({ g, inputs, marker: { axes } }: Composition, { normal, root, centres }: Norm): Cotangent[] {
  const [x, weight, bias] = [at(inputs, 0), inputs[1], inputs[2]];
  const gy = wide(only(g));
  return [
    () => {
      const [q, h] = [weight === undefined ? gy : mul(gy, alignRight(weight, gy)), normal()];
      const across = (each: TensorView): TensorView => keepAxes(meanOf(each, axes), axes, gy);
      const along = sub(centres ? sub(q, across(q)) : q, mul(h, across(mul(q, h))));
      return inDType(mul(root, along), x.dtype);
    },
    ...(weight === undefined ? [] : [() => inDType(sumTo(mul(gy, normal()), weight), weight.dtype)]),
    ...(bias === undefined ? [] : [() => inDType(sumTo(gy, bias), bias.dtype)]),
  ];
}

/**
 * Scaled dot product attention: softmax(scale q k^T) v, and the logarithms of the softmax's denominators, which the
 * backward pass reads. A row that sees no key gives 0 and -inf.
 */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type Tensor, withoutReductions } from "../../../domain.ts";
import { extentsDiffer } from "../../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../../call.ts";
import type { Axes, AxisPair, OpRow } from "../../row.ts";
import { local, pair, zip } from "../families.ts";
import {
  type AttentionBase,
  attentionDType,
  attentionMisfit,
  axesOf,
  headSizes,
  isBias,
  isSharedHeadAxis,
  leading,
  requireAttention,
  requireBias,
  requireKeyLengths,
  scoreCount,
  scoreWork,
  statisticsDType,
} from "./attention.ts";

/**
 * Operands q, k, v, and perhaps how many keys there are, or what is added to the scores. Outputs [.., Lq, e] and
 * logsumexp [.., Lq].
 */
export interface SdpaOp extends AttentionBase {
  readonly kind: "Sdpa";
}

export const sdpaRow: OpRow<SdpaOp> = {
  ...local,
  operands: [3, 4],
  standalone: true,
  isView: false,
  dtype: (_, operands, place) => attentionDType("sdpa", operands.slice(0, 3), place),
  shape: (_, operands, place) => {
    const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
    requireAttention(q, k, v, place);
    const further = operands[3];
    if (further !== undefined && isBias(axesOf(further), axesOf(q))) requireBias(further, q, k, place);
    else if (further !== undefined) requireKeyLengths(q, further, place);
    return { axes: [...axesOf(q).slice(0, -1), ...axesOf(v).slice(-1)].map(shapeOfAxis) };
  },
  further: (_, operands) => [
    { dtype: statisticsDType(at(operands, 0).dtype), axes: axesOf(at(operands, 0)).slice(0, -1).map(shapeOfAxis) },
  ],
  respec: ({ kind, causal, window, scale }) => ({ kind, causal, window, scale }),
  pairs: ({ causal }, [q = [], k = [], v = [], further = []], output, which) => {
    const axes = withoutReductions(output);
    // A chunk of the rows does not know which keys its rows see.
    const rows = (of: Axes): Axes => (causal === null ? of.slice(0, -1) : leading(of));
    return [
      ...zip(0, rows(q), axes),
      ...zip(1, leading(k), axes),
      ...zip(2, leading(v), axes),
      ...zip(3, isBias(further, q) ? rows(further) : further, axes),
      ...(which === 0 ? lastPair(2, v, axes) : []),
    ];
  },
  whole: ({ causal }, [q = [], k = [], v = [], further = []]) => [
    ...(causal === null ? [] : [{ operand: 0, axis: at(q, q.length - 2) }]),
    { operand: 0, axis: at(q, q.length - 1) },
    ...k.slice(-2).map((axis) => ({ operand: 1, axis })),
    { operand: 2, axis: at(v, v.length - 2) },
    ...(isBias(further, q) ? further.slice(causal === null ? -1 : -2) : []).map((axis) => ({ operand: 3, axis })),
  ],
  misfit: (_, sizes) => attentionMisfit(sizes, [0, 1, 2]),
  flops: (op, shapes) => {
    const { d, e } = headSizes(shapes, 0, 2);
    return 2 * (d + e) * scoreCount(op, at(shapes.operands, 0), at(shapes.operands, 1));
  },
  work: (op, shapes) => {
    const { d, e } = headSizes(shapes, 0, 2);
    return scoreWork(scoreCount(op, at(shapes.operands, 0), at(shapes.operands, 1)), d + e);
  },
};

function shapeOfAxis({ extent, iterType }: AxisShape): AxisShape {
  return { extent, iterType };
}

function lastPair(operand: number, axes: Axes, output: Axes): readonly AxisPair[] {
  return [pair(operand, at(axes, axes.length - 1), at(output, output.length - 1))];
}

// The backward pass of attention, with P = exp(scale q k^T + bias - logsumexp) computed again:
//
//   D = sum(g output)   dS = P (g v^T - D) scale   dq = dS k   dk = dS^T q   dv = P^T g
//
// dk and dv are sums over the query heads that share a head of keys or values.

/**
 * Operands g (the cotangent of the output), q, k, v, output, logsumexp, and perhaps the bias. Outputs dq, dk and dv.
 */
export interface SdpaBackwardOp extends AttentionBase {
  readonly kind: "SdpaBackward";
}

export const sdpaBackwardRow: OpRow<SdpaBackwardOp> = {
  ...local,
  operands: [6, 7],
  standalone: true,
  isView: false,
  dtype: (_, operands, place) => {
    const dtype = attentionDType("sdpaBackward", operands.slice(0, 5), place);
    requireStatistics(at(operands, 5), statisticsDType(dtype), place);
    return dtype;
  },
  shape: (_, operands, place) => {
    const [g, q, k, v, output, logsumexp] = [0, 1, 2, 3, 4, 5].map((i) => at(operands, i));
    requireAttention(at(operands, 1), at(operands, 2), at(operands, 3), place);
    const rows = axesOf(at(operands, 1)).slice(0, -1);
    const results = [...rows, ...axesOf(at(operands, 3)).slice(-1)];
    for (const [tensor, axes] of [
      [g, results],
      [output, results],
      [logsumexp, rows],
    ] as const) {
      if (tensor !== undefined) requireAxes(tensor, axes, [q, k, v], place);
    }
    if (operands[6] !== undefined) requireBias(operands[6], at(operands, 1), at(operands, 2), place);
    return { axes: shapeLike(at(operands, 1)) };
  },
  further: (_, operands) =>
    [2, 3].map((position) => ({ dtype: at(operands, position).dtype, axes: shapeLike(at(operands, position)) })),
  respec: ({ kind, causal, window, scale }) => ({ kind, causal, window, scale }),
  pairs: (_, operands, output) => {
    const [q, k] = [at(operands, 1), at(operands, 2)];
    const axes = withoutReductions(output);
    return operands.flatMap((own, operand): readonly AxisPair[] =>
      leading(q).flatMap((_axis, i) => (isSharedHeadAxis(i, q, k) ? [] : [pair(operand, at(own, i), at(axes, i))])),
    );
  },
  whole: (_, operands) => {
    const [q, k] = [at(operands, 1), at(operands, 2)];
    const isWhole = (axis: number): boolean => axis >= q.length - 2 || isSharedHeadAxis(axis, q, k);
    return operands.flatMap((axes: Axes, operand) =>
      axes.flatMap((axis, i) => (isWhole(i) ? [{ operand, axis }] : [])),
    );
  },
  misfit: (_, sizes) => attentionMisfit(sizes, [1, 2, 3]),
  flops: (op, shapes) => {
    const { d, e } = headSizes(shapes, 1, 3);
    return 2 * (3 * d + 2 * e) * scoreCount(op, at(shapes.operands, 1), at(shapes.operands, 2));
  },
  work: (op, shapes) => {
    const { d, e } = headSizes(shapes, 1, 3);
    return scoreWork(scoreCount(op, at(shapes.operands, 1), at(shapes.operands, 2)), 3 * d + 2 * e);
  },
};

function shapeLike(tensor: Tensor): readonly AxisShape[] {
  return axesOf(tensor).map(({ extent, iterType }) => ({ extent, iterType }));
}

/** Throws `dtype-mismatch`. */
function requireStatistics({ id, dtype }: Tensor, expected: Tensor["dtype"], place: Call): void {
  if (dtype === expected) return;
  reject(place, "dtype-mismatch", "logsumexp does not have the dtype that sdpa gives it", {
    found: `T${id} ${dtype}`,
    expected,
    help: "pass the logsumexp of sdpa",
  });
}

/** Throws `shape-mismatch`. */
function requireAxes(tensor: Tensor, axes: Axes, operands: readonly (Tensor | undefined)[], place: Call): void {
  const own = axesOf(tensor);
  if (own.length === axes.length && own.every(({ extent }, i) => !extentsDiffer(extent, at(axes, i).extent))) return;
  reject(place, "shape-mismatch", `T${tensor.id} does not fit the queries and values`, {
    found: [tensor, ...operands.flatMap((each) => each ?? [])].map(shapeText).join(", "),
    expected: "g and output [.., Lq, e], logsumexp [.., Lq]",
    help: "pass the results of sdpa on the same q, k and v",
  });
}

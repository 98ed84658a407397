/**
 * Scaled dot product attention: softmax(scale q k^T) v, and the logarithms of the softmax's denominators, which the
 * backward pass reads. A row that sees no key gives 0 and -inf.
 */
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, withoutReductions } from "../../../domain.ts";
import { type Axes, type AxisPair, type OpRow } from "../../row.ts";
import { local, pair, zip } from "../families.ts";
import {
  attentionDType,
  type AttentionBase,
  attentionMisfit,
  axesOf,
  headSizes,
  leading,
  requireAttention,
  scoreCount,
  scoreWork,
  statisticsDType,
} from "./attention.ts";

/** Operands q, k and v. Outputs [.., Lq, e] and logsumexp [.., Lq]. */
export interface SdpaOp extends AttentionBase {
  readonly kind: "Sdpa";
}

export const sdpaRow: OpRow<SdpaOp> = {
  ...local,
  operands: [3, 3],
  standalone: true,
  isView: false,
  dtype: (_, operands, place) => attentionDType("sdpa", operands, place),
  shape: (_, operands, place) => {
    const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
    requireAttention(q, k, v, place);
    return { axes: [...axesOf(q).slice(0, -1), ...axesOf(v).slice(-1)].map(shapeOfAxis) };
  },
  further: (_, operands) => [
    { dtype: statisticsDType(at(operands, 0).dtype), axes: axesOf(at(operands, 0)).slice(0, -1).map(shapeOfAxis) },
  ],
  respec: ({ kind, causal, scale }) => ({ kind, causal, scale }),
  pairs: ({ causal }, [q = [], k = [], v = []], output, which) => {
    const axes = withoutReductions(output);
    // A chunk of the rows does not know which keys its rows see.
    const rows = causal === null ? q.slice(0, -1) : leading(q);
    return [
      ...zip(0, rows, axes),
      ...zip(1, leading(k), axes),
      ...zip(2, leading(v), axes),
      ...(which === 0 ? lastPair(2, v, axes) : []),
    ];
  },
  whole: ({ causal }, [q = [], k = [], v = []]) => [
    ...(causal === null ? [] : [{ operand: 0, axis: at(q, q.length - 2) }]),
    { operand: 0, axis: at(q, q.length - 1) },
    ...k.slice(-2).map((axis) => ({ operand: 1, axis })),
    { operand: 2, axis: at(v, v.length - 2) },
  ],
  misfit: (_, sizes) => attentionMisfit(sizes, [0, 1, 2]),
  flops: ({ causal }, shapes) => {
    const { d, e } = headSizes(shapes, 0, 2);
    return 2 * (d + e) * scoreCount(causal, at(shapes.operands, 0), at(shapes.operands, 1));
  },
  work: ({ causal }, shapes) => {
    const { d, e } = headSizes(shapes, 0, 2);
    return scoreWork(scoreCount(causal, at(shapes.operands, 0), at(shapes.operands, 1)), d + e);
  },
};

function shapeOfAxis({ extent, iterType }: AxisShape): AxisShape {
  return { extent, iterType };
}

function lastPair(operand: number, axes: Axes, output: Axes): readonly AxisPair[] {
  return [pair(operand, at(axes, axes.length - 1), at(output, output.length - 1))];
}

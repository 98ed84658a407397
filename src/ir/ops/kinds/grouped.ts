/**
 * The row of grouped matmul: consecutive rows belong to groups, whose ends only the run knows, and each group has a
 * matrix of its own. Source: torch._grouped_mm.
 *
 *   x [.., M, K], w [.., E, K, N], ends [.., E] -> [.., M, N, rK]    rows times the matrix of their group
 *   x [.., M, K], y [.., M, N], ends [.., E]    -> [.., E, K, N]     x^T y of each group: the gradient of w
 *
 * Group e has the rows from where the one before it ends to ends[e]. Leading axes have groups of their own.
 */
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { at } from "../../../support/invariant.ts";
import { type AxisShape, type Tensor, withoutReductions } from "../../domain.ts";
import { extentsDiffer } from "../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../call.ts";
import { numberDType } from "../dtype-rules.ts";
import type { Axes, AxisPair, OpRow, Shapes } from "../row.ts";
import { contractedPair, type ReadsPermuted, slicedOrders } from "./contractions.ts";
import { joinAxes, rejectJoin } from "./elementwise.ts";
import { pair, zipRight } from "./families.ts";
import { requireIndex } from "./indexing.ts";

export interface GroupedMatmulOp extends ReadsPermuted {
  readonly kind: "GroupedMatmul";
}

/** Whether the second operand has a matrix per group, and not rows. */
export function hasGroupMatrices(first: readonly unknown[], second: readonly unknown[]): boolean {
  return second.length > first.length;
}

export const groupedMatmulRow: OpRow<GroupedMatmulOp> = {
  operands: [3, 3],
  standalone: true,
  isView: false,
  dtype: (spec, operands, place) => {
    requireIndex(at(operands, 2), place);
    return numberDType(spec, operands.slice(0, 2), place);
  },
  shape: (_, operands, place) => ({ axes: groupedAxes(operands, place) }),
  respec: (op) => op,
  pairs: (_, operands, output) => groupedPairs(operands, output),
  partial: (_, operands, output) =>
    hasGroupMatrices(at(operands, 0), at(operands, 1)) ? withoutReductions(output).slice(at(operands, 0).length) : [],
  whole: (_, operands) => {
    const [x, y, ends] = [at(operands, 0), at(operands, 1), at(operands, 2)];
    const rows = { operand: 0, axis: at(x, x.length - 2) };
    const groups = { operand: 2, axis: at(ends, ends.length - 1) };
    if (!hasGroupMatrices(x, y)) return [rows, { operand: 1, axis: at(y, y.length - 2) }, groups];
    return [
      rows,
      { operand: 0, axis: at(x, x.length - 1) },
      { operand: 1, axis: at(y, y.length - 3) },
      { operand: 1, axis: at(y, y.length - 2) },
      groups,
    ];
  },
  misfit: (_, { operands }) => {
    const [x = [], y = [], ends = []] = operands();
    const [what, own, other] = hasGroupMatrices(x, y)
      ? ["groups", y.at(-3) ?? 0, ends.at(-1) ?? 0]
      : ["rows", x.at(-2) ?? 0, y.at(-2) ?? 0];
    if (own === other) return null;
    return {
      code: "size-mismatch",
      message: `the operands of a grouped matmul have different numbers of ${what}`,
      found: `${own} and ${other}`,
      expected: "equal numbers",
      help: "give the axes equal sizes",
    };
  },
  sources: () => null,
  // Only leading axes are sliced, and the last ones of results: no operand loses one that the others align with.
  sliced: slicedOrders,
  flops: (_, shapes) => 2 * multiplyAdds(shapes),
  work: (_, shapes) => multiplyAdds(shapes),
};

/** As if all rows were in groups. */
function multiplyAdds({ operands, output }: Shapes): number {
  const [x = [], y = []] = operands;
  if (hasGroupMatrices(x, y)) return elementCount(output) * (x.at(-1) ?? 1);
  return (elementCount(output) / Math.max(1, output.at(-3) ?? 1)) * (x.at(-2) ?? 1);
}

/** Throws `shape-mismatch`. */
function groupedAxes(operands: readonly Tensor[], place: Call): readonly AxisShape[] {
  const [x, y, ends] = [0, 1, 2].map((i) => withoutReductions(at(operands, i).domain.logical));
  if (x === undefined || y === undefined || ends === undefined) return [];
  const perGroup = hasGroupMatrices(x, y);
  const fits =
    x.length >= 2 &&
    (y.length === x.length || y.length === x.length + 1) &&
    ends.length >= 1 &&
    ends.length <= x.length - 1 &&
    !extentsDiffer(at(x, x.length - (perGroup ? 1 : 2)).extent, at(y, y.length - 2).extent) &&
    !(perGroup && extentsDiffer(at(y, y.length - 3).extent, at(ends, ends.length - 1).extent));
  if (!fits) {
    return reject(place, "shape-mismatch", "the operands of a grouped matmul do not fit", {
      found: operands.map(shapeText).join(", "),
      expected: "[.., M, K], [.., E, K, N] and [.., E], or [.., M, K], [.., M, N] and [.., E]",
      help: "sort the rows by group, and give each group an end: the number of rows up to its last one",
    });
  }
  const leading = [x.slice(0, -2), y.slice(0, x.length - 2), ends.slice(0, -1)];
  const batch = x.slice(0, -2).map((_, i): AxisShape => {
    const own = leading.flatMap((axes) => axes[i - x.length + 2 + axes.length] ?? []);
    return own.reduce<AxisShape>(
      (joined, axis) => joinAxes(joined, axis) ?? rejectJoin(at(operands, 0), at(operands, 1), i, place),
      at(own, 0),
    );
  });
  const columns = at(y, y.length - 1);
  const k = at(x, x.length - 1);
  if (perGroup) return [...batch, at(x, x.length - 2), columns, { extent: k.extent, iterType: "reduction" }];
  return [...batch, at(ends, ends.length - 1), k, columns];
}

function groupedPairs(operands: readonly Axes[], output: Axes): readonly AxisPair[] {
  const [x, y, ends] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const perGroup = hasGroupMatrices(x, y);
  const kept = output.at(-1)?.iterType === "reduction" ? output.slice(0, -1) : output;
  const batch = kept.slice(0, x.length - 2);
  const columns = at(kept, kept.length - 1);
  return [
    ...zipRight(0, x.slice(0, -2), batch),
    ...(perGroup ? contractedPair(0, x.at(-1), output) : [pair(0, at(x, x.length - 1), at(kept, kept.length - 2))]),
    ...zipRight(1, y.slice(0, perGroup ? -3 : -2), batch),
    ...(perGroup ? contractedPair(1, y.at(-2), output) : []),
    pair(1, at(y, y.length - 1), columns),
    ...zipRight(2, ends.slice(0, -1), batch),
  ];
}

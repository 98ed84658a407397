/**
 * Reduces elements along axes with a function of functions/reduction.ts. The reduced axes stay in the output's logical
 * domain with iteration type reduction.
 */
import { at } from "../../../support/invariant.ts";
import { type IterDomain, type Tensor, withoutReductions } from "../../domain.ts";
import { shifted, zip, moves } from "./families.ts";
import { type Call, rankOf, reject, resolveAxes, resolveAxis } from "../call.ts";
import { computedDType, numberDType } from "../dtype-rules.ts";
import { reductionFunctions, type ReductionOpType } from "../functions/reduction.ts";
import { type Axes, elementWork, type OpBase, type OpRow, type SpecOf, type AxisPair, type Shapes } from "../row.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

export interface ReductionOp extends OpBase {
  readonly kind: "Reduction";
  readonly op: ReductionOpType;
  readonly axes: readonly number[];
}

/** Throws `bad-argument`, `axis-out-of-range`, `axis-repeated`. */
export function reductionSpec(
  op: ReductionOpType,
  tensor: Tensor,
  axes: readonly number[],
  place: Call,
): SpecOf<ReductionOp> {
  if (axes.length === 0) {
    reject(place, "bad-argument", "a reduction needs at least one axis", {
      found: "no axes",
      expected: "the axes to reduce, for example [0]",
      help: "name the axes, or remove the reduction",
    });
  }
  return { kind: "Reduction", op, axes: resolveAxes(axes, rankOf(tensor), place) };
}

export const reductionRow: OpRow<ReductionOp> = {
  operands: [1, 1],
  standalone: true,
  isView: false,
  dtype: (spec, operands, place) =>
    (reductionFunctions[spec.op].operand === "number" ? numberDType : computedDType)(spec, operands, place),
  shape: ({ axes }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map((axis, i) =>
      axes.includes(i) ? { extent: axis.extent, iterType: "reduction" } : axis,
    ),
  }),
  respec: ({ op, axes }, operands, _, place) => reductionSpec(op, at(operands, 0), axes, place),
  pairs: (_, operands, output) => zip(0, at(operands, 0), output),
  partial: partialAxes,
  whole: ({ axes }, operands) => axes.map((axis) => ({ operand: 0, axis: at(at(operands, 0), axis) })),
  misfit: () => null,
  sources: () => null,
  sliced: (op, [cut]) => ({ ...op, axes: op.axes.map((axis) => shifted(axis, cut)) }),
  flops: (_, { operands, output }) => elementCount(at(operands, 0)) - elementCount(output),
  work: (_, { operands }) => elementWork * elementCount(at(operands, 0)),
};

/** Axes of partial results precede the reduced axis. */
function partialAxes({ axes }: ReductionOp, operands: readonly Axes[], output: Axes): Axes {
  if (output.length === at(operands, 0).length) return [];
  const partial: IterDomain[] = [];
  for (const [position, axis] of output.entries()) {
    const ordinary = position - partial.length;
    if (axis.iterType !== "reduction" && axes.includes(ordinary)) partial.push(axis);
  }
  return partial;
}

interface Along {
  readonly axis: number;
}

/**
 * The rows of ops that run along an axis in order, each row of it for itself: scans, which give every partial result of
 * a reduction, and argsort. A device needs all of the axis.
 */
const ordered = {
  ...moves,
  operands: [1, 1],
  shape: (_: unknown, operands: readonly Tensor[]) => ({ axes: withoutReductions(at(operands, 0).domain.logical) }),
  pairs: ({ axis }: Along, operands: readonly Axes[], output: Axes): readonly AxisPair[] =>
    zip(0, at(operands, 0), withoutReductions(output)).toSpliced(axis, 1),
  whole: ({ axis }: Along, operands: readonly Axes[]) => [{ operand: 0, axis: at(at(operands, 0), axis) }],
  sliced: <T extends Along>(op: T, [cut]: readonly (number | null)[]): T => ({ ...op, axis: shifted(op.axis, cut) }),
} as const;

// The elements up to each index, combined by a function of functions/reduction.ts: torch.cumsum, cumprod, cummax.

export interface ScanOp extends OpBase {
  readonly kind: "Scan";
  readonly op: ReductionOpType;
  readonly axis: number;
  /** From the last index to the first. */
  readonly reverse: boolean;
}

/** Throws `axis-out-of-range`. */
export function scanSpec(
  op: ReductionOpType,
  tensor: Tensor,
  axis: number,
  reverse: boolean,
  place: Call,
): SpecOf<ScanOp> {
  return { kind: "Scan", op, axis: resolveAxis(axis, rankOf(tensor), place), reverse };
}

export const scanRow: OpRow<ScanOp> = {
  ...ordered,
  dtype: (spec, operands, place) =>
    (reductionFunctions[spec.op].operand === "number" ? numberDType : computedDType)(spec, operands, place),
  respec: ({ op, axis, reverse }, operands, _, place) => scanSpec(op, at(operands, 0), axis, reverse, place),
  flops: (_, { output }) => elementCount(output),
  work: (_, { output }) => 2 * elementWork * elementCount(output),
};

// The indices, as int64, that sort an axis: torch.argsort with stable=True. Equal elements keep their order, and NaN is
// the largest.

export interface ArgsortOp extends OpBase {
  readonly kind: "Argsort";
  readonly axis: number;
  readonly descending: boolean;
}

/** Throws `axis-out-of-range`. */
export function argsortSpec(tensor: Tensor, axis: number, descending: boolean, place: Call): SpecOf<ArgsortOp> {
  return { kind: "Argsort", axis: resolveAxis(axis, rankOf(tensor), place), descending };
}

export const argsortRow: OpRow<ArgsortOp> = {
  ...ordered,
  dtype: (spec, operands, place) => {
    computedDType(spec, operands, place);
    return "int64";
  },
  respec: ({ axis, descending }, operands, _, place) => argsortSpec(at(operands, 0), axis, descending, place),
  work: (_, { output }: Shapes) => sortWork * elementCount(output),
};

/** In JavaScript 14 ns per float of long rows, by three passes over its digits. */
const sortWork = 130;

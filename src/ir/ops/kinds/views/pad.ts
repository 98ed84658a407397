/** Adds elements of one value before and after each axis; a negative width removes elements. */
import { dtypes } from "../../../../numerics/dtype.ts";
import { at } from "../../../../support/invariant.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../../../domain.ts";
import { constantValue, extentsDiffer, foldAdd } from "../../../scalar/fold.ts";
import { constant } from "../../../scalar/scalar.ts";
import { type Call, rankOf, reject, resolveAxis, shapeText } from "../../call.ts";
import { commonDType, operandDType } from "../../dtype-rules.ts";
import { numberText, requireNumberFits } from "../../number-operand.ts";
import { type Axes, elementWork, type OpBase, type OpRow, type SpecOf } from "../../row.ts";
import { moves, shifted, zip } from "../families.ts";
import { elementCount } from "../../../../numerics/tensor/host-tensor.ts";

export interface PadOp extends OpBase {
  readonly kind: "Pad";
  /** Of every axis. */
  readonly widths: readonly PadWidth[];
  /** As `NumberOperand.text`. */
  readonly value: string;
}

export interface PadWidth {
  readonly before: number;
  readonly after: number;
}

/** Throws `bad-argument`, `shape-mismatch`. */
export function padSpec(
  tensor: Tensor,
  widths: readonly (readonly [before: number, after: number])[],
  value: number | bigint,
  place: Call,
): SpecOf<PadOp> {
  const axes = withoutReductions(tensor.domain.logical);
  if (widths.length !== axes.length || !widths.flat().every(Number.isSafeInteger)) {
    reject(place, "bad-argument", "pad needs two whole numbers for every axis", {
      found: `[${widths.map((pair) => `[${pair.join(", ")}]`).join(", ")}] for ${shapeText(tensor)}`,
      expected: `${axes.length} pairs of elements before and after the axis`,
      help: "give [0, 0] to keep an axis; negative numbers remove elements",
    });
  }
  const op = {
    kind: "Pad",
    widths: widths.map(([before, after]) => ({ before, after })),
    value: numberText(value),
  } as const;
  const cut = axes.findIndex(({ extent }, i) => removes(at(op.widths, i)) > (constantValue(extent) ?? Infinity));
  if (cut >= 0) {
    reject(place, "shape-mismatch", `pad removes more elements than axis ${cut} has`, {
      found: `${removes(at(op.widths, cut))} of ${shapeText(tensor)}`,
      expected: "at most the extent of the axis",
      help: "remove fewer elements",
    });
  }
  requireFits(op.value, tensor, place);
  return op;
}

/** Throws `bad-argument` unless the dtype has the value. */
function requireFits(text: string, { dtype }: Tensor, place: Call): void {
  if (dtypes[dtype].family !== "bool") return requireNumberFits({ position: 1, text }, dtype, place);
  if (text === "0" || text === "1") return;
  reject(place, "bad-argument", "a number is not a bool", {
    found: text,
    expected: "0 or 1",
    help: "pad with 0 for false, or 1 for true",
  });
}

function removes({ before, after }: PadWidth): number {
  return Math.max(0, -before) + Math.max(0, -after);
}

/** Whether the axis stays as it is. */
export function isKept({ before, after }: PadWidth): boolean {
  return before === 0 && after === 0;
}

export const padRow: OpRow<PadOp> = {
  ...moves,
  operands: [1, 1],
  dtype: operandDType,
  shape: ({ widths }, operands) => ({
    axes: withoutReductions(at(operands, 0).domain.logical).map((axis, i) => {
      const width = at(widths, i);
      const { before, after } = width;
      return isKept(width) ? axis : { extent: foldAdd(axis.extent, constant(before + after)), iterType: "iteration" };
    }),
  }),
  respec: ({ widths, value }, operands, _, place) => {
    const pairs = widths.map(({ before, after }) => [before, after] as const);
    const spec = padSpec(at(operands, 0), pairs, 0, place);
    requireFits(value, at(operands, 0), place);
    return { ...spec, value };
  },
  pairs: ({ widths }, operands, output) =>
    zip(0, at(operands, 0), withoutReductions(output)).filter((_, i) => isKept(at(widths, i))),
  whole: ({ widths }, operands) =>
    at(operands, 0).flatMap((axis, i) => (isKept(at(widths, i)) ? [] : [{ operand: 0, axis }])),
  misfit: ({ widths }, { input }) => {
    const axis = widths.findIndex((width, i) => removes(width) > at(input, i));
    if (axis < 0) return null;
    return {
      code: "size-mismatch",
      message: `pad removes more elements than axis ${axis} has`,
      found: `${removes(at(widths, axis))} of ${at(input, axis)}`,
      expected: "at most the size of the axis",
      help: "pass a larger input, or remove fewer elements",
    };
  },
  sliced: (op, [cut]) => ({ ...op, widths: op.widths.filter((_, axis) => axis !== cut) }),
  work: (_, { output }) => elementWork * elementCount(output),
};

// Joins tensors along an axis, in order.

export interface CatOp extends OpBase {
  readonly kind: "Cat";
  readonly axis: number;
}

/** Throws `axis-out-of-range`, `shape-mismatch`. */
export function catSpec(tensors: readonly Tensor[], axis: number, place: Call): SpecOf<CatOp> {
  const resolved = resolveAxis(axis, rankOf(at(tensors, 0)), place);
  joinedAxes(tensors, resolved, place);
  return { kind: "Cat", axis: resolved };
}

export const catRow: OpRow<CatOp> = {
  ...moves,
  operands: [1, Number.MAX_SAFE_INTEGER],
  dtype: commonDType,
  shape: ({ axis }, operands, place) => ({ axes: joinedAxes(operands, axis, place) }),
  respec: ({ axis }, operands, _, place) => catSpec(operands, axis, place),
  pairs: ({ axis }, operands, output) =>
    operands.flatMap((axes, operand) => zip(operand, axes, withoutReductions(output)).toSpliced(axis, 1)),
  whole: ({ axis }, operands) => operands.map((axes, operand) => ({ operand, axis: at(axes, axis) })),
  sliced: (op, [cut]) => ({ ...op, axis: shifted(op.axis, cut) }),
  work: (_, { output }) => elementWork * elementCount(output),
};

function joinedAxes(operands: readonly Tensor[], axis: number, place: Call): readonly AxisShape[] {
  const shapes = operands.map(({ domain }) => withoutReductions(domain.logical));
  const [first = [], ...others] = shapes;
  const misfit = others.findIndex(
    (axes) => axes.length !== first.length || axes.some((own, i) => i !== axis && differ(own, at(first, i))),
  );
  if (misfit >= 0) {
    reject(place, "shape-mismatch", `cat joins tensors that differ in another axis than ${axis}`, {
      found: `${shapeText(at(operands, 0))} and ${shapeText(at(operands, misfit + 1))}`,
      expected: `equal extents on every axis but ${axis}`,
      help: "slice, pad or expand one of the tensors",
    });
  }
  return first.map((own, i): AxisShape => {
    const column = shapes.map((axes) => at(axes, i));
    return i === axis
      ? { extent: column.map(({ extent }) => extent).reduce(foldAdd), iterType: "iteration" }
      : commonAxis(own, column);
  });
}

function differ(a: AxisShape, b: AxisShape): boolean {
  return extentsDiffer(a.extent, b.extent);
}

/** A constant extent takes precedence over a symbol. */
function commonAxis({ extent }: AxisShape, column: Axes): AxisShape {
  const known = column.find((axis: IterDomain) => axis.extent.kind === "constant");
  const isBroadcast = column.every(({ iterType }) => iterType === "broadcast");
  return { extent: known?.extent ?? extent, iterType: isBroadcast ? "broadcast" : "iteration" };
}

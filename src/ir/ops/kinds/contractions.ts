/**
 * The rows of matmul and linear, and their common base. The contracted axis K is the trailing reduction axis of the
 * output's logical domain.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { type AxisShape, type IterDomain, type Tensor, withoutReductions } from "../../domain.ts";
import { constantValue, extentsDiffer, sameScalar } from "../../scalar/fold.ts";
import { type Call, reject, shapeText } from "../call.ts";
import { accumulatorOf, computedFloats, type DType, isComputed, isPacked } from "../../../numerics/dtype.ts";
import { numberDType } from "../dtype-rules.ts";
import type { Axes, AxisPair, OpBase, OpRow, Shapes } from "../row.ts";
import { joinAxes, rejectJoin } from "./elementwise.ts";
import { pair, shifted, zip, zipRight } from "./families.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** How an op reads operands. Only passes and hand-built host programs set it. */
export interface ReadsPermuted extends OpBase {
  /**
   * If not null, operand i is a permute of its tensor, read in place: its axis j is axis `orders[i][j]` of the tensor.
   */
  readonly orders?: readonly (readonly number[] | null)[];
}

/** How a contraction reads and writes memory. Only passes and hand-built host programs set these fields. */
export interface ContractionBase extends ReadsPermuted {
  /**
   * Set on an op that contracts one chunk of K. true: add the result to the output (beta = 1 of a BLAS), with one
   * rounding of the sum. false: write the first chunk. The output's reduction axis then prints the extent of all
   * chunks.
   */
  readonly accumulate?: boolean;
}

/** Takes the axes out of the orders in which the operands are read. */
export function slicedOrders<T extends ReadsPermuted>(op: T, cut: readonly (number | null)[]): T {
  if (op.orders === undefined) return op;
  const orders = op.orders.map((order, operand) =>
    order === null ? null : order.flatMap((axis) => (axis === cut[operand] ? [] : [shifted(axis, cut[operand])])),
  );
  return { ...op, orders };
}

const contraction = {
  standalone: true,
  isView: false,
  dtype: numberDType,
  misfit: () => null,
  sources: () => null,
  sliced: slicedOrders,
  // A bias and a previous output each add one operation per element.
  flops: ({ accumulate }: Pick<ContractionBase, "accumulate">, { operands, output }: Shapes) =>
    elementCount(output) * (2 * contractedSize(operands) + operands.length - 2 + (accumulate === true ? 1 : 0)),
  work: (_: unknown, { operands, output }: Shapes) => elementCount(output) * contractedSize(operands),
} as const satisfies Partial<OpRow<ContractionBase>>;

/** Valid for [.., M, K] and for [K]. */
function contractedSize(operands: Shapes["operands"]): number {
  return at(operands, 0).at(-1) ?? 1;
}

/** The axes of an operand, at least one. Throws `shape-mismatch`. */
function operandAxes(tensor: Tensor, place: Call): Axes {
  const axes = withoutReductions(tensor.domain.logical);
  if (axes.length > 0) return axes;
  return reject(place, "shape-mismatch", "an operand of a contraction is a scalar", {
    found: shapeText(tensor),
    expected: "at least one axis",
    help: "give the operand at least one axis; mul() multiplies tensors of equal shape",
  });
}

/** K does not broadcast: an extent of 1 matches only 1. Throws `shape-mismatch`. */
function contract(a: Tensor, left: IterDomain, b: Tensor, right: IterDomain, place: Call): AxisShape {
  if (extentsDiffer(left.extent, right.extent)) {
    reject(place, "shape-mismatch", "the contracted axes have different extents", {
      found: `${shapeText(a)} and ${shapeText(b)}`,
      expected: "the last axis of the first operand and the contracted axis of the second with equal extents",
      help: "matmul contracts [.., M, K] with [.., K, N]; linear contracts [.., K] with [N, K]",
    });
  }
  return { extent: left.extent, iterType: "reduction" };
}

/** Pairs the contracted axis of an operand with the output's. It does not broadcast, also where one operand's is 1. */
export function contractedPair(operand: number, axis: IterDomain | undefined, output: Axes): readonly AxisPair[] {
  const reduced = output.at(-1);
  return axis === undefined || reduced?.iterType !== "reduction"
    ? []
    : [{ ...pair(operand, axis, reduced), broadcast: false }];
}

/** The axes of partial results, which follow the op's first `count` output axes. */
function partialAxes(output: Axes, count: number): Axes {
  return withoutReductions(output).slice(count);
}

// torch.matmul: a [.., M, K] or [K], b [.., K, N] or [K] -> [.., M, N, rK]. An operand [K] drops M or N from the
// output. Batch axes broadcast. A batch axis that is also contracted becomes a reduction axis at the same place in the
// output.

export interface MatmulOp extends ContractionBase {
  readonly kind: "Matmul";
  /** Of 16-bit floats: float, in which they are summed. The operands' dtype if omitted. */
  readonly to?: DType;
}

export const matmulRow: OpRow<MatmulOp> = {
  ...contraction,
  operands: [2, 2],
  dtype: ({ to }, operands, place) => {
    const dtype = numberDType(to, operands, place);
    if (to === undefined) return dtype;
    if (isPacked(dtype) && to === accumulatorOf(dtype)) return to;
    return reject(place, "dtype-mismatch", "a matmul gives no such dtype", {
      found: `${dtype} operands, ${to}`,
      expected: "the dtype of the operands, or float of half and bfloat16",
      help: "convert the result with cast()",
    });
  },
  shape: (_, operands, place) => ({ axes: matmulAxes(at(operands, 0), at(operands, 1), place) }),
  respec: (op) => op,
  pairs: (_, operands, output) => matmulPairs(at(operands, 0), at(operands, 1), output),
  partial: (_, operands, output) => {
    const [a, b] = [at(operands, 0), at(operands, 1)];
    const batch = Math.max(a.length - 2, b.length - 2, 0);
    return partialAxes(output, batch + (a.length > 1 ? 1 : 0) + (b.length > 1 ? 1 : 0));
  },
  whole: (_, operands) => {
    const [a, b] = [at(operands, 0), at(operands, 1)];
    return [
      { operand: 0, axis: at(a, a.length - 1) },
      { operand: 1, axis: at(b, Math.max(b.length - 2, 0)) },
    ];
  },
};

function matmulAxes(a: Tensor, b: Tensor, place: Call): readonly AxisShape[] {
  const left = operandAxes(a, place);
  const right = operandAxes(b, place);
  const contracted = contract(a, at(left, left.length - 1), b, at(right, Math.max(right.length - 2, 0)), place);
  const leftBatch = left.slice(0, -2);
  const rightBatch = right.slice(0, -2);
  const count = Math.max(leftBatch.length, rightBatch.length);
  const batch = Array.from({ length: count }, (_, i): AxisShape => {
    const x = leftBatch[i - count + leftBatch.length];
    const y = rightBatch[i - count + rightBatch.length];
    if (x === undefined) return at(right, i);
    if (y === undefined) return x;
    return joinAxes(x, y) ?? rejectJoin(a, b, i, place);
  });
  const rows = left.length > 1 ? [at(left, left.length - 2)] : [];
  const columns = right.length > 1 ? [at(right, right.length - 1)] : [];
  return [...batch, ...rows, ...columns, contracted];
}

function matmulPairs(a: Axes, b: Axes, output: Axes): readonly AxisPair[] {
  const kept = output.at(-1)?.iterType === "reduction" ? output.slice(0, -1) : output;
  const hasM = a.length > 1;
  const hasN = b.length > 1;
  const rows = hasN ? kept.slice(0, -1) : kept;
  const batch = hasM ? rows.slice(0, -1) : rows;
  return [
    ...zipRight(0, a.slice(0, -1), hasM ? rows : []),
    ...contractedPair(0, a.at(-1), output),
    ...zipRight(1, hasN ? b.slice(0, -2) : [], batch),
    ...contractedPair(1, hasN ? b.at(-2) : b[0], output),
    ...zipRight(1, hasN ? b.slice(-1) : [], kept),
  ];
}

// torch.nn.functional.linear: x [.., K], weight [N, K] or [K], bias [N] or [] -> [.., N, rK]. With a weight [K] the
// output has no N.
//
// With `to`, x and weight only store numbers, and two scales follow them in place of the bias: of x one or one per row,
// [] or [..], and of weight one or one per output feature, [] or [N]. Products are summed in float, multiplied by both
// scales, and rounded to `to`. Or both have a scale for each block of 128 along K: that of x is [.., K/128], and that of
// weight [N, K/128], or [N/128, K/128] for blocks of 128 x 128, of which the last may have fewer rows. The first axes of x
// may number weights, [B, N, K]: scales are then [], [B], or as above with B in front.

export interface LinearOp extends ContractionBase {
  readonly kind: "Linear";
  readonly to?: DType;
  /** With `to`: sums may be kept in the fewer bits of tensor cores, as by use_fast_accum of torch._scaled_mm. */
  readonly fastAccumulation?: true;
}

export function fastAccumulationOf({ fastAccumulation }: LinearOp): Pick<LinearOp, "fastAccumulation"> {
  return fastAccumulation === undefined ? {} : { fastAccumulation };
}

/** Whether the op multiplies its sums by scales. */
export function isScaled(op: { readonly kind: string; readonly to?: DType }): boolean {
  return op.kind === "Linear" && op.to !== undefined;
}

export const linearRow: OpRow<LinearOp> = {
  ...contraction,
  operands: [2, 4],
  dtype: ({ to }, operands, place) =>
    to === undefined ? numberDType(to, operands, place) : scaledDType(to, operands, place),
  shape: ({ to }, operands, place) => {
    const [x, weight] = [at(operands, 0), at(operands, 1)];
    const axes = linearAxes(x, weight, to === undefined ? (operands[2] ?? null) : "scales", place);
    if (to !== undefined) requireScales(operands, axes, place);
    return { axes };
  },
  respec: (op) => op,
  pairs: ({ to }, operands, output) => {
    const [x, weight, third = [], scale = []] = operands;
    if (to === undefined) return linearPairs(at(operands, 0), at(operands, 1), third, output);
    if (hasBlocks(third, x ?? [])) return blockPairs(operands, output);
    const kept = withoutReductions(output);
    const batch = (weight ?? []).slice(0, -2).length;
    const ofWeight = [...zip(3, scale.slice(0, batch), kept), ...zipRight(3, scale.slice(batch), kept)];
    return [...linearPairs(x ?? [], weight ?? [], [], output), ...zip(2, third, kept), ...ofWeight];
  },
  misfit: ({ to }, { operands }) => {
    const k = operands()[0]?.at(-1) ?? 0;
    return to === undefined || k % scaledStep === 0 ? null : { code: "size-mismatch", ...oddDepth(k, scaledStep) };
  },
  partial: (_, operands, output) =>
    partialAxes(output, Math.max(at(operands, 0).length - 1, 0) + Math.min(at(operands, 1).length - 1, 1)),
  whole: ({ to }, operands) =>
    operands.flatMap((axes, operand) => {
      const isContracted = operand < 2 || (to !== undefined && hasBlocks(axes, at(operands, operand - 2)));
      return isContracted ? [{ operand, axis: at(axes, axes.length - 1) }] : [];
    }),
};

/** Tensor cores and cuBLASLt take 16 elements of 8 bits at once. */
const scaledStep = 16;

/** Elements of K, and rows of a weight, that one scale of a block is of. */
export const scaledBlock = 128;

/** Whether the scale of an operand, both given by their axes, is of blocks: then it has an axis for K, too. */
export function hasBlocks(scale: readonly unknown[], operand: readonly unknown[]): boolean {
  return scale.length === operand.length;
}

/**
 * K, and N where blocks have many rows, are cut in whole blocks or not at all. A last block of fewer rows begins at no
 * multiple of anything, so N is then not cut.
 */
function blockPairs(
  [x = [], weight = [], ofX = [], ofWeight = []]: readonly Axes[],
  output: Axes,
): readonly AxisPair[] {
  const kept = withoutReductions(output);
  const [k, own, rows] = [ofX.at(-1), ofWeight.at(-2), weight.at(-2)];
  if (k === undefined) return [];
  const contracted = [2, 3].flatMap((operand) =>
    contractedPair(operand, (operand === 2 ? ofX : ofWeight).at(-1), output),
  );
  const pairs = linearPairs(x, weight, [], output).map((each) =>
    each.consumer.iterType === "reduction" ? { ...each, blocks: k.extent } : each,
  );
  const others = [
    ...contracted.map((each) => ({ ...each, outermost: true, blocks: k.extent })),
    ...zip(2, ofX.slice(0, -1), kept),
    ...zip(3, ofWeight.slice(0, -2), kept),
  ];
  if (own === undefined || rows === undefined) return [...pairs, ...others];
  const [ofRows] = zipRight(3, [own], kept);
  if (ofRows === undefined) return [...pairs, ...others];
  if (sameScalar(own.extent, rows.extent) || ofRows.broadcast) return [...pairs, ...others, ofRows];
  const isOfRows = (each: AxisPair): boolean => each.operand === 1 && each.producer.id === rows.id;
  if ((constantValue(rows.extent) ?? 1) % scaledBlock !== 0)
    return [...pairs.filter((each) => !isOfRows(each)), ...others];
  const blocks = own.extent;
  return [
    ...pairs.map((each) => (isOfRows(each) ? { ...each, blocks } : each)),
    ...others,
    { ...ofRows, outermost: true, blocks },
  ];
}

function oddDepth(k: number, step: number): Pick<Diagnostic, "message" | "found" | "expected" | "help"> {
  return {
    message: `K of a scaled matmul is no multiple of ${step}`,
    found: String(k),
    expected: `a multiple of ${step} on every device`,
    help: "pad both operands with zeros",
  };
}

/** Throws `dtype-mismatch`. */
function scaledDType(to: DType, operands: readonly Tensor[], place: Call): DType {
  const refuse = (what: string, found: string, expected: string): never =>
    reject(place, "dtype-mismatch", `${what} of a scaled matmul has another dtype`, {
      found,
      expected,
      help: "convert it with cast()",
    });
  operands.forEach(({ dtype, id }, i) => {
    const fits = i < 2 ? !isComputed(dtype) : dtype === "float";
    const [what, expected] = i < 2 ? ["an operand", "float8_e4m3fn or float8_e5m2"] : ["a scale", "float"];
    if (!fits) refuse(what, `T${id} ${dtype}`, expected);
  });
  const fits = to !== "double" && computedFloats.some((dtype) => dtype === to);
  return fits ? to : refuse("the result", to, "bfloat16, half or float");
}

/** Throws `shape-mismatch`. */
function requireScales(operands: readonly Tensor[], axes: readonly AxisShape[], place: Call): void {
  const [x = [], weight = [], ofX = [], ofWeight = []] = [0, 1, 2, 3].map((i) =>
    withoutReductions(at(operands, i).domain.logical),
  );
  const batch = Math.max(weight.length - 2, 0);
  const inBlocks = hasBlocks(ofX, x) || hasBlocks(ofWeight, weight);
  const areSame = (scale: Axes, own: Axes): boolean =>
    scale.every(({ extent }, i) => !extentsDiffer(extent, at(own, i).extent));
  const fits = (scale: Axes, operand: Axes, mayHaveRows: boolean): boolean => {
    const own = operand.slice(0, -1);
    if (!inBlocks) return [0, batch, own.length].includes(scale.length) && areSame(scale, own);
    if (!hasBlocks(scale, operand) || !areBlocks(scale.at(-1), operand.at(-1))) return false;
    const [rows, ofRows] = [own.at(-1), scale.at(-2)];
    return mayHaveRows && rows !== undefined && ofRows !== undefined && !sameScalar(rows.extent, ofRows.extent)
      ? areSame(scale.slice(0, -2), own) && areBlocks(ofRows, rows)
      : areSame(scale.slice(0, -1), own);
  };
  const extent = axes.at(-1)?.extent;
  const k = extent === undefined ? null : constantValue(extent);
  const step = inBlocks ? scaledBlock : scaledStep;
  if (!fits(ofX, x, false) || !fits(ofWeight, weight, true)) {
    reject(place, "shape-mismatch", "the scales of a scaled matmul do not fit", {
      found: operands.map(shapeText).join(", "),
      expected: "of both operands one scale or one per row, or of both one per block of K, which is a number",
      help: "quantize() gives scales that fit",
    });
  }
  if (k !== null && k % step !== 0) reject(place, { code: "shape-mismatch", ...oddDepth(k, step) });
}

/** Whether each 128 of the axis have a scale. Extents are numbers: a symbolic one could be either's. */
function areBlocks(scale: IterDomain | undefined, own: IterDomain | undefined): boolean {
  const [count, extent] = [scale, own].map((axis) => (axis === undefined ? null : constantValue(axis.extent)));
  return typeof extent === "number" && count === Math.ceil(extent / scaledBlock);
}

function linearAxes(x: Tensor, weight: Tensor, bias: Tensor | "scales" | null, place: Call): readonly AxisShape[] {
  const rows = operandAxes(x, place);
  const columns = operandAxes(weight, place);
  const numbered = columns.slice(0, -2).every(({ extent }, i) => !extentsDiffer(extent, at(rows, i).extent));
  if (columns.length > 2 && !(bias === "scales" && columns.length <= rows.length + 1 && numbered)) {
    reject(place, "shape-mismatch", "the weight of linear has too many axes", {
      found: shapeText(weight),
      expected: "[N, K], or [K] for a single output feature",
      help: "use matmul() for batched weights",
    });
  }
  const contracted = contract(x, at(rows, rows.length - 1), weight, at(columns, columns.length - 1), place);
  const features = columns.slice(-2, -1);
  if (bias !== null && bias !== "scales") requireBias(bias, weight, features, place);
  return [...rows.slice(0, -1), ...features, contracted];
}

function requireBias(bias: Tensor, weight: Tensor, features: Axes, place: Call): void {
  const axes = withoutReductions(bias.domain.logical);
  const fits =
    axes.length === features.length && axes.every((axis, i) => !extentsDiffer(axis.extent, at(features, i).extent));
  if (fits) return;
  reject(place, "shape-mismatch", "the bias does not fit the weight", {
    found: `${shapeText(bias)} for the weight ${shapeText(weight)}`,
    expected: "one axis [N], with the extent of the weight's first axis",
    help: "give the bias one element per output feature",
  });
}

function linearPairs(x: Axes, weight: Axes, bias: Axes, output: Axes): readonly AxisPair[] {
  const kept = withoutReductions(output);
  return [
    ...zip(0, x.slice(0, -1), kept),
    ...contractedPair(0, x.at(-1), output),
    ...zip(1, weight.slice(0, -2), kept),
    ...zipRight(1, weight.slice(-2, -1), kept),
    ...contractedPair(1, weight.at(-1), output),
    ...zipRight(2, bias, kept),
  ];
}

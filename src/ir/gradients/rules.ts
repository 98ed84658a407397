/** The rules of reverse mode: one row per kind of op. Null if no kind of operand has a cotangent. */
import { dtypes, isComputed } from "../../numerics/dtype.ts";
import { at, unreachable } from "../../support/invariant.ts";
import {
  attentionGradientOps,
  biasGradientOps,
  furtherOperand,
  transposed,
} from "../api/ops/compositions/attention.ts";
import {
  broadcast,
  cast,
  cat,
  div,
  eq,
  expand,
  gather,
  groupedMatmul,
  isnan,
  logicalAnd,
  logicalOr,
  matmul,
  mul,
  pad,
  permute,
  reshape,
  scatterAdd,
  sdpaBackward,
  type SdpaGradients,
  slice,
  squeeze,
  unsqueeze,
  where,
} from "../api/ops.ts";
import { callOf } from "../api/ops/apply.ts";
import { indicesAlong, inDType, scatterSet, wide } from "../api/ops/compositions/compose.ts";
import { scan } from "../api/ops/ordered.ts";
import type { TensorView } from "../api/tensor-view.ts";
import { hasGroupMatrices } from "../ops/kinds/grouped.ts";
import { type NumberOperand, numberValue } from "../ops/number-operand.ts";
import type { BinaryOp, LinearOp, MatmulOp, Op, OpKind, ScanOp, SdpaOp, SliceOp } from "../ops/op.ts";
import { constantValue, foldAdd, foldMul, foldProduct, foldSub, isConstant, sameScalar } from "../scalar/fold.ts";
import { constant, type Scalar } from "../scalar/scalar.ts";
import { binaryVjps, type FunctionOperand, reductionVjps, unaryVjps } from "./functions.ts";
import { type Cotangent, filled, isStretched, type ReverseStep, sumTo, type Vjp } from "./vjp.ts";

// The rules of matmul and linear. Batch and row axes along which an operand is stretched are merged into the
// contraction, instead of a sum over the results of a batch. The sums of 16-bit operands accumulate in float32, as in
// any contraction, and round once.

/** y[.., N] = x[.., K] w[N, K] + b[N]; without N if w is [K]. */
const linearVjp: Vjp<LinearOp> = (_, { g, operands }) => {
  const [x, weight] = [at(operands, 0), at(operands, 1)];
  const cotangents = [() => linearInput(g, weight), () => linearWeight(g, x, weight)];
  if (operands.length === 2) return cotangents;
  return [...cotangents, () => sumTo(g, at(operands, 2))];
};

function linearInput(g: TensorView, weight: TensorView): TensorView {
  if (weight.rank === 2) return matmul(g, weight);
  const flags = Array.from({ length: g.rank + 1 }, (_, axis) => axis < g.rank);
  return mul(unsqueeze(g, -1), broadcast(weight, flags));
}

function linearWeight(g: TensorView, x: TensorView, weight: TensorView): TensorView {
  const hasN = weight.rank === 2;
  if (x.rank === 1) return hasN ? mul(unsqueeze(g, 1), unsqueeze(x, 0)) : mul(x, g);
  return hasN ? matmul(transposed(rowsOf(g)), rowsOf(x)) : matmul(reshape(g, [foldProduct(g.extents)]), rowsOf(x));
}

/** y[.., M, N] = a[.., M, K] b[.., K, N]. An operand of one axis is taken as one row or column. */
const matmulVjp: Vjp<MatmulOp> = ({ to }, { g, operands }) => {
  // A wider result has a cotangent of its dtype, as products with it have.
  const { dtype } = at(operands, 0);
  const [first, second] = [inDType(at(operands, 0), to ?? dtype), inDType(at(operands, 1), to ?? dtype)];
  const [isRow, isColumn] = [first.rank === 1, second.rank === 1];
  const a = (): TensorView => (isRow ? unsqueeze(first, 0) : first);
  const b = (): TensorView => (isColumn ? unsqueeze(second, 1) : second);
  const whole = (): TensorView => {
    const rows = isRow ? unsqueeze(g, isColumn ? -1 : -2) : g;
    return isColumn ? unsqueeze(rows, -1) : rows;
  };
  return [
    () => inDType(asVector(leftOperand(whole(), a(), b()), isRow, 0), dtype),
    () => inDType(asVector(rightOperand(whole(), a(), b()), isColumn, 1), dtype),
  ];
};

function asVector(x: TensorView, isVector: boolean, axis: 0 | 1): TensorView {
  return isVector ? reshape(x, [at(x.extents, 1 - axis)]) : x;
}

/** The ends have no gradient. */
function groupedVjp(_: unknown, { g, operands }: ReverseStep): readonly Cotangent[] {
  const [x, y, ends] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const perGroup = hasGroupMatrices(x.extents, y.extents);
  return [
    () => sumTo(perGroup ? groupedMatmul(g, transposed(y), ends) : groupedMatmul(y, transposed(g), ends), x),
    () => sumTo(groupedMatmul(x, g, ends), y),
    null,
  ];
}

/** g b^T */
function leftOperand(g: TensorView, a: TensorView, b: TensorView): TensorView {
  const batch = g.rank - 2;
  if (!isMergeable(g, a, b)) return sumTo(matmul(g, transposed(b)), a);
  const outermost = [batch, ...Array.from({ length: batch }, (_, axis) => axis), batch + 1];
  const columns = permute(g, outermost);
  const merged = reshape(columns, [at(g.extents, batch), foldProduct(columns.extents.slice(1))]);
  return inBatch(matmul(merged, rowsOf(transposed(b))), a);
}

/** a^T g */
function rightOperand(g: TensorView, a: TensorView, b: TensorView): TensorView {
  if (!isMergeable(g, b, a)) return sumTo(matmul(transposed(a), g), b);
  return inBatch(matmul(transposed(rowsOf(a)), rowsOf(g)), b);
}

/** Whether `operand` is the same for the whole batch, and the other operand has every batch axis. */
function isMergeable(g: TensorView, operand: TensorView, other: TensorView): boolean {
  const batch = g.rank - 2;
  return batch > 0 && other.rank === g.rank && isStretched(operand, operand.rank - 2);
}

/** Adds the batch axes of extent 1 that `operand` has. */
function inBatch(x: TensorView, { rank }: TensorView): TensorView {
  if (rank === 2) return x;
  return broadcast(
    x,
    Array.from({ length: rank }, (_, axis) => axis < rank - 2),
  );
}

/** [.., K] as [R, K]. */
function rowsOf(x: TensorView): TensorView {
  if (x.rank === 2) return x;
  return reshape(x, [foldProduct(x.extents.slice(0, -1)), at(x.extents, x.rank - 1)]);
}

export const vjps: { readonly [K in OpKind]: Vjp<Extract<Op, { readonly kind: K }>> | null } = {
  // The cotangent gets the sharding of the set's input: a gather becomes a reduce-scatter.
  Set: (_, { g }) => [() => g],
  // 16-bit floats are computed in float, and rounded once.
  Unary: ({ op }, { g, operands, output }) => {
    const rule = unaryVjps[op];
    const x = at(operands, 0);
    const applied = {
      get x() {
        return wide(x);
      },
      get y() {
        return wide(output);
      },
    };
    return [rule === null ? null : () => inDType(rule(wide(g), applied), x.dtype)];
  },
  Cast: (_, { g, operands }) => {
    const { dtype } = at(operands, 0);
    return [dtypes[dtype].family === "float" && isComputed(dtype) ? () => cast(g, dtype) : null];
  },
  Binary: binaryVjp,
  Ternary: ({ scalar }, { g, operands }) => {
    const condition = at(operands, 0);
    const taken = [() => where(condition, g, 0), () => where(condition, 0, g)].filter(
      (_, i) => scalar?.position !== i + 1,
    );
    return [
      null,
      ...taken.map(
        (each, i): Cotangent =>
          () =>
            sumTo(each(), at(operands, i + 1)),
      ),
    ];
  },
  Reduction: ({ op, axes }, { g, operands, output }) => {
    const rule = reductionVjps[op];
    return [rule === null ? null : () => rule(g, at(operands, 0), output, axes)];
  },
  Broadcast: ({ flags }, { g }) => [
    () =>
      squeeze(
        g,
        [...flags.keys()].filter((axis) => flags[axis]),
      ),
  ],
  Expand: (_, { g, operands }) => [() => sumTo(g, at(operands, 0))],
  Squeeze: ({ axes }, { g, operands }) => {
    const flags = Array.from({ length: at(operands, 0).rank }, (_, axis) => axes.includes(axis));
    return [() => broadcast(g, flags)];
  },
  Permute: ({ order }, { g }) => [
    () =>
      permute(
        g,
        order.map((_, axis) => order.indexOf(axis)),
      ),
  ],
  Reshape: (_, { g, operands }) => [() => reshape(g, at(operands, 0).extents)],
  Slice: ({ ranges }, { g, operands }) => [() => sliceCotangent(g, at(operands, 0), ranges)],
  Select: ({ axis, index }, { g, operands }) => [
    () => {
      const x = at(operands, 0);
      const range = { start: index, stop: foldAdd(index, constant(1)) };
      const whole = { start: constant(0), stop: at(x.extents, 0) };
      return sliceCotangent(
        unsqueeze(g, axis),
        x,
        x.extents.map((stop, i) => (i === axis ? range : { ...whole, stop })),
      );
    },
  ],
  Pad: ({ widths }, { g }) => [
    () =>
      pad(
        g,
        widths.map(({ before, after }) => [-before, -after]),
      ),
  ],
  Cat: ({ axis }, { g, operands }) => operands.map((_, operand) => () => partOf(g, operands, axis, operand)),
  IndexSelect: ({ axis }, { g, operands }) => [
    () => {
      const x = at(operands, 0);
      return scatterAdd(filled(x, x.extents, 0), axis, ...rowsAt(axis, at(operands, 1), g));
    },
    null,
  ],
  Gather: ({ axis }, { g, operands }) => [() => gatherCotangent(g, at(operands, 0), axis, at(operands, 1)), null],
  ScatterAdd: ({ axis, sets }, { g, operands }) => {
    const index = at(operands, 1);
    const kept = (): TensorView => scatterSet(g, axis, index, filled(g, index.extents, 0));
    return [() => (sets !== undefined ? kept() : g), null, () => gather(g, axis, index)];
  },
  Scan: scanVjp,
  Argsort: null,
  Matmul: matmulVjp,
  Linear: linearVjp,
  GroupedMatmul: groupedVjp,
  Full: null,
  Iota: null,
  RandomBits: null,
  Sdpa: sdpaVjp,
  SdpaBackward: null,
};

function sdpaVjp({ causal, window, scale }: SdpaOp, { g, operands, outputs }: ReverseStep): readonly Cotangent[] {
  const [q, k, v] = [at(operands, 0), at(operands, 1), at(operands, 2)];
  const results = { output: at(outputs, 0), logsumexp: at(outputs, 1) };
  const options = { causal, window, ...(scale === null ? {} : { scale: Number(scale) }) };
  const further = furtherOperand(operands[3], q);
  const { mask, keyLengths } = further;
  const attributes = { ...options, scale: options.scale ?? null };
  let made: SdpaGradients | null = null;
  // Rows that a mask of all of them makes independent may be on devices, which gradients by one kernel would gather.
  const rows = mask?.extents.at(-2);
  const isByRows = causal === null && rows !== undefined && !isConstant(rows, 1);
  const make = (): SdpaGradients =>
    keyLengths === undefined && !isByRows
      ? sdpaBackward(g, q, k, v, results, { ...options, ...(mask && { mask }) })
      : attentionGradientOps(g, [q, k, v], results, { ...attributes, ...further });
  const gradients = (): SdpaGradients => (made ??= make());
  return [
    () => gradients().dq,
    () => gradients().dk,
    () => gradients().dv,
    mask === undefined ? null : () => biasGradientOps(g, [q, k, v], results, { ...attributes, mask }),
  ].slice(0, operands.length);
}

/** Of a maximum or minimum: g at the last element that is equal to it, or at the last NaN. */
function scanVjp({ op, axis, reverse }: ScanOp, { g, operands, output }: ReverseStep): readonly Cotangent[] {
  const x = at(operands, 0);
  switch (op) {
    case "sum":
      return [() => scan("sum", g, axis, !reverse)];
    case "prod":
      return [() => productScanCotangent(g, x, output, axis, reverse)];
    case "amax":
    case "amin":
      return [() => gatherCotangent(g, x, axis, extremumPlaces(x, output, axis, reverse))];
    default:
      return unreachable(op);
  }
}

/**
 * The sum over later results of g y / x. The first 0 divides nothing: it has the products without it. Elements after it
 * have factors of 0 alone.
 */
function productScanCotangent(g: TensorView, x: TensorView, y: TensorView, axis: number, reverse: boolean): TensorView {
  const isZero = eq(x, 0);
  const zeros = scan("sum", cast(isZero, "int64"), axis, reverse);
  const isFirst = logicalAnd(isZero, eq(zeros, 1));
  const kept = where(isFirst, 1, x);
  const before = div(scan("sum", mul(g, y), axis, !reverse), kept);
  const here = scan("sum", mul(g, scan("prod", kept, axis, reverse)), axis, !reverse);
  return where(eq(zeros, 0), before, where(isFirst, here, 0));
}

/** The index of the last element so far that is the extremum. */
function extremumPlaces(x: TensorView, y: TensorView, axis: number, reverse: boolean): TensorView {
  const isExtremum = logicalOr(eq(x, y), isnan(x));
  const indices = indicesAlong(x, axis, callOf("scan", [x], axis));
  const places = where(isExtremum, indices, reverse ? Number.MAX_SAFE_INTEGER : -1);
  return scan(reverse ? "amin" : "amax", places, axis, reverse);
}

function binaryVjp({ op, scalar }: BinaryOp, { g, operands, output }: ReverseStep): readonly Cotangent[] {
  const [a, b] = withNumber(operands, scalar);
  return operands.map((operand, i): Cotangent => {
    const rule = at(binaryVjps[op], scalar === undefined ? i : 1 - scalar.position);
    return rule === null ? null : () => sumTo(rule(g, a, b, output), operand);
  });
}

/** Both operands, of which one may be a number. */
function withNumber(
  operands: readonly TensorView[],
  number?: NumberOperand,
): readonly [FunctionOperand, FunctionOperand] {
  const first = at(operands, 0);
  if (number === undefined) return [first, at(operands, 1)];
  const value = Number(numberValue(number, "f64"));
  return number.position === 0 ? [value, first] : [first, value];
}

// The rules of ops that move elements: zeros around a cotangent, its parts, or its sums at indices.

type Range = SliceOp["ranges"][number];

/** `g` at the indices of `ranges`, zeros elsewhere, in the shape of `x`. */
function sliceCotangent(g: TensorView, x: TensorView, ranges: readonly Range[]): TensorView {
  return ranges.reduce((result, range, axis) => zerosAround(result, x, range, axis), g);
}

/** The same along one axis. */
export function zerosAround(g: TensorView, x: TensorView, { start, stop, step = 1 }: Range, axis: number): TensorView {
  const extent = at(x.extents, axis);
  const [first, count] = [constantValue(start), at(g.extents, axis)];
  // Every index has its place in its step: an axis that devices share stays where it is.
  const isWhole = first !== null && first < step && sameScalar(foldMul(count, constant(step)), extent);
  if (step > 1 && isWhole) return inSteps(g, axis, first, step);
  const span = step === 1 ? g : withGaps(g, axis, step, foldSub(stop, start));
  const [before, after] = [start, sameScalar(extent, stop) ? constant(0) : foldSub(extent, stop)];
  if (isConstant(before, 0) && isConstant(after, 0)) return span;
  const widths = [constantValue(before), constantValue(after)] as const;
  if (widths[0] !== null && widths[1] !== null) {
    const known: readonly [number, number] = [widths[0], widths[1]];
    return pad(
      span,
      span.extents.map((_, i) => (i === axis ? known : [0, 0])),
    );
  }
  const zeros = (size: Scalar): readonly TensorView[] =>
    isConstant(size, 0) ? [] : [filled(x, span.extents.with(axis, size), 0)];
  return cat([...zeros(before), span, ...zeros(after)], axis);
}

/** Index number `first` of each step has one of `g`, the others zeros. */
function inSteps(g: TensorView, axis: number, first: number, step: number): TensorView {
  const column = unsqueeze(g, axis + 1);
  const padded = pad(
    column,
    column.extents.map((_, i) => (i === axis + 1 ? [first, step - 1 - first] : [0, 0])),
  );
  return reshape(padded, g.extents.with(axis, foldMul(at(g.extents, axis), constant(step))));
}

/** `step - 1` zeros after each index, up to `length` indices. */
function withGaps(g: TensorView, axis: number, step: number, length: Scalar): TensorView {
  const long = inSteps(g, axis, 0, step);
  return slice(
    long,
    long.extents.map(() => 0),
    long.extents.with(axis, length),
  );
}

/** What an indexSelect has read along `axis`, as a scatter takes it: an index for each element of the rows, and the rows. */
export function rowsAt(
  axis: number,
  index: TensorView,
  read: TensorView,
): readonly [index: TensorView, rows: TensorView] {
  const { rank } = index;
  const flat = rank === 1 ? index : reshape(index, [foldProduct(index.extents)]);
  const rows = rank === 1 ? read : reshape(read, read.extents.toSpliced(axis, rank, at(flat.extents, 0)));
  const flags = rows.extents.map((_, i) => i !== axis);
  return [expand(broadcast(flat, flags), rows.extents), rows];
}

/** The sums of `g` at the indices along `axis` of `x` that a gather has read. */
function gatherCotangent(g: TensorView, x: TensorView, axis: number, index: TensorView): TensorView {
  return scatterAdd(filled(x, x.extents, 0), axis, index, g);
}

/** The indices of one operand of a cat. */
function partOf(g: TensorView, operands: readonly TensorView[], axis: number, operand: number): TensorView {
  const extents = operands.map((each) => at(each.extents, axis));
  const start = extents.slice(0, operand).reduce(foldAdd, constant(0));
  const stop = foldAdd(start, at(extents, operand));
  return slice(
    g,
    g.extents.map((_, i) => (i === axis ? start : 0)),
    g.extents.with(axis, stop),
  );
}

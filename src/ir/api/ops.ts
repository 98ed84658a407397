/**
 * The operations of the Fusion API. Each call appends one op and returns a handle on its output, which has no
 * transforms yet. Binary and transcendental ops also append the casts that convert their operands to one dtype.
 *
 * Axis numbers count the axes that the tensor has at run time, from 0, or from -1 at the end. Shapes below are whole
 * shapes.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { type Call, call, type CallArgument } from "../ops/call.ts";
import { type Extent, extentIn, extentText } from "./extent.ts";
import { addOp, markTensor } from "./fusion-builder.ts";
import { unaryFunctions } from "../ops/functions/unary.ts";
import { binaryAxes } from "../ops/kinds/binary.ts";
import type { BinaryOpType, OpSpec, ReductionOpType, UnaryOpType } from "../ops/op.ts";
import { broadcastSpec } from "../ops/kinds/broadcast.ts";
import { permuteSpec } from "../ops/kinds/permute.ts";
import { reductionSpec } from "../ops/kinds/reduction.ts";
import { reshapeSpec } from "../ops/kinds/reshape.ts";
import { selectSpec } from "../ops/kinds/select.ts";
import { sliceSpec } from "../ops/kinds/slice.ts";
import { squeezeSpec } from "../ops/kinds/squeeze.ts";
import { promoteDTypes } from "../ops/dtype-rules.ts";
import { operandArguments, promoteNumber, requireNumberFits, splitOperands } from "../ops/number-operand.ts";
import type { Scalar } from "../scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { requireDType } from "./fusion.ts";
import { commonBuilder, internals, requireTensor } from "./handle.ts";
import { TensorView } from "./tensor-view.ts";

function apply(spec: OpSpec, operands: readonly TensorView[], place: Call): TensorView {
  const builder = commonBuilder(operands, place);
  const inputs = operands.map((operand) => operand[internals].id);
  const id = addOp(builder, spec, inputs, place);
  markTensor(builder, id);
  return new TensorView({ builder, id });
}

function callOf(name: string, operands: readonly TensorView[], ...args: readonly CallArgument[]): Call {
  operands.forEach((operand, i) => {
    requireTensor(operand, name, i);
  });
  const text = call(name, ...operands.map((operand) => ({ tensor: operand.id })), ...args);
  return { ...text, tensors: at(operands, 0)[internals].builder.tensors };
}

function castTo(tensor: TensorView, to: DType, place: Call): TensorView {
  return tensor.dtype === to ? tensor : apply({ kind: "Cast", to }, [tensor], place);
}

/** A copy, of the same shape and dtype. Use it to change the sharding. Throws `bad-argument`. */
export function set(tensor: TensorView): TensorView {
  return apply({ kind: "Set" }, [tensor], callOf("set", [tensor]));
}

/** An operand of `add`, `sub`, `mul` and `div`; at least one of the two is a tensor. */
export type BinaryOperand = TensorView | number | bigint;

function binary(op: BinaryOpType, a: BinaryOperand, b: BinaryOperand): TensorView {
  const { tensors, number } = splitOperands(op, a, b);
  tensors.forEach((tensor, i) => {
    requireTensor(tensor, op, number.scalar?.position === 0 ? 1 : i);
  });
  const text = call(op, ...operandArguments(tensors, number.scalar));
  const place: Call = { ...text, tensors: at(tensors, 0)[internals].builder.tensors };
  commonBuilder(tensors, place);
  const first = at(tensors, 0);
  const second = tensors[1] ?? first;
  const { scalar } = number;
  // Checked before the casts are appended, so that a failing call changes nothing.
  if (first.rank > 0 && second.rank > 0) binaryAxes(first.data(), second.data(), place);
  const dtype = scalar === undefined ? commonDType(first, second) : promoteNumber(first.dtype, scalar);
  if (scalar !== undefined) requireNumberFits(scalar, dtype, place);
  const rank = Math.max(first.rank, second.rank);
  const operands = tensors.map((tensor) => stretchTo(castTo(tensor, dtype, place), rank, place));
  return apply({ kind: "Binary", op, ...number }, operands, place);
}

/** As in PyTorch, a tensor without axes does not widen a dtype of its family. */
function commonDType(a: TensorView, b: TensorView): DType {
  const common = promoteDTypes(a.dtype, b.dtype);
  if ((a.rank === 0) === (b.rank === 0)) return common;
  const { dtype } = a.rank === 0 ? b : a;
  return dtypes[dtype].family === dtypes[common].family ? dtype : common;
}

/** Gives a tensor without axes `rank` broadcast axes. */
function stretchTo(tensor: TensorView, rank: number, place: Call): TensorView {
  if (tensor.rank === rank) return tensor;
  const flags = Array.from({ length: rank }, () => true);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

/**
 * The elementwise sum of operands of equal rank. An axis of extent 1, or one made by `broadcast`, broadcasts to the
 * other's extent. Operands of different dtypes are cast to the wider one, as in PyTorch. One operand may be a number,
 * or a tensor without axes. The result then has the other's dtype, but a fractional number makes integers float.
 * Throws `shape-mismatch`, `dtype-mismatch` (bool), `foreign-tensor`, `bad-argument`.
 */
export function add(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("add", a, b);
}

/** The elementwise difference. Shapes, dtypes and errors as in `add`. */
export function sub(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("sub", a, b);
}

/** The elementwise product. Shapes, dtypes and errors as in `add`. */
export function mul(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("mul", a, b);
}

/**
 * The elementwise quotient. Shapes, dtypes and errors as in `add`. Integers divide as in nvFuser's `div`: the quotient
 * truncates toward zero and is 0 for a zero divisor.
 */
export function div(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("div", a, b);
}

/** Float functions first cast integers to float, as PyTorch does. */
function unary(op: UnaryOpType, tensor: TensorView): TensorView {
  const place = callOf(op, [tensor]);
  const casts = unaryFunctions[op].operand === "float" && dtypes[tensor.dtype].family === "integer";
  const operand = casts ? castTo(tensor, "float", place) : tensor;
  return apply({ kind: "Unary", op }, [operand], place);
}

/** The negative of each element. Throws `dtype-mismatch` for bool. */
export function neg(tensor: TensorView): TensorView {
  return unary("neg", tensor);
}

/** The absolute value of each element. Throws `dtype-mismatch` for bool. */
export function abs(tensor: TensorView): TensorView {
  return unary("abs", tensor);
}

/** The larger of 0 and each element; NaN stays NaN. Throws `dtype-mismatch` for bool. */
export function relu(tensor: TensorView): TensorView {
  return unary("relu", tensor);
}

/** GELU in its exact form, x * (1 + erf(x / sqrt(2))) / 2. Integers become float. Throws `dtype-mismatch` for bool. */
export function gelu(tensor: TensorView): TensorView {
  return unary("gelu", tensor);
}

/** e to the power of each element. Integers become float. Throws `dtype-mismatch` for bool. */
export function exp(tensor: TensorView): TensorView {
  return unary("exp", tensor);
}

/** The hyperbolic tangent. Integers become float. Throws `dtype-mismatch` for bool. */
export function tanh(tensor: TensorView): TensorView {
  return unary("tanh", tensor);
}

/**
 * One over the square root of each element; NaN for negative numbers. Integers become float. Throws `dtype-mismatch`
 * for bool.
 */
export function rsqrt(tensor: TensorView): TensorView {
  return unary("rsqrt", tensor);
}

/** Converts to `dtype`. It appends an op even if the dtypes are equal. Throws `bad-argument`. */
export function cast(tensor: TensorView, dtype: DType): TensorView {
  const place = callOf("cast", [tensor], dtype);
  requireDType(dtype, place);
  return apply({ kind: "Cast", to: dtype }, [tensor], place);
}

function reduction(op: ReductionOpType, tensor: TensorView, axes: readonly number[]): TensorView {
  const place = callOf(op, [tensor], axes);
  return apply(reductionSpec(op, tensor.data(), axes, place), [tensor], place);
}

/**
 * The sum over `axes`, in the tensor's dtype. The reduced axes stay in the output's logical domain (printed `r`), so
 * that `axis(i)` can parallelize them. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`, `dtype-mismatch`
 * (bool).
 */
export function sum(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("sum", tensor, axes);
}

/** The product over `axes`. Shapes, dtypes and errors as in `sum`. */
export function prod(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("prod", tensor, axes);
}

/**
 * The maximum over `axes`, NaN if any element is NaN. Takes bool, as a logical or. Shapes and other errors as in `sum`.
 */
export function amax(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amax", tensor, axes);
}

/**
 * The minimum over `axes`, NaN if any element is NaN. Takes bool, as a logical and. Shapes and other errors as in
 * `sum`.
 */
export function amin(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amin", tensor, axes);
}

/**
 * Adds an axis of extent 1 for each true flag. The false flags stand for the tensor's axes, in order. Throws
 * `bad-argument`.
 */
export function broadcast(tensor: TensorView, flags: readonly boolean[]): TensorView {
  const place = callOf("broadcast", [tensor], flags);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

/** Removes `axes`, which must have extent 1. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
export function squeeze(tensor: TensorView, axes: readonly number[]): TensorView {
  const place = callOf("squeeze", [tensor], axes);
  return apply(squeezeSpec(tensor.data(), axes, place), [tensor], place);
}

/**
 * Reorders the axes: axis i of the output is axis `order[i]` of the tensor. Throws `axis-out-of-range`,
 * `axis-repeated`, `bad-argument`.
 */
export function permute(tensor: TensorView, order: readonly number[]): TensorView {
  const place = callOf("permute", [tensor], order);
  return apply(permuteSpec(tensor.data(), order, place), [tensor], place);
}

function extentsIn(tensor: TensorView, extents: readonly Extent[], place: Call): readonly (number | Scalar)[] {
  return extents.map((extent) => extentIn(tensor[internals].builder, extent, place));
}

/**
 * The same elements in row-major order under a new shape. An entry is a number, an axis of another tensor or its extent
 * (`x.axis(0)`, `x.extents[0]`), or -1, which is inferred and allowed once.
 * Throws `bad-extent`, `bad-argument`, `shape-mismatch`, `foreign-tensor`.
 */
export function reshape(tensor: TensorView, shape: readonly Extent[]): TensorView {
  const place = callOf("reshape", [tensor], shape.map(extentText));
  return apply(reshapeSpec(tensor.data(), extentsIn(tensor, shape, place), place), [tensor], place);
}

/**
 * The elements with index `starts[i] <= index < stops[i]` along every axis i. Bounds may be axes
 * or extents of other tensors, as in `reshape`. Throws `index-out-of-range`, `bad-argument`, `foreign-tensor`.
 */
export function slice(tensor: TensorView, starts: readonly Extent[], stops: readonly Extent[]): TensorView {
  const place = callOf("slice", [tensor], starts.map(extentText), stops.map(extentText));
  const [from, to] = [extentsIn(tensor, starts, place), extentsIn(tensor, stops, place)];
  return apply(sliceSpec(tensor.data(), from, to, place), [tensor], place);
}

/**
 * Removes `axis` by fixing its index; a negative number counts from the end. The index may be an axis or extent
 * of another tensor, as in `reshape`. Throws `axis-out-of-range`, `index-out-of-range`, `bad-argument`,
 * `foreign-tensor`.
 */
export function select(tensor: TensorView, axis: number, index: Extent): TensorView {
  const place = callOf("select", [tensor], axis, { code: extentText(index) });
  const known = extentIn(tensor[internals].builder, index, place);
  return apply(selectSpec(tensor.data(), axis, known, place), [tensor], place);
}

/**
 * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Either operand may be [K]; its axis M or N is then absent.
 * Leading axes broadcast, also if one operand lacks them. The output keeps K as a trailing reduction axis.
 * Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`, `bad-argument`.
 */
export function matmul(a: TensorView, b: TensorView): TensorView {
  return apply({ kind: "Matmul" }, [a, b], callOf("matmul", [a, b]));
}

/**
 * torch.nn.functional.linear: x [.., K], weight [N, K], bias [N] -> [.., N]. A weight [K] takes a scalar bias and gives
 * [..]. The output keeps K as a trailing reduction axis. Throws `shape-mismatch`, `dtype-mismatch`, `foreign-tensor`,
 * `bad-argument`.
 */
export function linear(x: TensorView, weight: TensorView, bias?: TensorView): TensorView {
  const operands = bias === undefined ? [x, weight] : [x, weight, bias];
  return apply({ kind: "Linear" }, operands, callOf("linear", operands));
}

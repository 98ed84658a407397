/**
 * The operations of the Fusion API. Each appends one op (binary and transcendental ones also the casts that bring their
 * operands to one dtype) and returns a handle on its output, which has no schedule yet.
 *
 * Axis numbers count the axes that the tensor has at run time, from 0, or from -1 at the end.
 */
import { type DType, dtypes } from "../../numerics/dtype.ts";
import { type Call, call, type CallArgument } from "../ops/call.ts";
import { addOp } from "./fusion-builder.ts";
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
import type { Scalar } from "../scalar/scalar.ts";
import { printScalar } from "../scalar/print.ts";
import { requireDType } from "./fusion.ts";
import { commonBuilder, internals, requireTensor } from "./handle.ts";
import { TensorView } from "./tensor-view.ts";

function apply(spec: OpSpec, operands: readonly TensorView[], place: Call): TensorView {
  const builder = commonBuilder(operands, place);
  const inputs = operands.map((operand) => operand[internals].id);
  return new TensorView({ builder, id: addOp(builder, spec, inputs, place) });
}

function callOf(name: string, operands: readonly TensorView[], ...args: readonly CallArgument[]): Call {
  operands.forEach((operand, i) => {
    requireTensor(operand, name, i);
  });
  return call(name, ...operands.map((operand) => ({ tensor: operand.id })), ...args);
}

function castTo(tensor: TensorView, to: DType, place: Call): TensorView {
  return tensor.dtype === to ? tensor : apply({ kind: "Cast", to }, [tensor], place);
}

/** A copy; the place for a change of sharding. */
export function set(tensor: TensorView): TensorView {
  return apply({ kind: "Set" }, [tensor], callOf("set", [tensor]));
}

function binary(op: BinaryOpType, a: TensorView, b: TensorView): TensorView {
  const place = callOf(op, [a, b]);
  commonBuilder([a, b], place);
  // Before the casts are appended: a failing call changes nothing.
  binaryAxes(a.data(), b.data(), place);
  const dtype = promoteDTypes(a.dtype, b.dtype);
  return apply({ kind: "Binary", op }, [castTo(a, dtype, place), castTo(b, dtype, place)], place);
}

/**
 * Elementwise over operands of equal rank; an axis of extent 1 or made by `broadcast` stretches to the other's extent.
 * Operands of different dtypes are cast to the wider one as in PyTorch. Throws `shape-mismatch`, `dtype-mismatch` (bool).
 */
export function add(a: TensorView, b: TensorView): TensorView {
  return binary("add", a, b);
}

/** As `add`. */
export function sub(a: TensorView, b: TensorView): TensorView {
  return binary("sub", a, b);
}

/** As `add`. */
export function mul(a: TensorView, b: TensorView): TensorView {
  return binary("mul", a, b);
}

/** As `add`. Integers divide as in nvFuser's `div`: truncated toward zero, and 0 for a zero divisor. */
export function div(a: TensorView, b: TensorView): TensorView {
  return binary("div", a, b);
}

/** A function of floats casts integers to float first, as PyTorch does. */
function unary(op: UnaryOpType, tensor: TensorView): TensorView {
  const place = callOf(op, [tensor]);
  const casts = unaryFunctions[op].operand === "float" && dtypes[tensor.dtype].family === "integer";
  const operand = casts ? castTo(tensor, "float", place) : tensor;
  return apply({ kind: "Unary", op }, [operand], place);
}

/** Throws `dtype-mismatch` for bool. */
export function neg(tensor: TensorView): TensorView {
  return unary("neg", tensor);
}

/** Throws `dtype-mismatch` for bool. */
export function abs(tensor: TensorView): TensorView {
  return unary("abs", tensor);
}

/** Throws `dtype-mismatch` for bool. */
export function relu(tensor: TensorView): TensorView {
  return unary("relu", tensor);
}

/** The exact form, x * (1 + erf(x / sqrt(2))) / 2. Integers become float. Throws `dtype-mismatch` for bool. */
export function gelu(tensor: TensorView): TensorView {
  return unary("gelu", tensor);
}

/** Integers become float. Throws `dtype-mismatch` for bool. */
export function exp(tensor: TensorView): TensorView {
  return unary("exp", tensor);
}

/** The hyperbolic tangent. Integers become float. Throws `dtype-mismatch` for bool. */
export function tanh(tensor: TensorView): TensorView {
  return unary("tanh", tensor);
}

/** One over the square root; NaN for negative numbers. Integers become float. Throws `dtype-mismatch` for bool. */
export function rsqrt(tensor: TensorView): TensorView {
  return unary("rsqrt", tensor);
}

/** Converts to `dtype`; always an op, also between equal dtypes. Throws `bad-argument`. */
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
 * The sum over `axes`, in the tensor's dtype. The reduced axes stay in the output's logical domain (printed `r`), so that
 * `axis(i)` can parallelize them. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`, `dtype-mismatch` (bool).
 */
export function sum(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("sum", tensor, axes);
}

/** As `sum`. */
export function prod(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("prod", tensor, axes);
}

/** As `sum`, NaN if any is NaN; `or` for bool. */
export function amax(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amax", tensor, axes);
}

/** As `sum`, NaN if any is NaN; `and` for bool. */
export function amin(tensor: TensorView, axes: readonly number[]): TensorView {
  return reduction("amin", tensor, axes);
}

/** Adds an axis of extent 1 for each true flag; the false flags are the tensor's axes in order. Throws `bad-argument`. */
export function broadcast(tensor: TensorView, flags: readonly boolean[]): TensorView {
  const place = callOf("broadcast", [tensor], flags);
  return apply(broadcastSpec(tensor.data(), flags, place), [tensor], place);
}

/** Removes `axes`, which have extent 1. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
export function squeeze(tensor: TensorView, axes: readonly number[]): TensorView {
  const place = callOf("squeeze", [tensor], axes);
  return apply(squeezeSpec(tensor.data(), axes, place), [tensor], place);
}

/** Axis i of the output is axis `order[i]`. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
export function permute(tensor: TensorView, order: readonly number[]): TensorView {
  const place = callOf("permute", [tensor], order);
  return apply(permuteSpec(tensor.data(), order, place), [tensor], place);
}

/**
 * The same elements in row-major order under another shape. An entry is an extent, an extent of another tensor
 * (`x.extents[0]`) or, once, -1 for what is left over. Throws `bad-extent`, `bad-argument`, `shape-mismatch`.
 */
export function reshape(tensor: TensorView, shape: readonly (number | Scalar)[]): TensorView {
  const shown = shape.map((entry) => (typeof entry === "number" ? entry : printScalar(entry)));
  const place = callOf("reshape", [tensor], shown);
  return apply(reshapeSpec(tensor.data(), shape, place), [tensor], place);
}

/** The indices `[starts[i], stops[i])` of every axis i. Throws `index-out-of-range`, `bad-argument`. */
export function slice(tensor: TensorView, starts: readonly number[], stops: readonly number[]): TensorView {
  const place = callOf("slice", [tensor], starts, stops);
  return apply(sliceSpec(tensor.data(), starts, stops, place), [tensor], place);
}

/** Removes `axis` by fixing its index; a negative index counts from the end. Throws `axis-out-of-range`, `index-out-of-range`. */
export function select(tensor: TensorView, axis: number, index: number): TensorView {
  const place = callOf("select", [tensor], axis, index);
  return apply(selectSpec(tensor.data(), axis, index, place), [tensor], place);
}

/**
 * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. Leading axes broadcast, missing ones too; an operand may be [K].
 * The output keeps K as a trailing reduction axis. Throws `shape-mismatch`, `dtype-mismatch`.
 */
export function matmul(a: TensorView, b: TensorView): TensorView {
  return apply({ kind: "Matmul" }, [a, b], callOf("matmul", [a, b]));
}

/**
 * x [.., K], weight [N, K], bias [N] -> [.., N]; a weight [K] with a scalar bias gives [..].
 * The output keeps K as a trailing reduction axis. Throws `shape-mismatch`, `dtype-mismatch`.
 */
export function linear(x: TensorView, weight: TensorView, bias?: TensorView): TensorView {
  const operands = bias === undefined ? [x, weight] : [x, weight, bias];
  return apply({ kind: "Linear" }, operands, callOf("linear", operands));
}

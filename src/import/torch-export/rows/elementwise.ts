/** Rows of ATen ops that work on elements: arithmetic, functions, comparisons, choices, casts and copies. */
import {
  bitAnd,
  bitOr,
  bitXor,
  clamp,
  eq,
  ge,
  gt,
  isfinite,
  isinf,
  isnan,
  logicalAnd,
  logicalOr,
  logicalXor,
  lt,
  ne,
  remainder,
  shiftLeft,
  shiftRight,
  where,
} from "../../../ir/api/ops/choices.ts";
import type { Extent } from "../../../ir/api/extent.ts";
import { add, type BinaryOperand, cast, div, mul, sub } from "../../../ir/api/ops/elementwise.ts";
import { full } from "../../../ir/api/ops/creation.ts";
import * as functions from "../../../ir/api/ops/functions.ts";
import { fmod, pow, swiglu } from "../../../ir/api/ops/powers.ts";
import { inDType } from "../../../ir/api/ops/compositions/compose.ts";
import { detached } from "../../../ir/api/ops/compositions/own-gradients.ts";
import { rotated } from "../../../ir/api/ops/compositions/rope.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { constantValue, extentsDiffer } from "../../../ir/scalar/fold.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { sameComparisons, sameExtremes, sameUnaries } from "../../same-names.ts";
import { floatModulo, isTurned } from "../../remainders.ts";
import { raised } from "../../views.ts";
import type { NodeOperands, NodeValue, Rotated } from "../operands.ts";
import { type AtenRow, type AtenRows, atenRows } from "./row.ts";

type Unary = (x: TensorView) => TensorView;
type Binary = (a: BinaryOperand, b: BinaryOperand) => TensorView;

function raisedOperand(x: BinaryOperand, rank: number): BinaryOperand {
  return typeof x === "object" ? raised(x, rank) : x;
}

function mostAxes(...operands: readonly BinaryOperand[]): number {
  return Math.max(...operands.map((each) => (typeof each === "object" ? each.rank : 0)));
}

/** PyTorch counts with bool as with integers. */
export function asCount(x: TensorView): TensorView {
  return x.dtype === "bool" ? inDType(x, "int64") : x;
}

function isInteger(dtype: DType | null): boolean {
  return dtype !== null && dtypes[dtype].family === "integer";
}

function isFloat(dtype: DType | null): boolean {
  return dtype !== null && dtypes[dtype].family === "float";
}

/** A factor of what is added: of integers without its fraction, as in PyTorch. */
export function factorIn(o: NodeOperands, name: string): number {
  const factor = o.number(name, 1);
  return isInteger(o.resultDType) ? Math.trunc(factor) : factor;
}

/** `self` and `other`, each a tensor or a number, of one rank. */
function pairOf(o: NodeOperands, first = "self", second = "other"): readonly [BinaryOperand, BinaryOperand] {
  const [a, b] = [o.operand(first), o.operand(second)];
  const rank = mostAxes(a, b);
  return [raisedOperand(a, rank), raisedOperand(b, rank)];
}

/** Numbers to count with. */
function countedPair(o: NodeOperands): readonly [BinaryOperand, BinaryOperand] {
  const [a, b] = pairOf(o);
  return [typeof a === "object" ? asCount(a) : a, typeof b === "object" ? asCount(b) : b];
}

function unary(apply: Unary): AtenRow {
  return (o) => {
    const x = asCount(o.tensor("self"));
    return apply(isFloat(o.resultDType) ? inDType(x, isFloat(x.dtype) ? x.dtype : "float") : x);
  };
}

/** NaN has the sign 0 in PyTorch. */
const signOf: Unary = (x) => (isFloat(x.dtype) ? where(isnan(x), 0, functions.sign(x)) : functions.sign(x));

function predicate(apply: Unary): AtenRow {
  return (o) => apply(o.tensor("self"));
}

function binary(apply: Binary): AtenRow {
  return (o) => apply(...pairOf(o));
}

function arithmetic(apply: Binary): AtenRow {
  return (o) => apply(...countedPair(o));
}

/** a + alpha b, of operands in the dtype of the result. */
function scaled(apply: Binary, swap = false): AtenRow {
  return (o) => {
    const alpha = o.number("alpha", 1);
    const times = (b: BinaryOperand): BinaryOperand => {
      if (typeof b !== "object") return Number(b) * alpha;
      return mul(o.resultDType === null ? b : inDType(b, o.resultDType), alpha);
    };
    return arithmetic((a, b) => {
      const [first, second] = swap ? [b, a] : [a, b];
      return apply(first, alpha === 1 ? second : times(second));
    })(o);
  };
}

/** Of bool as a logical op, of integers bit by bit. */
const bits = (logical: (a: TensorView, b: TensorView) => TensorView, bitwise: Binary): AtenRow =>
  binary((a, b) => {
    if (typeof a !== "object" || typeof b !== "object") return bitwise(a, b);
    return a.dtype === "bool" && b.dtype === "bool" ? logical(a, b) : bitwise(asCount(a), asCount(b));
  });

export const toBool: Unary = (x) => (x.dtype === "bool" ? x : ne(x, 0));

function logical(apply: (a: TensorView, b: TensorView) => TensorView): AtenRow {
  return (o) => {
    const [a, b] = [o.tensor("self"), o.tensor("other")];
    const rank = mostAxes(a, b);
    return apply(toBool(raised(a, rank)), toBool(raised(b, rank)));
  };
}

/** Integers in the dtype of a result of floats. */
function asResult(o: NodeOperands, x: BinaryOperand): BinaryOperand {
  const dtype = o.resultDType;
  return typeof x === "object" && !isFloat(x.dtype) && dtype !== null && isFloat(dtype) ? inDType(x, dtype) : x;
}

function resultPair(o: NodeOperands): readonly [BinaryOperand, BinaryOperand] {
  const [a, b] = countedPair(o);
  return [asResult(o, a), asResult(o, b)];
}

const divide: AtenRow = (o) => {
  const mode = o.text("rounding_mode", "");
  const [a, b] = countedPair(o);
  if (mode === "floor") return floorDivide(o);
  if (mode === "trunc") return isFloat(o.resultDType) ? functions.trunc(div(a, b)) : div(a, b);
  return div(...resultPair(o));
};

const modulo: AtenRow = (o) => {
  const [a, b] = resultPair(o);
  return isFloat(o.resultDType) ? floatModulo(a, b) : remainder(a, b);
};

/** Rounded down. The quotient of floats is that of the dividend without its remainder. */
const floorDivide: AtenRow = (o) => {
  const [a, b] = resultPair(o);
  if (!isFloat(o.resultDType)) return div(sub(a, remainder(a, b)), b);
  const rest = fmod(a, b);
  const quotient = div(sub(a, rest), b);
  const lower = where(isTurned(rest, b), sub(quotient, 1), quotient);
  const whole = functions.floor(lower);
  const nearest = where(gt(sub(lower, whole), 0.5), add(whole, 1), whole);
  if (typeof b !== "object") return Number(b) === 0 ? div(a, b) : nearest;
  return where(eq(b, 0), div(a, b), nearest);
};

const power: AtenRow = (o) => {
  const [given, exponent] = pairOf(o, o.has("self") ? "self" : "base", "exponent");
  const base = typeof given === "object" ? asCount(given) : given;
  const dtype = o.resultDType;
  if (dtype === null || isFloat(dtype) || typeof exponent !== "object") return pow(asResult(o, base), exponent);
  const by = inDType(exponent, dtype);
  return integerPower(typeof base === "object" ? inDType(base, dtype) : add(mul(by, 0), base), by);
};

/** By squaring. Beyond 63 integers have no power; below 0 only 1 and -1 have one. */
function integerPower(base: TensorView, exponent: TensorView): TensorView {
  const count = functions.abs(exponent);
  let [result, square] = [add(mul(base, 0), 1), base];
  for (let bit = 1; bit < 64; bit *= 2) {
    result = mul(result, where(ne(bitAnd(count, bit), 0), square, 1));
    if (bit < 32) square = mul(square, square);
  }
  return where(logicalOr(ge(exponent, 0), eq(functions.abs(base), 1)), result, 0);
}

/** `beyond`: by as many bits as there are, or more. */
function shift(apply: Binary, beyond: (x: TensorView, bits: number) => BinaryOperand): AtenRow {
  return (o) => {
    const [a, by] = pairOf(o);
    const x = typeof a === "object" ? inDType(a, o.resultDType ?? a.dtype) : a;
    if (typeof x !== "object") return apply(x, by);
    const bits = x.dtype === "int64" ? 64 : 32;
    const inside = typeof by === "object" ? logicalAnd(ge(by, 0), lt(by, bits)) : by >= 0 && by < bits;
    if (inside === true) return apply(x, by);
    return inside === false ? mul(beyond(x, bits), add(mul(x, 0), 1)) : where(inside, apply(x, by), beyond(x, bits));
  };
}

const clampRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const [least, most] = ["min", "max"].map((name) => (o.has(name) ? o.operand(name) : null));
  const rank = mostAxes(x, least ?? 0, most ?? 0);
  const bound = (given: BinaryOperand | null | undefined): BinaryOperand | null =>
    given === null || given === undefined ? null : raisedOperand(given, rank);
  return clamp(raised(x, rank), bound(least), bound(most));
};

const whereRow: AtenRow = (o) => {
  const [condition, a, b] = [o.tensor("condition"), o.operand("self"), o.operand("other")];
  const rank = mostAxes(condition, a, b);
  return where(toBool(raised(condition, rank)), raisedOperand(a, rank), raisedOperand(b, rank));
};

const maskedFill: AtenRow = (o) => {
  const [x, mask, value] = [o.tensor("self"), o.tensor("mask"), o.operand("value")];
  const rank = mostAxes(x, mask);
  const filling = typeof value === "number" ? value : inDType(value, x.dtype);
  return where(toBool(raised(mask, rank)), filling, raised(x, rank));
};

/** The same tensor. */
const copy: AtenRow = (o) => o.value(o.has("self") ? "self" : "input");

export const convert: AtenRow = (o) => {
  const from = o.value("self");
  if (from.kind === "complex") return from;
  const x = o.tensor("self");
  const dtype = o.has("other") && !o.has("dtype") ? o.tensor("other").dtype : o.dtype();
  const to = dtype ?? o.resultDType ?? x.dtype;
  const made = o.building.provenance.get(x.id);
  // In one step, so that its gradient is one step, too.
  if (made?.kind === "rotated" && isFloat(to)) return rotatedPairs(made.of, to);
  // PyTorch saturates where the format has no infinities.
  const y = to === "bool" ? toBool(x) : to === "float8_e4m3fn" ? cast(x, to, { saturate: true }) : inDType(x, to);
  if (dtypes[x.dtype].bytes === 2 && isFloat(x.dtype) && to === "float") {
    o.building.provenance.set(y.id, { kind: "widened", of: x });
  }
  return y;
};

/** A tensor of one number, as PyTorch casts it: to bool by whether it is 0, to integers without a fraction. */
export function fullOf(o: NodeOperands, shape: readonly Extent[], value: number, dtype: DType): TensorView {
  return full(o.fusion, shape, castNumber(value, dtype), dtype);
}

export function castNumber(value: number, dtype: DType): number | boolean {
  if (dtype === "bool") return value !== 0;
  return isInteger(dtype) ? Math.trunc(value) : value;
}

/** Without training every element stays. */
const dropout: AtenRow = (o) => {
  if (o.flag("train", true) && o.number("p", 0.5) > 0)
    o.refuse("dropout in training", "a model in eval mode: call model.eval() before torch.export");
  if (o.node.outputs.length === 1) return o.value("input");
  const x = o.tensor("input");
  return [x, full(o.fusion, x.extents, true, "bool")];
};

const gelu: AtenRow = (o) =>
  functions.gelu(o.tensor("self"), o.text("approximate", "none") === "tanh" ? "tanh" : "none");

const softplus: AtenRow = (o) => {
  const [beta, threshold, x] = [o.number("beta", 1), o.number("threshold", 20), o.tensor("self")];
  const y = beta === 1 ? functions.softplus(x) : div(functions.softplus(mul(x, beta)), beta);
  // From 20 on float32 has the same numbers.
  return threshold < 20 || x.dtype === "double" ? where(gt(mul(x, beta), threshold), x, y) : y;
};

const addcmul: AtenRow = (o) => {
  const [x, a, b] = [o.tensor("self"), o.tensor("tensor1"), o.tensor("tensor2")];
  const rank = mostAxes(x, a, b);
  return add(raised(x, rank), mul(mul(raised(a, rank), raised(b, rank)), factorIn(o, "value")));
};

const not: AtenRow = (o) => {
  const x = o.tensor("self");
  return x.dtype === "bool" ? functions.logicalNot(x) : sub(-1, x);
};

export function rotatedPairs({ x, cos, sin }: Rotated, dtype: DType): TensorView {
  return rotated(x, cos, sin, { pairs: "neighbours", dtype });
}

const siluRow: AtenRow = (o) => {
  const x = o.tensor("self");
  const y = functions.silu(x);
  o.building.provenance.set(y.id, { kind: "silu", of: x });
  return y;
};

/** Of complex tensors as of pairs of real ones. */
const multiply: AtenRow = (o) => {
  const isTensor = typeof o.node.inputs.get("other") === "object";
  const [a, b] = [o.value("self"), isTensor ? o.value("other") : null];
  if (a.kind === "tensor" && b?.kind === "tensor") {
    // Its gradients are closed forms.
    const [gate, other] = [a.view, b.view].map((each) => o.building.provenance.get(each.id));
    if (gate?.kind === "silu" && sameForm(a.view, b.view)) return swiglu(gate.of, b.view);
    if (other?.kind === "silu" && sameForm(a.view, b.view)) return swiglu(other.of, a.view);
  }
  const isReal = b === null || b.kind === "tensor";
  if (a.kind === "complex" && isReal) return scaledBy(a, o.operand("other"));
  if (a.kind === "tensor" && b?.kind === "complex") return scaledBy(b, a.view);
  if (a.kind !== "complex" || b?.kind !== "complex") return arithmetic(mul)(o);
  const rank = mostAxes(a.re, b.re);
  const [re, im, re2, im2] = [raised(a.re, rank), raised(a.im, rank), raised(b.re, rank), raised(b.im, rank)];
  const made = { kind: "complex", re: sub(mul(re, re2), mul(im, im2)), im: add(mul(re, im2), mul(im, re2)) } as const;
  // Unread, the two parts are dead.
  const isTurned = extentsFit(re2, re) && a.pairs !== undefined;
  return isTurned ? { ...made, rotated: { x: a.pairs, cos: re2, sin: im2 } } : made;
};

function scaledBy({ re, im }: Extract<NodeValue, { readonly kind: "complex" }>, factor: BinaryOperand): NodeValue {
  const rank = mostAxes(re, factor);
  const by = raisedOperand(factor, rank);
  return { kind: "complex", re: mul(raised(re, rank), by), im: mul(raised(im, rank), by) };
}

function sameForm(a: TensorView, b: TensorView): boolean {
  return a.dtype === b.dtype && a.rank === b.rank && extentsFit(a, b) && extentsFit(b, a);
}

/** Whether a tensor with as many axes has all of its extents, or 1 in all but the last axis. */
function extentsFit(small: TensorView, { extents }: TensorView): boolean {
  return small.extents.every((extent, axis) => {
    const isOne = constantValue(extent) === 1 && axis < extents.length - 1;
    return isOne || !extentsDiffer(extent, at(extents, axis));
  });
}

export const atenElementwiseRows: AtenRows = atenRows({
  ...Object.fromEntries(sameUnaries.map(([name, apply]) => [`${name}.default`, unary(apply)])),
  "sign.default sgn.default": unary(signOf),
  ...Object.fromEntries(
    sameExtremes.map(([name, apply]) => [`${name}.default ${name.slice(0, 3)}.other(self other)`, binary(apply)]),
  ),
  ...Object.fromEntries(
    sameComparisons.map(([name, apply]) => [`${name}.Tensor ${name}.Scalar(self other)`, binary(apply)]),
  ),
  "silu.default": siluRow,
  "square.default": unary((x) => mul(x, x)),
  "gelu.default(self * approximate)": gelu,
  "softplus.default(self beta threshold)": softplus,
  "isnan.default": predicate(isnan),
  "isinf.default": predicate(isinf),
  "isfinite.default": predicate(isfinite),
  "logical_not.default": predicate((x) => functions.logicalNot(toBool(x))),
  "bitwise_not.default": not,
  "add.Tensor add.Scalar(self other alpha)": scaled(add),
  "sub.Tensor sub.Scalar subtract.Tensor subtract.Scalar(self other alpha)": scaled(sub),
  "rsub.Tensor rsub.Scalar(self other alpha)": scaled(sub, true),
  "mul.Tensor mul.Scalar multiply.Tensor multiply.Scalar(self other)": multiply,
  "div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode true_divide.Tensor(self other * rounding_mode)": divide,
  "divide.Tensor divide.Scalar divide.Tensor_mode divide.Scalar_mode(self other * rounding_mode)": divide,
  "floor_divide.default floor_divide.Scalar(self other)": floorDivide,
  "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor(self other)": modulo,
  "pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar(self exponent)": power,
  "logical_and.default(self other)": logical(logicalAnd),
  "logical_or.default(self other)": logical(logicalOr),
  "logical_xor.default(self other)": logical(logicalXor),
  "__and__.Tensor bitwise_and.Tensor __and__.Scalar bitwise_and.Scalar(self other)": bits(logicalAnd, bitAnd),
  "__or__.Tensor bitwise_or.Tensor __or__.Scalar bitwise_or.Scalar(self other)": bits(logicalOr, bitOr),
  "__xor__.Tensor bitwise_xor.Tensor __xor__.Scalar bitwise_xor.Scalar(self other)": bits(logicalXor, bitXor),
  "__lshift__.Tensor __lshift__.Scalar bitwise_left_shift.Tensor(self other)": shift(shiftLeft, () => 0),
  "__rshift__.Tensor __rshift__.Scalar bitwise_right_shift.Tensor(self other)": shift(shiftRight, (x, bits) =>
    shiftRight(x, bits - 1),
  ),
  "where.self where.ScalarSelf where.ScalarOther where.Scalar(condition self other)": whereRow,
  "masked_fill.Scalar masked_fill.Tensor(self mask value)": maskedFill,
  "clamp.default clamp.Tensor clip.default clip.Tensor clamp_min.default(self min max) clamp_max.default(self max)":
    clampRow,
  "addcmul.default(self tensor1 tensor2 * value)": addcmul,
  "alias.default contiguous.default clone.default lift_fresh_copy.default(self * memory_format)": copy,
  "detach.default": (o) => {
    const value = o.value("self");
    return value.kind === "tensor" && isFloat(value.view.dtype) ? detached(value.view) : value;
  },
  "to.dtype(self dtype non_blocking copy * memory_format) to.device(self device dtype non_blocking copy)": convert,
  "to.other(self other non_blocking copy) type_as.default(self other)": convert,
  "to.dtype_layout(self * factory non_blocking copy) _to_copy.default(self * factory non_blocking)": convert,
  "dropout.default native_dropout.default(input p train)": dropout,
});

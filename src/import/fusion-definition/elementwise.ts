/** Elementwise ops of nvFuser's FusionDefinition. Those of scalars alone make a scalar. */
import * as ops from "../../ir/api/ops.ts";
import type { BinaryOperand } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { constantValue, foldAdd, foldDiv, foldMul, foldSub } from "../../ir/scalar/fold.ts";
import { binary as scalarBinary, constant, type Scalar } from "../../ir/scalar/scalar.ts";
import { type DType, dtypes, isFloatDType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { floatModulo, restOf } from "../remainders.ts";
import { sameComparisons, sameUnaries } from "../same-names.ts";
import { raised } from "../views.ts";
import { asDType, isScalar, promotedDType, promotedOperand, type PromotionRule, commonRank } from "./promotion.ts";
import {
  argument,
  type FusionCall,
  fusionDType,
  type FusionOpRow,
  type FusionValue,
  madeBy,
  isGiven,
  operandIn,
  refuseCall,
  scalarNumber,
  sizeValue,
  tensorIn,
  tensorRow,
  tensorValue,
} from "./value.ts";

type Unary = (tensor: TensorView) => TensorView;
type Binary = (a: BinaryOperand, b: BinaryOperand, dtype: DType) => TensorView;

const isFloat = (dtype: DType): boolean => dtypes[dtype].family === "float";

const ofNumbers: Readonly<Record<string, (x: number) => number>> = {
  ...Object.fromEntries(
    (
      ["abs", "ceil", "cos", "exp", "expm1", "floor", "log", "log1p", "log2", "sign", "sin", "sqrt", "tanh"] as const
    ).map((name) => [name, Math[name]]),
  ),
  neg: (x) => -x,
  reciprocal: (x) => 1 / x,
  rsqrt: (x) => 1 / Math.sqrt(x),
  trunc: Math.trunc,
};

function unary(name: string, make: Unary, rule: PromotionRule): FusionOpRow {
  const number = ofNumbers[name];
  return madeBy(["x"], (call) => {
    const x = argument(call, "x");
    if (x.kind === "number" && number !== undefined)
      return { kind: "number", value: number(x.value), isFloat: x.isFloat === true || rule.floats === true };
    const tensor = tensorIn(call, "x");
    return tensorValue(make(asDType(tensor, promotedDType([tensor], rule))));
  });
}

/** Those that keep floats of 16 bits, and integers. */
const keeping: ReadonlySet<string> = new Set(["abs", "ceil", "floor", "relu", "round", "sign", "trunc"]);
const rounding: ReadonlySet<string> = new Set(["ceil", "floor", "round", "trunc"]);

function sameUnary(name: string, make: Unary): FusionOpRow {
  const ofFloats: Unary = (x) => (isFloatDType(x.dtype) ? make(x) : ops.set(x));
  if (name === "neg") return unary(name, make, {});
  if (!keeping.has(name)) return unary(name, make, { floats: true });
  return unary(name, rounding.has(name) ? ofFloats : make, { keeps16: true });
}

interface OfScalars {
  readonly number?: (a: number, b: number, isFloat: boolean) => number | boolean;
  /** Of sizes that a run decides. */
  readonly extent?: (a: Scalar, b: Scalar) => Scalar;
}

function binary(make: Binary, rule: PromotionRule, { number, extent }: OfScalars = {}): FusionOpRow {
  return madeBy(["a", "b"], (call) => {
    const sizes = extent === undefined ? null : sizesIn(call);
    if (sizes !== null && extent !== undefined) return sizeValue(requireShort(call, extent(...sizes)));
    const operands = [operandIn(call, "a"), operandIn(call, "b")];
    const dtype = promotedDType(operands, rule);
    const scalars = operands.filter(isScalar);
    if (scalars.length === 2 && number !== undefined) {
      const value = number(at(scalars, 0).value, at(scalars, 1).value, isFloat(dtype));
      return typeof value === "boolean" ? { kind: "bool", value } : { kind: "number", value, isFloat: isFloat(dtype) };
    }
    const [a = 0, b = 0] = operands.map((each) => promotedOperand(each, dtype, commonRank(operands)));
    return tensorValue(make(a, b, dtype));
  });
}

/** Each use of a size writes it out. */
const mostTerms = 256;

function requireShort(call: FusionCall, size: Scalar): Scalar {
  const terms = [size];
  for (const term of terms) {
    if (term.kind === "binary") terms.push(term.lhs, term.rhs);
    if (terms.length > mostTerms)
      return refuseCall(call, "a size is computed in too many steps", `${mostTerms} terms`, "write the size");
  }
  return size;
}

/** Of two sizes, of which a run decides at least one; otherwise null. */
function sizesIn(call: FusionCall): readonly [Scalar, Scalar] | null {
  const values = [argument(call, "a"), argument(call, "b")];
  const sizes = values.flatMap((value): readonly Scalar[] => {
    if (value.kind === "extent") return [value.extent];
    return value.kind === "number" && Number.isSafeInteger(value.value) ? [constant(value.value)] : [];
  });
  const [a, b] = sizes;
  if (a === undefined || b === undefined) return null;
  return sizes.every((size) => constantValue(size) !== null) ? null : [a, b];
}

const asDouble = (operand: BinaryOperand): BinaryOperand =>
  typeof operand === "object" ? asDType(operand, "double") : operand;

/** A function of floats as one of integers, too. */
function ofDoubles(make: (a: BinaryOperand, b: BinaryOperand) => TensorView): Binary {
  return (a, b, dtype) => (isFloat(dtype) ? make(a, b) : ops.cast(make(asDouble(a), asDouble(b)), dtype));
}

/** Of integers by a whole number: exact, which powers of floats are not. */
function power(a: BinaryOperand, b: BinaryOperand, dtype: DType): TensorView {
  const isCount = typeof b === "number" && b >= 2 && b <= 64;
  if (isFloat(dtype) || !isCount || typeof a !== "object") return ofDoubles(ops.pow)(a, b, dtype);
  const half = b < 4 ? a : power(a, Math.floor(b / 2), dtype);
  const square = ops.mul(half, half);
  return b % 2 === 0 ? square : ops.mul(square, a);
}

function bitwise(ofInts: Binary, ofBools: (a: TensorView, b: TensorView) => TensorView): FusionOpRow {
  return binary(
    (a, b, dtype) =>
      dtype === "bool" && typeof a === "object" && typeof b === "object" ? ofBools(a, b) : ofInts(a, b, dtype),
    {},
  );
}

function logical(make: (a: TensorView, b: TensorView) => TensorView): FusionOpRow {
  return tensorRow(["a", "b"], (call) => {
    const tensors = [tensorIn(call, "a"), tensorIn(call, "b")];
    const operands = tensors.map((each) => raised(asDType(each, "bool"), commonRank(tensors)));
    return make(at(operands, 0), at(operands, 1));
  });
}

/** `keeps16`: as nvFuser, a choice of two floats of 16 bits stays one. */
function where(call: FusionCall): FusionValue {
  const condition = argument(call, "condition");
  if (condition.kind === "bool") return argument(call, condition.value ? "a" : "b");
  const given = tensorIn(call, "condition");
  const chosen = [operandIn(call, "a"), operandIn(call, "b")];
  const dtype = promotedDType(chosen, { keeps16: true });
  const rank = commonRank([given, ...chosen]);
  const [a = 0, b = 0] = chosen.map((each) => promotedOperand(each, dtype, rank));
  const asked = raised(given, rank);
  if (typeof a === "object" || typeof b === "object") return tensorValue(ops.where(asked, a, b));
  // Any tensor of the dtype will do as a value: its elements are not taken in the end.
  const values = asDType(asked, dtype === "bool" ? "int64" : dtype);
  return tensorValue(asDType(ops.where(asked, a, ops.where(asked, values, b)), dtype));
}

/** Of a tensor and scalars, which become numbers of its dtype. */
function withScalars(
  parameters: readonly [string, string],
  make: (tensor: TensorView, first: number | null, second: number | null) => TensorView,
): FusionOpRow {
  return tensorRow(["x", ...parameters], (call) => {
    const tensor = tensorIn(call, "x");
    const [first = null, second = null] = parameters.map((parameter) => {
      if (!isGiven(call, parameter)) return null;
      const number = scalarNumber(call, parameter);
      return isFloat(tensor.dtype) ? number : Math.trunc(number);
    });
    return make(tensor, first, second);
  });
}

const comparisonNumbers: Readonly<Record<string, NonNullable<OfScalars["number"]>>> = {
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
};

function comparison([name, make]: readonly [string, Binary]): readonly [string, FusionOpRow] {
  const number = comparisonNumbers[name];
  return [name, binary(make, { keeps16: true }, number === undefined ? {} : { number })];
}

export const fusionElementwiseRows: Readonly<Record<string, FusionOpRow>> = {
  ...Object.fromEntries(sameUnaries.map(([name, make]) => [name, sameUnary(name, make)])),
  erfc: unary("erfc", ops.erfc, { floats: true }),
  silu: unary("silu", ops.silu, { keeps16: true }),
  set: unary("set", ops.set, { keeps16: true }),
  segment_set: unary("segment_set", ops.set, { keeps16: true }),
  isfinite: unary("isfinite", ops.isfinite, { keeps16: true }),
  isinf: unary("isinf", ops.isinf, { keeps16: true }),
  isnan: unary("isnan", ops.isnan, { keeps16: true }),
  isneginf: unary("isneginf", (x) => ops.eq(x, -Infinity), { floats: true }),
  isposinf: unary("isposinf", (x) => ops.eq(x, Infinity), { floats: true }),
  log10: unary("log10", (x) => ops.mul(ops.log(x), Math.LOG10E), { floats: true }),
  frac: unary("frac", (x) => ops.sub(x, ops.trunc(x)), { keeps16: true }),
  bitwise_not: unary("bitwise_not", (x) => (x.dtype === "bool" ? ops.logicalNot(x) : ops.bitXor(x, -1)), {}),
  logical_not: tensorRow(["x"], (call) => ops.logicalNot(asDType(tensorIn(call, "x"), "bool"))),

  ...Object.fromEntries(sameComparisons.map(comparison)),
  maximum: binary(ops.maximum, {}, { number: (a, b) => Math.max(a, b) }),
  minimum: binary(ops.minimum, {}, { number: (a, b) => Math.min(a, b), extent: (a, b) => scalarBinary("min", a, b) }),
  add: binary(ops.add, {}, { number: (a, b) => a + b, extent: foldAdd }),
  sub: binary(ops.sub, {}, { number: (a, b) => a - b, extent: foldSub }),
  mul: binary(ops.mul, {}, { number: (a, b) => a * b, extent: foldMul }),
  div: binary(ops.div, {}, { number: (a, b, floats) => (floats ? a / b : Math.trunc(a / b)), extent: foldDiv }),
  truediv: binary(ops.div, { floats: true }, { number: (a, b) => a / b }),
  pow: binary(power, {}, { number: (a, b) => a ** b }),
  atan2: binary(ops.atan2, { floats: true }, { number: Math.atan2 }),
  fmod: binary((a, b, dtype) => restOf(a, b, !isFloat(dtype)), {}, { number: (a, b) => a % b }),
  mod: binary((a, b, dtype) => restOf(a, b, !isFloat(dtype)), {}, { number: (a, b) => a % b }),
  remainder: binary((a, b, dtype) => (isFloat(dtype) ? floatModulo(a, b) : ops.remainder(a, b)), {}),
  bitwise_and: bitwise(ops.bitAnd, ops.logicalAnd),
  bitwise_or: bitwise(ops.bitOr, ops.logicalOr),
  bitwise_xor: bitwise(ops.bitXor, ops.ne),
  bitwise_left_shift: binary(ops.shiftLeft, {}),
  bitwise_right_shift: binary(ops.shiftRight, {}),
  logical_and: logical(ops.logicalAnd),
  logical_or: logical(ops.logicalOr),
  logical_xor: logical(ops.logicalXor),
  where: madeBy(["condition", "a", "b"], where),
  clamp: withScalars(["min", "max"], ops.clamp),
  threshold: withScalars(["threshold", "value"], (x, bound, value) => ops.where(ops.le(x, bound ?? 0), value ?? 0, x)),
  // As PyTorch: from the nearer end, so that a weight of 1 gives the end.
  lerp: tensorRow(["start", "end", "weight"], (call) => {
    const operands = ["start", "end", "weight"].map((parameter) => operandIn(call, parameter));
    const dtype = promotedDType(operands);
    const [a = 0, b = 0, weight = 0] = operands.map((each) => promotedOperand(each, dtype, commonRank(operands)));
    if (typeof a === "object" && typeof b === "object") return ops.lerp(a, b, weight);
    return ops.add(a, ops.mul(weight, ops.sub(b, a)));
  }),
  addcmul: tensorRow(["arg", "a", "b", "value"], (call) => {
    const operands = ["arg", "a", "b"].map((parameter) => operandIn(call, parameter));
    const dtype = promotedDType(operands);
    const [x = 0, a = 0, b = 0] = operands.map((each) => promotedOperand(each, dtype, commonRank(operands)));
    const value = scalarNumber(call, "value", 1);
    return ops.add(x, ops.mul(a, value === 1 ? b : ops.mul(b, value)));
  }),
  cast: madeBy(["arg", "dtype"], (call) => {
    const value = argument(call, "arg");
    const dtype = fusionDType(call);
    if (value.kind === "extent") return value;
    if (value.kind === "number" && dtype !== null)
      return isFloat(dtype) ? { ...value, isFloat: true } : { kind: "number", value: Math.trunc(value.value) };
    const tensor = tensorIn(call, "arg");
    return tensorValue(ops.cast(tensor, dtype ?? tensor.dtype));
  }),
};

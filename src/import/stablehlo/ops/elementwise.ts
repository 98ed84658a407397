/** Elementwise ops: by the functions of Braid's ops where these are the same, else by several of them. */
import {
  abs,
  type BinaryOperand,
  bitAnd,
  bitXor,
  cast,
  clamp,
  div,
  eq,
  erfc,
  ge,
  isfinite,
  isinf,
  logicalAnd,
  logicalNot,
  lt,
  mul,
  neg,
  pow,
  shiftLeft,
  shiftRight,
  sign,
  sub,
  where,
} from "../../../ir/api/ops.ts";
import { apply, callOf, binary } from "../../../ir/api/ops/apply.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { binaryExpression, unaryExpression } from "../../../ir/ops/functions/expressions.ts";
import type { BinaryOpType, UnaryOpType } from "../../../ir/ops/op.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import type { Expression } from "../../../numerics/scalar/expression.ts";
import { subexpressions } from "../../../numerics/scalar/split-shared.ts";
import { binaryOf, castOf, unaryOf } from "../../../oracle/definitions.ts";
import { chosenBy } from "../../views.ts";
import { at } from "../../../support/invariant.ts";
import { attributeOf, wordIn } from "../read-attributes.ts";
import {
  cutTo,
  dtypeIn,
  manualAxes,
  sizesOf,
  splatOf,
  ownView,
  type Element,
  type MlirValue,
  type ValueType,
  wraps,
} from "../value.ts";
import {
  contradicted,
  foldedValue,
  isSameType,
  madeValue,
  mostKnown,
  operandAt,
  type ReadRow,
  type Reading,
  refuse,
  resultType,
  readRow,
  typeText,
} from "./reading.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** The elements of an elementwise result, if all operands are known; null otherwise. */
function knownOf(
  { reader }: Reading,
  values: readonly MlirValue[],
  resultOf: (...operands: readonly Element[]) => Element | null,
  cut = false,
): readonly Element[] | null {
  if (values.some(({ known }) => known === null)) return null;
  const axes = manualAxes(reader, values);
  const lists = values.map(({ known }) => known);
  const lengths = lists.map((list) => list?.length ?? 0);
  const length = Math.max(...lengths);
  if (lengths.includes(0) || length > mostKnown(axes)) return null;
  // Lists of other axes would need to be repeated.
  const isAligned = values.every((value, i) => lengths[i] === 1 || value.axes.length === axes.length);
  if (!isAligned || (length > 1 && length !== elementCount([...sizesOf(reader, axes), ...at(values, 0).type.shape])))
    return null;
  const results: Element[] = [];
  for (let i = 0; i < length; i++) {
    const operands = lists.map((list) => at(list ?? [], list?.length === 1 ? 0 : i));
    const result = resultOf(...operands);
    if (result === null) return null;
    results.push(cut && typeof result === "bigint" ? BigInt.asUintN(32, result) : result);
  }
  return results;
}

function unaryResult(op: UnaryOpType, dtype: DType): (x: Element) => Element | null {
  const isKnown = isExact(unaryExpression(op, dtype));
  return (x) => (isKnown ? unaryOf(op, dtype, x) : null);
}

function binaryResult(op: BinaryOpType, dtype: DType): (x: Element, y: Element) => Element | null {
  const isKnown = isExact(binaryExpression(op, dtype));
  return (x, y) => (isKnown ? binaryOf(op, dtype, x, y) : null);
}

function chosenOf(condition: Element, x: Element, y: Element): Element {
  return Number(condition) === 0 ? y : x;
}

/** Whether the bits are the same on every machine: those of a library's function depend on it. */
function isExact(expression: Expression): boolean {
  return expression.kind !== "call" && subexpressions(expression).every(isExact);
}

/** A value as an operand: a number where all of its elements are equal. */
function operandOf(reading: Reading, value: MlirValue): TensorView | number | bigint {
  const element = splatOf(value);
  return element !== null && value.type.element !== "i1" ? element : ownView(reading, value);
}

/** The operands from `first` on, of one type. */
function alikePair(reading: Reading, first = 0): readonly [MlirValue, MlirValue] {
  const [a, b] = [operandAt(reading, first), operandAt(reading, first + 1)];
  if (isSameType(a.type, b.type)) return [a, b];
  return contradicted(reading, `${typeText(a.type)} and ${typeText(b.type)}`, "operands of one type");
}

/** The same as operands, of which one has to be a tensor. */
function sidesOf(reading: Reading, a: MlirValue, b: MlirValue): readonly [TensorView | number | bigint, BinaryOperand] {
  const right = operandOf(reading, b);
  return [typeof right === "object" ? operandOf(reading, a) : ownView(reading, a), right];
}

interface BinaryOptions {
  /** Whether a result may have more bits than its type. */
  readonly cuts?: boolean;
  readonly note?: string;
}

function binaryRow(op: BinaryOpType, { cuts = false, note }: BinaryOptions = {}): ReadRow {
  return readRow((reading) => binaryValue(reading, op, cuts), note);
}

function binaryValue(reading: Reading, op: BinaryOpType, cuts = false): MlirValue {
  const [a, b] = alikePair(reading);
  const same = neutral(op, a, b);
  if (same !== null && isSameType(same.type, resultType(reading))) return same;
  const cut = cuts && wraps(a.type);
  const known = knownOf(reading, [a, b], binaryResult(op, dtypeIn(a.type)), cut);
  return foldedValue(reading, known, () => {
    const result = binary(op, ...sidesOf(reading, a, b));
    return cut ? cutTo(a.type, result) : result;
  });
}

/** As frameworks begin reductions, and sums of a loop: XLA leaves 0 + x out, too, where it would change the sign of -0. */
const neutralElements: Readonly<Partial<Record<BinaryOpType, number>>> = {
  maximum: -Infinity,
  minimum: Infinity,
  add: 0,
};

/** The operand that an op with the other one does not change: `maximum(-inf, x)`. */
function neutral(op: BinaryOpType, a: MlirValue, b: MlirValue): MlirValue | null {
  const isNeutral = (value: MlirValue): boolean => {
    const element = splatOf(value);
    return element !== null && value.type.element !== "i1" && Number(element) === neutralElements[op];
  };
  return isNeutral(a) ? b : isNeutral(b) ? a : null;
}

function unaryRow(op: UnaryOpType): ReadRow {
  return readRow((reading) => {
    const value = operandAt(reading);
    const known = knownOf(reading, [value], unaryResult(op, dtypeIn(value.type)));
    return foldedValue(reading, known, () => {
      const tensor = ownView(reading, value);
      return apply({ kind: "Unary", op }, [tensor], callOf(op, [tensor]));
    });
  });
}

/** A row for an op of one operand that several of Braid's ops express. */
function composed(make: (tensor: TensorView) => TensorView): ReadRow {
  return readRow((reading) => madeValue(reading, () => make(ownView(reading, operandAt(reading)))));
}

const comparisons: ReadonlyMap<string, BinaryOpType> = new Map<string, BinaryOpType>([
  ["EQ", "eq"],
  ["NE", "ne"],
  ["LT", "lt"],
  ["LE", "le"],
  ["GT", "gt"],
  ["GE", "ge"],
]);

/** `compare LT, %a, %b, SIGNED`, and `comparison_direction = #stablehlo<comparison_direction LT>`. */
function directionOf(reading: Reading): BinaryOpType {
  const word = wordIn(attributeOf(reading.op, "comparison_direction") ?? reading.op.items[0] ?? null);
  return comparisons.get(word ?? "") ?? refuse(reading, `the direction ${word}`, [...comparisons.keys()].join(", "));
}

function selectValues(reading: Reading): MlirValue {
  const condition = operandAt(reading);
  const [a, b] = alikePair(reading, 1);
  const chosen = splatOf(condition);
  if (chosen !== null) return chosen === 0 ? b : a;
  const { length: rank } = a.type.shape;
  const isOne = condition.type.shape.length < rank;
  const known = isOne ? null : knownOf(reading, [condition, a, b], chosenOf);
  return foldedValue(reading, known, () => chosenBy(ownView(reading, condition), ...sidesOf(reading, a, b)));
}

/** `clamp %low, %x, %high`, whose bounds may be scalars. */
function clampValues(reading: Reading): MlirValue {
  const [low, value, high] = [operandAt(reading), operandAt(reading, 1), operandAt(reading, 2)];
  const bound = (of: MlirValue): BinaryOperand =>
    splatOf(of) === null ? ownView(reading, of) : operandOf(reading, of);
  return madeValue(reading, () => clamp(ownView(reading, value), bound(low), bound(high)));
}

function convertValue(reading: Reading): MlirValue {
  const value = operandAt(reading);
  const type = resultType(reading);
  if (isSameType(type, value.type)) return value;
  const [from, to] = [dtypeIn(value.type), dtypeIn(type)];
  // A float beyond the type becomes its nearest number, as in a cast.
  const [saturates, most] = [wraps(type) && dtypes[from].family === "float", 0xff_ff_ff_ffn];
  const castElement = (x: Element): Element => {
    const element = castOf(from, to, x);
    return saturates && typeof element === "bigint" ? (element < 0n ? 0n : element > most ? most : element) : element;
  };
  const known = knownOf(reading, [value], castElement, wraps(type));
  const converted = foldedValue(reading, known, () => {
    const tensor = from === to ? ownView(reading, value) : cast(ownView(reading, value), to);
    if (saturates) return clamp(tensor, 0, most);
    return from === "bool" ? tensor : cutTo(type, tensor);
  });
  return value.counts === undefined ? converted : { ...converted, counts: value.counts };
}

function isFloat({ dtype }: TensorView): boolean {
  return dtypes[dtype].family === "float";
}

/** The remainder of XLA has the sign of the dividend. */
const remainderRow = readRow((reading) => {
  const [a, b] = alikePair(reading);
  if (dtypes[dtypeIn(a.type)].family === "float") return binaryValue(reading, "fmod");
  const known = knownOf(reading, [a, b], remainderIn(dtypeIn(a.type)));
  return foldedValue(reading, known, () => {
    const [x, y] = [ownView(reading, a), operandOf(reading, b)];
    return sub(x, mul(div(x, y), y));
  });
});

function remainderIn(dtype: DType): (x: Element, y: Element) => Element {
  return (x, y) => binaryOf("sub", dtype, x, binaryOf("mul", dtype, binaryOf("div", dtype, x, y), y));
}

/** As XLA divides integers: all bits are set for a divisor of 0, which Braid's own op takes to 0. */
const divideRow = readRow((reading) => {
  const [a, b] = alikePair(reading);
  const dtype = dtypeIn(a.type);
  const divisor = splatOf(b);
  if (dtypes[dtype].family === "float" || (divisor !== null && Number(divisor) !== 0))
    return binaryValue(reading, "div");
  const ones = wraps(a.type) ? 0xff_ff_ff_ffn : dtype === "int64" ? -1n : -1;
  const known = knownOf(reading, [a, b], (x, y) => (Number(y) === 0 ? ones : binaryOf("div", dtype, x, y)));
  return foldedValue(reading, known, () => {
    const y = ownView(reading, b);
    return where(eq(y, 0), ones, div(operandOf(reading, a), y));
  });
});

/** `beyond`: the result for a distance of all bits or more, or below 0; 0 if it is left out. */
function shiftRow(
  shifted: (x: TensorView, by: TensorView | number, type: ValueType) => TensorView,
  beyond?: (x: TensorView, bits: number) => TensorView,
): ReadRow {
  return readRow((reading) => {
    const [a, b] = alikePair(reading);
    const bits = dtypeIn(a.type) === "int64" && !wraps(a.type) ? 64 : 32;
    const by = splatOf(b);
    const isInside = (distance: Element): boolean => Number(distance) >= 0 && Number(distance) < bits;
    return madeValue(reading, () => {
      const x = ownView(reading, a);
      const past = (): TensorView => beyond?.(x, bits) ?? mul(x, 0);
      if (by !== null) return isInside(by) ? cutTo(a.type, shifted(x, Number(by), a.type)) : past();
      const distance = ownView(reading, b);
      const moved = cutTo(a.type, shifted(x, distance, a.type));
      if (b.known?.every(isInside) === true) return moved;
      const inside = logicalAnd(ge(distance, 0), lt(distance, bits));
      return where(inside, moved, beyond?.(x, bits) ?? 0);
    });
  });
}

/** Bits that move in from the left are 0. */
function shiftedLogically(x: TensorView, by: TensorView | number, type: ValueType): TensorView {
  if (wraps(type)) return shiftRight(x, by);
  const most = dtypes[x.dtype].most;
  if (typeof by === "number") return by === 0 ? x : bitAnd(shiftRight(x, by), BigInt(most) >> BigInt(by - 1));
  return where(eq(by, 0), x, shiftRight(bitAnd(shiftRight(x, 1), most), sub(by, 1)));
}

/** Integer powers of a small constant exponent are products. */
const powerRow = readRow((reading) => {
  const [a, b] = alikePair(reading);
  const element = splatOf(b);
  return madeValue(reading, () => {
    const x = ownView(reading, a);
    const exponent = element === null ? null : Number(element);
    if (exponent !== null && Number.isInteger(exponent) && exponent >= 1 && exponent <= 4) {
      return Array.from({ length: exponent - 1 }).reduce<TensorView>((power) => cutTo(a.type, mul(power, x)), x);
    }
    if (!isFloat(x)) refuse(reading, "integers", "floats, or a constant exponent from 1 to 4");
    return pow(x, operandOf(reading, b));
  });
}, "of integers: exponents from 1 to 4");

/** The sign of 0 is that of the operand. */
function keepZero(x: TensorView, result: TensorView): TensorView {
  return isFloat(x) ? where(eq(x, 0), x, result) : result;
}

const notRow = readRow((reading) => {
  const value = operandAt(reading);
  if (value.type.element !== "i1") {
    const all = wraps(value.type) ? 0xff_ff_ff_ffn : -1n;
    return madeValue(reading, () => bitXor(ownView(reading, value), all));
  }
  const known = knownOf(reading, [value], unaryResult("logicalNot", "bool"));
  return foldedValue(reading, known, () => logicalNot(ownView(reading, value)));
});

/** One op of bools, and another one of numbers. The sum of bools is their disjunction. */
function boolOrRow(bool: BinaryOpType, other: BinaryOpType, options: BinaryOptions = {}): ReadRow {
  const rows = { bool: binaryRow(bool), other: binaryRow(other, options) };
  return { read: (reading) => rows[operandAt(reading).type.element === "i1" ? "bool" : "other"].read(reading) };
}

export const elementwiseRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.add": boolOrRow("logicalOr", "add", { cuts: true }),
  "stablehlo.subtract": binaryRow("sub", { cuts: true }),
  "stablehlo.multiply": boolOrRow("logicalAnd", "mul", { cuts: true }),
  "stablehlo.divide": divideRow,
  "stablehlo.maximum": binaryRow("maximum"),
  "stablehlo.minimum": binaryRow("minimum"),
  "stablehlo.and": boolOrRow("logicalAnd", "bitAnd"),
  "stablehlo.or": boolOrRow("logicalOr", "bitOr"),
  "stablehlo.xor": boolOrRow("ne", "bitXor"),
  "stablehlo.not": notRow,
  "stablehlo.power": powerRow,
  "stablehlo.atan2": binaryRow("atan2"),
  "stablehlo.remainder": remainderRow,
  "stablehlo.shift_left": shiftRow((x, by) => shiftLeft(x, by)),
  "stablehlo.shift_right_arithmetic": shiftRow(
    (x, by) => shiftRight(x, by),
    (x, bits) => shiftRight(x, bits - 1),
  ),
  "stablehlo.shift_right_logical": shiftRow(shiftedLogically),
  "stablehlo.compare": readRow((reading) => binaryValue(reading, directionOf(reading)), "TOTALORDER compares as FLOAT"),
  "stablehlo.select": readRow(selectValues),
  "stablehlo.clamp": readRow(clampValues),
  "stablehlo.convert": readRow(convertValue),
  "stablehlo.abs": unaryRow("abs"),
  "stablehlo.negate": readRow((reading) => {
    const value = operandAt(reading);
    const known = knownOf(reading, [value], unaryResult("neg", dtypeIn(value.type)), wraps(value.type));
    return foldedValue(reading, known, () => cutTo(value.type, neg(ownView(reading, value))));
  }),
  "stablehlo.sign": composed((x) => keepZero(x, sign(x))),
  "stablehlo.floor": unaryRow("floor"),
  "stablehlo.ceil": unaryRow("ceil"),
  "stablehlo.round_nearest_even": unaryRow("round"),
  "stablehlo.sqrt": unaryRow("sqrt"),
  "stablehlo.rsqrt": unaryRow("rsqrt"),
  "stablehlo.cbrt": composed((x) => keepZero(x, mul(sign(x), pow(abs(x), 1 / 3)))),
  "stablehlo.exponential": unaryRow("exp"),
  "stablehlo.exponential_minus_one": unaryRow("expm1"),
  "stablehlo.log": unaryRow("log"),
  "stablehlo.log_plus_one": unaryRow("log1p"),
  "stablehlo.logistic": unaryRow("sigmoid"),
  "stablehlo.tanh": unaryRow("tanh"),
  "stablehlo.sine": unaryRow("sin"),
  "stablehlo.cosine": unaryRow("cos"),
  "stablehlo.tan": unaryRow("tan"),
  "stablehlo.is_finite": composed((x) => isfinite(x)),
  "chlo.square": composed((x) => mul(x, x)),
  "chlo.erf": unaryRow("erf"),
  "chlo.erfc": composed(erfc),
  "chlo.is_inf": composed((x) => isinf(x)),
  "chlo.is_pos_inf": composed((x) => eq(x, Infinity)),
  "chlo.is_neg_inf": composed((x) => eq(x, -Infinity)),
  "chlo.asin": unaryRow("asin"),
  "chlo.acos": unaryRow("acos"),
  "chlo.atan": unaryRow("atan"),
  "chlo.sinh": unaryRow("sinh"),
  "chlo.cosh": unaryRow("cosh"),
};

/** Elementwise ops without a function of Braid: bits read as floats, the inverse of erf, roundings. */
import {
  abs,
  add,
  bitAnd,
  cast,
  eq,
  exp2,
  ge,
  gt,
  log1p,
  lt,
  maximum,
  mul,
  neg,
  shiftRight,
  sign,
  sqrt,
  sub,
  trunc,
  where,
} from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import type { DType } from "../../../numerics/dtype.ts";
import { attributeOf, number, wordIn } from "../read-attributes.ts";
import { dtypeIn, ownView } from "../value.ts";
import { madeValue, operandAt, type ReadRow, readRow, refuse, resultType } from "./reading.ts";

/** The float32 of 32 bits, the fraction times a power of 2: each step is exact. */
function floatOfBits(bits: TensorView): TensorView {
  const [exponent, fraction] = [bitAnd(shiftRight(bits, 23), 255), bitAnd(bits, 0x7f_ff_ff)];
  const whole = where(eq(exponent, 0), fraction, add(fraction, 0x80_00_00));
  const scale = exp2(cast(sub(maximum(exponent, 1), 150), "float"));
  const finite = mul(cast(whole, "float"), scale);
  const beyond = where(eq(fraction, 0), Infinity, Number.NaN);
  const size = where(eq(exponent, 255), cast(beyond, "float"), finite);
  return where(gt(bits, 0x7f_ff_ff_ff), neg(size), size);
}

const bitcastRow = readRow((reading) => {
  const value = operandAt(reading);
  const [from, to] = [value.type.element, resultType(reading).element];
  if (from === to) return value;
  if (to !== "f32" || (from !== "ui32" && from !== "i32")) {
    refuse(reading, `the bits of ${from} as ${to}`, "the bits of i32 or ui32 as f32");
  }
  return madeValue(reading, () => floatOfBits(bitAnd(cast(ownView(reading, value), "int64"), 0xff_ff_ff_ffn)));
}, "of i32 and ui32 to f32");

/** Halves go away from 0. The distance to the whole number is exact, which x + 0.5 is not. */
function roundAway(x: TensorView): TensorView {
  const whole = trunc(x);
  return where(ge(abs(sub(x, whole)), 0.5), add(whole, sign(x)), whole);
}

const roundRow = readRow((reading) => madeValue(reading, () => roundAway(ownView(reading, operandAt(reading)))));

/** Giles, "Approximating the erfinv function": polynomials in w - 2.5 for w < 5, else in sqrt(w) - 3. */
const central = [
  2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503, -0.00417768164,
  0.246640727, 1.50140941,
];
const tail = [
  -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
  1.00167406, 2.83297682,
];

function polynomial([first = 0, second = 0, ...rest]: readonly number[], x: TensorView): TensorView {
  return rest.reduce((sum, each) => add(mul(sum, x), each), add(mul(x, first), second));
}

const erfInvRow = readRow((reading) => {
  const value = operandAt(reading);
  const dtype = dtypeIn(value.type);
  if (dtype === "double") refuse(reading, "f64", "f32, bf16 or f16");
  return madeValue(reading, () => {
    const own = ownView(reading, value);
    const x = dtype === "float" ? own : cast(own, "float");
    const w = neg(log1p(neg(mul(x, x))));
    const factor = where(lt(w, 5), polynomial(central, sub(w, 2.5)), polynomial(tail, sub(sqrt(w), 3)));
    const inverse = mul(x, where(eq(abs(x), 1), Infinity, factor));
    return dtype === "float" ? inverse : cast(inverse, dtype);
  });
}, "of f32, bf16 and f16");

const formats: ReadonlyMap<string, DType> = new Map<string, DType>([
  ["e5m10", "half"],
  ["e8m7", "bfloat16"],
  ["e8m23", "float"],
  ["e11m52", "double"],
]);

/** The order of dtypes of which each holds all numbers of those before it. */
const holds: Readonly<Partial<Record<DType, readonly DType[]>>> = {
  half: ["float", "double"],
  bfloat16: ["float", "double"],
  float: ["double"],
};

const precisionRow = readRow((reading) => {
  const { reader, op } = reading;
  const value = operandAt(reading);
  const bits = (name: string): number => number(reader, op, [name]);
  const format = wordIn(attributeOf(op, "format")) ?? `e${bits("exponent_bits")}m${bits("mantissa_bits")}`;
  const [own, to] = [dtypeIn(value.type), formats.get(format)];
  if (to === undefined) return refuse(reading, `the format ${format}`, [...formats.keys()].join(", "));
  if (to === own || holds[own]?.includes(to) === true) return value;
  if (holds[to]?.includes(own) !== true)
    return refuse(reading, `${format} of ${value.type.element}`, "a format of the same range");
  return madeValue(reading, () => cast(cast(ownView(reading, value), to), own));
}, "to e5m10, e8m7, e8m23 and e11m52");

export const composedRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.bitcast_convert": bitcastRow,
  "stablehlo.reduce_precision": precisionRow,
  "stablehlo.round_nearest_afz": roundRow,
  "chlo.erf_inv": erfInvRow,
};

/** Powers, and compositions of functions of elements. */
import { dtypes } from "../../../numerics/dtype.ts";
import { isNumber } from "../../ops/number-operand.ts";
import { requireTaken } from "../../ops/dtype-rules.ts";
import { binaryAxes } from "../../ops/kinds/elementwise.ts";
import type { TensorView } from "../tensor-view.ts";
import { callOf, binary, type BinaryOperand } from "./apply.ts";
import { mark } from "./compositions/compose.ts";
import { add, mul, sub } from "./elementwise.ts";
import { normalCdf, reciprocal, rsqrt, silu, sqrt } from "./functions.ts";

/**
 * a to the power of b. Shapes, dtypes and errors as in `add`; integers become float, unless b is a whole number from 0
 * on. Some numbers b need no power: 1, 2, 3, -1, 0.5 and -0.5. The power 0 is 1, also of NaN, and 1 to any power is 1.
 */
export function pow(a: BinaryOperand, b: BinaryOperand): TensorView {
  if (isNumber(a) || !isNumber(b)) return binary("pow", a, b);
  const exponent = Number(b);
  if (dtypes[a.dtype].family === "integer" && Number.isInteger(exponent) && exponent >= 0) return product(a, exponent);
  return constantPowers.get(exponent)?.(a) ?? binary("pow", a, b);
}

const constantPowers: ReadonlyMap<number, (x: TensorView) => TensorView> = new Map([
  [1, (x) => mul(x, 1)],
  [2, (x) => mul(x, x)],
  [3, (x) => mul(mul(x, x), x)],
  [-1, reciprocal],
  [0.5, sqrt],
  [-0.5, rsqrt],
]);

/** Integers wrap, so the order does not matter: by squaring. */
function product(x: TensorView, exponent: number): TensorView {
  if (exponent === 0) return add(mul(x, 0), 1);
  if (exponent === 1) return mul(x, 1);
  const half = product(x, Math.floor(exponent / 2));
  const square = mul(half, half);
  return exponent % 2 === 0 ? square : mul(square, x);
}

/** The angle of the point (b, a), as torch.atan2. Shapes, dtypes and errors as in `add`; integers become float. */
export function atan2(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("atan2", a, b);
}

/** a - b trunc(a / b), with the sign of a. Shapes, dtypes and errors as in `add`; integers become float. */
export function fmod(a: BinaryOperand, b: BinaryOperand): TensorView {
  return binary("fmod", a, b);
}

/** 1 - erf(x), accurate for small results. Dtypes and errors as in `erf`. */
export function erfc(tensor: TensorView): TensorView {
  return mul(normalCdf(mul(tensor, -Math.SQRT2)), 2);
}

/** a + weight (b - a). Shapes, dtypes and errors as in `add`. */
export function lerp(a: TensorView, b: TensorView, weight: BinaryOperand): TensorView {
  return add(a, mul(sub(b, a), weight));
}

/** tensor + value a b. Shapes, dtypes and errors as in `add`. */
export function addcmul(tensor: TensorView, a: TensorView, b: TensorView, value = 1): TensorView {
  return add(tensor, mul(mul(a, b), value));
}

/** silu(gate) up: the gated activation of Llama. Shapes, dtypes and errors as in `add`. */
export function swiglu(gate: TensorView, up: TensorView): TensorView {
  const place = callOf("swiglu", [gate, up]);
  for (const { dtype } of [gate, up]) requireTaken("swiglu", "number", dtype, place);
  if (gate.rank > 0 && up.rank > 0) binaryAxes(gate.data(), up.data(), place);
  const y = mul(silu(gate), up);
  const operands = { gate: gate.id, up: up.id };
  mark(y, { name: "swiglu", operands, outputs: [y.id], kept: [], axes: [] });
  return y;
}

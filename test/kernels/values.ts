/** Values to feed kernels: edges of every dtype first, then random ones. */
import { roundPacked } from "../../src/numerics/convert.ts";
import { type DType, type FloatDType, isFloatDType, isPacked } from "../../src/numerics/dtype.ts";
import type { Value } from "../../src/numerics/tensor/host-tensor.ts";
import { at } from "../../src/support/invariant.ts";
import type { Random } from "../../src/support/random.ts";

const floatEdges = [
  0,
  -0,
  1,
  -1,
  0.5,
  -2.5,
  Infinity,
  -Infinity,
  NaN,
  2 ** -149,
  -(2 ** -130),
  2 ** -24,
  65504,
  65520,
  -3.4e38,
  1e-8,
  20,
];

export const edges: { readonly [D in DType]: readonly Value[] } = {
  double: [...floatEdges, 5e-324, -1.7e308, 1e300],
  float: floatEdges.map(Math.fround),
  half: floatEdges.map((x) => rounded("half", x)),
  bfloat16: floatEdges.map((x) => rounded("bfloat16", x)),
  float8_e4m3fn: [...floatEdges, 464, 465, 2 ** -9, -(2 ** -10)].map((x) => rounded("float8_e4m3fn", x)),
  float8_e5m2: [...floatEdges, 61439, 2 ** -16, -(2 ** -17)].map((x) => rounded("float8_e5m2", x)),
  int: [0, 1, -1, 2, 7, -13, 46341, 2 ** 31 - 1, -(2 ** 31), 65536],
  int64: [0n, 1n, -1n, 2n, 7n, -13n, 3037000500n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n],
  bool: [0, 1],
};

function rounded(dtype: FloatDType, x: number): number {
  if (dtype === "double") return x;
  return isPacked(dtype) ? roundPacked(dtype, Math.fround(x)) : Math.fround(x);
}

/** A value of moderate size; sums of some hundred products stay finite. */
function randomValue(dtype: DType, random: Random): Value {
  const x = random.float() * 4 - 2;
  if (isFloatDType(dtype)) return rounded(dtype, x);
  if (dtype === "int") return random.uint32() | 0;
  if (dtype === "bool") return random.integer(2);
  return BigInt.asIntN(64, (BigInt(random.uint32()) << 32n) | BigInt(random.uint32()));
}

export function randomValues(dtype: DType, length: number, random: Random): readonly Value[] {
  return Array.from({ length }, () => randomValue(dtype, random));
}

/** Every edge against every edge. */
export function edgePairs(dtype: DType): { readonly left: readonly Value[]; readonly right: readonly Value[] } {
  const values = edges[dtype];
  const pairs = values.flatMap((left) => values.map((right) => ({ left, right })));
  return { left: pairs.map((pair) => pair.left), right: pairs.map((pair) => pair.right) };
}

/** Where two lists first differ in bits, NaNs being equal and -0 not 0; null if nowhere. */
export function firstDifference(found: readonly Value[], expected: readonly Value[]): string | null {
  if (found.length !== expected.length) return `${found.length} values, not ${expected.length}`;
  const i = found.findIndex((value, j) => !Object.is(value, expected[j]));
  return i < 0 ? null : `[${i}]: ${shown(at(found, i))}, not ${shown(at(expected, i))}`;
}

function shown(value: Value): string {
  return Object.is(value, -0) ? "-0" : `${value}`;
}

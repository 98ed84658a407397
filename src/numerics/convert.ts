/**
 * Conversion between float32 numbers and half (IEEE 754 binary16) or bfloat16, as 16-bit words. Narrowing rounds to
 * nearest, ties to even, keeps subnormals, and overflows to infinity. Every NaN narrows to one positive quiet NaN,
 * because JavaScript and WebAssembly leave NaN payloads open. The bits of a result therefore never depend on the
 * engine.
 *
 * Numbers are float32 values. Pass doubles through `Math.fround` first, so that rounding follows the dtypes' rules.
 */
import type { PackedDType } from "./dtype.ts";

/** Reads the bits of a float32. Each function writes it before reading it, so no state survives a call. */
const register = new DataView(new ArrayBuffer(4));

function bitsOf(x: number): number {
  register.setFloat32(0, x, true);
  return register.getUint32(0, true);
}

const floats = new Float32Array(register.buffer);
const words = new Int32Array(register.buffer);

/** The bits of a float32 as an i32. */
export function floatToBits(x: number): number {
  floats[0] = x;
  return words[0] ?? 0;
}

/** The float32 with the bits of an i32. */
export function bitsToFloat(bits: number): number {
  words[0] = bits;
  return floats[0] ?? NaN;
}

/** 2^(exponent - 25) for the biased exponents of half: the weight of the last significand bit. */
const halfUnits = Float64Array.from({ length: 32 }, (_, exponent) => 2 ** (exponent - 25));

export function floatToHalf(x: number): number {
  const bits = bitsOf(x);
  const magnitude = bits & 0x7fff_ffff;
  const sign = (bits >>> 16) & 0x8000;
  if (magnitude > 0x7f80_0000) return 0x7e00;
  // From 2^16 on the result is infinity. Values from 65520 to 2^16 become infinity below, by a carry into the exponent.
  if (magnitude >= 0x4780_0000) return sign | 0x7c00;
  if (magnitude < 0x3880_0000) {
    // Below 2^-14. Float32 values near 0.5 have the spacing of half's subnormals, so this addition rounds.
    return sign | (bitsOf(Math.abs(x) + 0.5) - 0x3f00_0000);
  }
  const tie = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x3800_0000 + 0xfff + tie) >>> 13);
}

export function halfToFloat(word: number): number {
  const exponent = (word >>> 10) & 31;
  const fraction = word & 0x3ff;
  const sign = (word & 0x8000) === 0 ? 1 : -1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (0x400 + fraction) * (halfUnits[exponent] ?? NaN);
}

export function floatToBFloat16(x: number): number {
  const bits = bitsOf(x);
  if ((bits & 0x7fff_ffff) > 0x7f80_0000) return 0x7fc0;
  return ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

export function bfloat16ToFloat(word: number): number {
  register.setUint32(0, word << 16, true);
  return register.getFloat32(0, true);
}

/** Conversion of float32 numbers to words and back. */
export const packings: { readonly [D in PackedDType]: Packing } = {
  half: { encode: floatToHalf, decode: halfToFloat },
  bfloat16: { encode: floatToBFloat16, decode: bfloat16ToFloat },
};

interface Packing {
  readonly encode: (x: number) => number;
  readonly decode: (word: number) => number;
}

/** The value of a packed dtype nearest to a float32. */
export function roundPacked(dtype: PackedDType, x: number): number {
  const { encode, decode } = packings[dtype];
  return decode(encode(x));
}

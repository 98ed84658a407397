/**
 * Conversion between float32 numbers and words of a packed dtype. Narrowing rounds to nearest, ties to even, keeps
 * subnormals, and overflows to infinity, or to NaN in a format without infinities. Every NaN narrows to one positive
 * quiet NaN, because JavaScript and WebAssembly leave NaN payloads open. The bits of a result therefore never depend on
 * the engine.
 *
 * Numbers are float32 values. Pass doubles through `Math.fround` first, so that rounding follows the dtypes' rules.
 */
import { byDType, dtypes, type DType, type PackedDType } from "./dtype.ts";

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

/** A packed dtype's word has a sign, an exponent and a fraction, as IEEE 754 lays them out. Facts are words and bits. */
export interface WordFormat {
  /** Of the float32's fraction bits, those that a word lacks. */
  readonly shift: number;
  /** From the exponent of the word to that of a float32, as a float32's bits. */
  readonly rebias: number;
  /** The bits of a float32 that has the spacing of the subnormals: adding it rounds to one. */
  readonly spacing: number;
  readonly sign: number;
  /** The word of everything larger. */
  readonly infinity: number;
  readonly nan: number;
}

export const wordFormats: { readonly [D in DType]: WordFormat } = byDType(({ bytes, epsilon, lowest, finite }) => {
  const shift = 24 + Math.log2(epsilon);
  const sign = 2 ** (8 * bytes - 1);
  const infinity = finite === true ? sign - 1 : sign - 2 ** (23 - shift);
  return {
    shift,
    rebias: (lowest + 126) * 2 ** 23,
    spacing: (lowest + shift + 127) * 2 ** 23,
    sign,
    infinity,
    nan: finite === true ? infinity : infinity + 2 ** (22 - shift),
  };
});

interface Packing {
  readonly encode: (x: number) => number;
  readonly decode: (word: number) => number;
}

function packingOf(dtype: PackedDType): Packing {
  const { shift, rebias, spacing, sign, infinity, nan } = wordFormats[dtype];
  const normal = rebias + 2 ** 23;
  const below = 2 ** (shift - 1) - 1;
  const signShift = 32 - 8 * dtypes[dtype].bytes;
  const unit = bitsToFloat(spacing);
  const scale = 2 ** (rebias / 2 ** 23);
  const largest = dtypes[dtype].finite === true ? NaN : Infinity;
  return {
    encode: (x) => {
      const bits = bitsOf(x);
      const magnitude = bits & 0x7fff_ffff;
      if (magnitude > 0x7f80_0000) return nan;
      const rounded =
        magnitude < normal
          ? bitsOf(Math.abs(x) + unit) - spacing
          : (magnitude - rebias + below + ((magnitude >>> shift) & 1)) >>> shift;
      return ((bits >>> signShift) & sign) | Math.min(rounded, infinity);
    },
    decode: (word) => {
      const magnitude = word & (sign - 1);
      const size =
        magnitude < infinity ? bitsToFloat(magnitude << shift) * scale : magnitude === infinity ? largest : NaN;
      return (word & sign) === 0 ? size : -size;
    },
  };
}

/** Conversion of float32 numbers to words and back. */
export const packings: { readonly [D in PackedDType]: Packing } = {
  half: packingOf("half"),
  bfloat16: packingOf("bfloat16"),
  float8_e4m3fn: packingOf("float8_e4m3fn"),
  float8_e5m2: packingOf("float8_e5m2"),
};

/** The value of a packed dtype nearest to a float32. */
export function roundPacked(dtype: PackedDType, x: number): number {
  const { encode, decode } = packings[dtype];
  return decode(encode(x));
}

/** Converts words to and from float32, in vectors of 32-bit lanes. The bits are those of numerics/convert.ts. */
import { wordFormats } from "../../numerics/convert.ts";
import { dtypes, type PackedDType } from "../../numerics/dtype.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import { get, number, vector, wordsConstant } from "../../support/wasm/instructions.ts";
import type { Code } from "../../support/wasm/encoding.ts";

interface WordCoding {
  /** Converts words in the low bits of a local's lanes to float32. */
  readonly decode: (writer: FunctionWriter, words: number) => Code;
  /** Converts float32 in a local to words in the low bits of the lanes. */
  readonly encode: (writer: FunctionWriter, value: number) => Code;
  /** Rounds to the nearest value of the dtype, as float32. */
  readonly round: (writer: FunctionWriter, value: number) => Code;
}

const shiftLeft = (value: Code, bits: number): Code => vector("i32x4.shl", [...value, ...number(bits)]);
const shiftRight = (value: Code, bits: number): Code => vector("i32x4.shr_u", [...value, ...number(bits)]);
const masked = (value: Code, mask: number): Code => vector("v128.and", value, wordsConstant(mask));
const added = (value: Code, word: number): Code => vector("i32x4.add", value, wordsConstant(word));

/** `nan` in the lanes where the float32 `value` is NaN, and `otherwise` in the others. */
function unlessNaN(value: number, nan: number, otherwise: Code): Code {
  return vector("v128.bitselect", wordsConstant(nan), otherwise, vector("f32x4.ne", get(value), get(value)));
}

/** The float32's bits plus the increment that rounds their upper half to nearest even. */
function roundedUpperHalf(value: number): Code {
  return vector("i32x4.add", added(get(value), 0x7fff), masked(shiftRight(get(value), 16), 1));
}

/** Of any packed dtype (numerics/convert.ts). */
function codingOf(dtype: PackedDType): WordCoding {
  const { shift, rebias, spacing, sign, infinity, nan } = wordFormats[dtype];
  const signShift = 32 - 8 * dtypes[dtype].bytes;
  const encode = (writer: FunctionWriter, value: number): Code => {
    const magnitude = writer.keep(masked(get(value), 0x7fff_ffff));
    const tie = masked(shiftRight(get(magnitude), shift), 1);
    const rounding = 2 ** (shift - 1) - 1;
    const normal = shiftRight(vector("i32x4.add", added(get(magnitude), rounding - rebias), tie), shift);
    const subnormal = added(vector("f32x4.add", get(magnitude), wordsConstant(spacing)), -spacing);
    const isSubnormal = vector("i32x4.lt_u", get(magnitude), wordsConstant(rebias + 2 ** 23));
    const finite = vector("v128.bitselect", subnormal, normal, isSubnormal);
    const bounded = vector("i32x4.min_u", finite, wordsConstant(infinity));
    const signed = masked(shiftRight(get(value), signShift), sign);
    return unlessNaN(value, nan, vector("v128.or", bounded, signed));
  };
  const decode = (writer: FunctionWriter, words: number): Code => {
    const magnitude = writer.keep(masked(get(words), sign - 1));
    // Shifted to float32's position, the bits have a smaller exponent. The multiplication corrects it, also for
    // subnormals.
    const scale = rebias + 127 * 2 ** 23;
    const finite = vector("f32x4.mul", shiftLeft(get(magnitude), shift), wordsConstant(scale));
    const infinite = vector("v128.or", shiftLeft(get(magnitude), shift), wordsConstant(0x7f80_0000));
    const isFinite = vector("i32x4.lt_u", get(magnitude), wordsConstant(infinity));
    const signed = shiftLeft(masked(get(words), sign), signShift);
    return vector("v128.or", vector("v128.bitselect", finite, infinite, isFinite), signed);
  };
  return { decode, encode, round: (writer, value) => decode(writer, writer.keep(encode(writer, value))) };
}

export const wordCodings: { readonly [D in PackedDType]: WordCoding } = {
  half: codingOf("half"),
  float8_e4m3fn: codingOf("float8_e4m3fn"),
  float8_e5m2: codingOf("float8_e5m2"),
  bfloat16: {
    decode: (_, words) => shiftLeft(get(words), 16),
    encode: (_, value) => unlessNaN(value, 0x7fc0, shiftRight(roundedUpperHalf(value), 16)),
    round: (_, value) => unlessNaN(value, 0x7fc0_0000, masked(roundedUpperHalf(value), 0xffff_0000)),
  },
};

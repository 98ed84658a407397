/**
 * Converts half and bfloat16 words to and from float32, in vectors of 32-bit lanes. The bits are those of
 * numerics/convert.ts, which also explains the rounding of half's subnormals.
 */
import type { PackedDType } from "../../numerics/dtype.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import { get, number, vector, wordsConstant } from "../../support/wasm/instructions.ts";
import type { Code } from "../../support/wasm/encoding.ts";

interface WordCoding {
  /** Converts words in the low halves of a local's lanes to float32. */
  readonly decode: (writer: FunctionWriter, words: number) => Code;
  /** Converts float32 in a local to words in the low halves of the lanes. */
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

function encodeHalf(writer: FunctionWriter, value: number): Code {
  const magnitude = writer.keep(masked(get(value), 0x7fff_ffff));
  const tie = masked(shiftRight(get(magnitude), 13), 1);
  const normal = shiftRight(vector("i32x4.add", added(get(magnitude), 0xfff - 0x3800_0000), tie), 13);
  const half = vector("f32x4.add", get(magnitude), wordsConstant(0x3f00_0000));
  const subnormal = added(half, -0x3f00_0000);
  const isSubnormal = vector("i32x4.lt_u", get(magnitude), wordsConstant(0x3880_0000));
  const finite = vector("v128.bitselect", subnormal, normal, isSubnormal);
  const bounded = vector("i32x4.min_u", finite, wordsConstant(0x7c00));
  const sign = masked(shiftRight(get(value), 16), 0x8000);
  return unlessNaN(value, 0x7e00, vector("v128.or", bounded, sign));
}

function decodeHalf(writer: FunctionWriter, words: number): Code {
  const magnitude = writer.keep(masked(get(words), 0x7fff));
  // Shifted to float32's position, the bits have an exponent that is 112 too small. The multiplication corrects it,
  // also for subnormals.
  const finite = vector("f32x4.mul", shiftLeft(get(magnitude), 13), wordsConstant(0x7780_0000));
  const infinite = vector("v128.or", shiftLeft(get(magnitude), 13), wordsConstant(0x7f80_0000));
  const isFinite = vector("i32x4.lt_u", get(magnitude), wordsConstant(0x7c00));
  const sign = shiftLeft(masked(get(words), 0x8000), 16);
  return vector("v128.or", vector("v128.bitselect", finite, infinite, isFinite), sign);
}

export const wordCodings: { readonly [D in PackedDType]: WordCoding } = {
  half: {
    decode: decodeHalf,
    encode: encodeHalf,
    round: (writer, value) => decodeHalf(writer, writer.keep(encodeHalf(writer, value))),
  },
  bfloat16: {
    decode: (_, words) => shiftLeft(get(words), 16),
    encode: (_, value) => unlessNaN(value, 0x7fc0, shiftRight(roundedUpperHalf(value), 16)),
    round: (_, value) => unlessNaN(value, 0x7fc0_0000, masked(roundedUpperHalf(value), 0xffff_0000)),
  },
};

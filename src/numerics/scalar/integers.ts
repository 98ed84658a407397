/** Functions of integers that generated JavaScript calls, and conversions to and from floats. */

/** The high word of the product of two words without sign. Every term is below 2^32, so the doubles are exact. */
export function mulHigh(x: number, y: number): number {
  const [a, b, c, d] = [x >>> 16, x & 0xffff, y >>> 16, y & 0xffff];
  const middle = a * d + ((b * d) >>> 16);
  return (a * c + (middle >>> 16) + ((b * c + (middle & 0xffff)) >>> 16)) | 0;
}

/** i32.trunc_sat_f64_s. */
export function truncateToInt(x: number): number {
  if (x >= 0x7fff_ffff) return 0x7fff_ffff;
  if (x <= -0x8000_0000) return -0x8000_0000;
  return x | 0;
}

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/** i64.trunc_sat_f64_s. */
export function truncateToInt64(x: number): bigint {
  if (Number.isNaN(x)) return 0n;
  if (x >= 2 ** 63) return int64Max;
  if (x <= -(2 ** 63)) return int64Min;
  return BigInt(Math.trunc(x));
}

/**
 * f32.convert_i64_s. `Math.fround(Number(x))` would round twice above 2^53. There the low 11 bits, far below float32's
 * last bit, are first replaced by one sticky bit, which makes the conversion to double exact.
 */
export function int64ToFloat(x: bigint): number {
  const magnitude = x < 0n ? -x : x;
  if (magnitude < 2n ** 53n) return Math.fround(Number(x));
  const kept = (magnitude >> 11n) | (magnitude % 2048n === 0n ? 0n : 1n);
  const rounded = Math.fround(Number(kept) * 2048);
  return x < 0n ? -rounded : rounded;
}

/**
 * Device functions that generated kernels call. A kernel's source contains only the functions that it uses, which keeps
 * sources short and stable.
 */
import { wordFormats } from "../../../../numerics/convert.ts";
import { dtypes, isPacked, type PackedDType } from "../../../../numerics/dtype.ts";
import { keysOf } from "../../../../support/invariant.ts";
import { indented, type KernelSource, type Parameter } from "../kernel-source.ts";

const packedDTypes = keysOf(dtypes).filter(isPacked);

const helpers: Readonly<Record<string, string>> = {
  braid_abs: `static __device__ __forceinline__ int braid_abs(int x) { return x < 0 ? (int)(0u - (unsigned)x) : x; }
static __device__ __forceinline__ long long braid_abs(long long x) {
  return x < 0 ? (long long)(0ull - (unsigned long long)x) : x;
}`,
  // They end the run with the message on stderr, and CUDA_ERROR_ASSERT.
  braid_bad_ends: assertion("bad_ends", "the ends of groups do not fall and are at most the rows", "groupedMatmul"),
  braid_past_end: assertion("past_end", "an update ends before the end of its axis", "dynamicUpdate"),
  // The most negative integer divided by -1 wraps to itself.
  braid_div: `static __device__ __forceinline__ int braid_div(int x, int y) {
  return y == -1 ? (int)(0u - (unsigned)x) : x / y;
}
static __device__ __forceinline__ long long braid_div(long long x, long long y) {
  return y == -1 ? (long long)(0ull - (unsigned long long)x) : x / y;
}`,
  // -1 divides every integer, but the most negative one divided by it overflows.
  braid_rem: `static __device__ __forceinline__ int braid_rem(int x, int y) { return y == -1 ? 0 : x % y; }
static __device__ __forceinline__ long long braid_rem(long long x, long long y) { return y == -1 ? 0ll : x % y; }`,
  /**
   * For a = |x| and t = 1 / (1 + p a): Phi(-a) = exp(-a^2 / 2) t Q(t), the form of Abramowitz and Stegun 7.1.26 with
   * our own coefficients. They are a minimax fit (Lawson's iteration): 5e-8 where Phi is large, 3.3e-5 of Phi in the
   * tail down to -5.7, 1e-4 beyond. The reciprocal and the power are the hardware's, within 2^-22. About 16
   * instructions; normcdff takes 60.
   */
  braid_normal_cdf: `static __device__ __forceinline__ float braid_normal_cdf(float x) {
  const float t = braid_reciprocal(fmaf(0.290363075f, fabsf(x), 1.0f));
  float q = fmaf(-0.0890807824f, t, 0.284574394f);
  q = fmaf(q, t, -0.0932128938f);
  q = fmaf(q, t, 0.180000066f);
  q = fmaf(q, t, 0.100677476f);
  q = fmaf(q, t, 0.117041691f);
  const float tail = q * t * exp2f(x * x * -0.721347520f);
  return x < 0.0f ? tail : 1.0f - tail;
}`,
  braid_reciprocal: `static __device__ __forceinline__ float braid_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}`,
  // NaN if either operand is; -0 is below 0.
  braid_max: extremum("max", ">"),
  braid_min: extremum("min", "<"),
  // Toward zero, saturating, NaN to 0.
  braid_to_i32: `static __device__ __forceinline__ int braid_to_i32(float x) { return x != x ? 0 : __float2int_rz(x); }
static __device__ __forceinline__ int braid_to_i32(double x) { return x != x ? 0 : __double2int_rz(x); }`,
  braid_to_i64: `static __device__ __forceinline__ long long braid_to_i64(float x) { return x != x ? 0ll : __float2ll_rz(x); }
static __device__ __forceinline__ long long braid_to_i64(double x) { return x != x ? 0ll : __double2ll_rz(x); }`,
  ...Object.fromEntries(packedDTypes.map((dtype) => [`braid_round_${dtype}`, roundHelper(dtype)])),
  ...Object.fromEntries(
    (["float8_e4m3fn", "float8_e5m2"] as const).flatMap((dtype) => {
      const { decode, encode } = byteHelpers(dtype);
      return [
        [`braid_decode_${dtype}`, decode],
        [`braid_encode_${dtype}`, encode],
      ];
    }),
  ),
  braid_decode_half: `static __device__ __forceinline__ float braid_decode_half(unsigned short x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}`,
  braid_encode_half: `static __device__ __forceinline__ unsigned short braid_encode_half(float x) {
  unsigned short y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}`,
  braid_decode_bfloat16: `static __device__ __forceinline__ float braid_decode_bfloat16(unsigned short x) {
  return __uint_as_float((unsigned)x << 16);
}`,
  braid_encode_bfloat16: `static __device__ __forceinline__ unsigned short braid_encode_bfloat16(float x) {
  unsigned short y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}`,
  braid_raise: `static __device__ __forceinline__ void braid_raise(unsigned *word) {
  asm volatile("st.release.sys.global.u32 [%0], 1;" : : "l"(word) : "memory");
}`,
  braid_look: `static __device__ __forceinline__ unsigned braid_look(const unsigned *word) {
  unsigned x;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(x) : "l"(word) : "memory");
  return x;
}`,
  // A waiting kernel repeats its report every millisecond, because the reports of finished waits overwrite the word of
  // the same stream.
  braid_see: `static __device__ __forceinline__ void braid_see(const unsigned *word, unsigned *progress, unsigned says) {
  long long start = clock64();
  bool said = false;
  while (braid_look(word) != 1) {
    if (clock64() - start < 2000000) continue;
    *(volatile unsigned *)progress = says;
    said = true;
    start = clock64();
  }
  if (said) *(volatile unsigned *)progress = says + 0x80000000u;
}`,
  braid_await: `static __device__ __forceinline__ void braid_await(unsigned *word, unsigned *progress, unsigned says) {
  braid_see(word, progress, says);
  *(volatile unsigned *)word = 0;
}`,
};

/** A helper comes after the ones that it calls. */
const order: readonly string[] = [
  "braid_bad_ends",
  "braid_past_end",
  "braid_abs",
  "braid_div",
  "braid_rem",
  "braid_reciprocal",
  "braid_normal_cdf",
  "braid_max",
  "braid_min",
  "braid_to_i32",
  "braid_to_i64",
  ...packedDTypes.flatMap((dtype) => [`braid_decode_${dtype}`, `braid_encode_${dtype}`]),
  ...packedDTypes.map((dtype) => `braid_round_${dtype}`),
  "braid_raise",
  "braid_look",
  "braid_see",
  "braid_await",
];

/** A kernel of these lines, with the helpers that they need. */
export function kernelOf(
  lines: readonly string[],
  grid: KernelSource["grid"],
  threads: number,
  parameters: readonly Parameter[],
): KernelSource {
  return { text: withPrelude(`${indented(lines)}\n`), grid, block: [threads, 1, 1], parameters };
}

/** The helpers that `text` needs, before it. */
export function withPrelude(text: string): string {
  const needed = new Set<string>();
  const visit = (source: string): void => {
    for (const name of order) {
      if (needed.has(name) || !new RegExp(`\\b${name}\\b`).test(source)) continue;
      needed.add(name);
      visit(helpers[name] ?? "");
    }
  };
  visit(text);
  const used = order.filter((name) => needed.has(name)).map((name) => helpers[name] ?? "");
  return [...used, text].join("\n");
}

function roundHelper(dtype: PackedDType): string {
  return `static __device__ __forceinline__ float braid_round_${dtype}(float x) {
  return braid_decode_${dtype}(braid_encode_${dtype}(x));
}`;
}

/**
 * Conversions in integers, as numerics/convert.ts has them. GPUs of compute capability 8.9 and newer have an instruction,
 * which saturates.
 */
function byteHelpers(dtype: "float8_e4m3fn" | "float8_e5m2"): { readonly decode: string; readonly encode: string } {
  const { shift, rebias, spacing, sign, infinity, nan } = wordFormats[dtype];
  const { c } = dtypes[dtype].cuda;
  const signShift = 32 - 8 * dtypes[dtype].bytes;
  const hex = (bits: number): string => `0x${bits.toString(16)}u`;
  // What rounds beyond the largest number.
  const isTooLarge = dtype === "float8_e4m3fn" ? "fabsf(x) > 464.0f" : "fabsf(x) >= 61440.0f";
  return {
    decode: `static __device__ __forceinline__ float braid_decode_${dtype}(${c} x) {
  const unsigned magnitude = x & ${hex(sign - 1)};
  const float finite = __uint_as_float(magnitude << ${shift}) * __uint_as_float(${hex(rebias + 127 * 2 ** 23)});
  const unsigned bits = magnitude < ${hex(infinity)} ? __float_as_uint(finite) : magnitude << ${shift} | 0x7f800000u;
  return __uint_as_float(bits | (x & ${hex(sign)}) << ${signShift});
}`,
    encode: `static __device__ __forceinline__ ${c} braid_encode_${dtype}(float x) {
  const unsigned bits = __float_as_uint(x);
#if __CUDA_ARCH__ >= 890
  unsigned short y;
  asm("cvt.rn.satfinite.${dtype.slice(7, 11)}x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  if (${isTooLarge}) return (${c})((bits >> ${signShift} & ${hex(sign)}) | ${hex(infinity)});
  return (${c})(x != x ? ${hex(nan)} : y);
#else
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return ${hex(nan)};
  const unsigned rounded = magnitude < ${hex(rebias + 2 ** 23)}
    ? __float_as_uint(fabsf(x) + __uint_as_float(${hex(spacing)})) - ${hex(spacing)}
    : (magnitude + ${hex((2 ** (shift - 1) - 1 - rebias) >>> 0)} + (magnitude >> ${shift} & 1u)) >> ${shift};
  return (${c})((bits >> ${signShift} & ${hex(sign)}) | (rounded < ${hex(infinity)} ? rounded : ${hex(infinity)}));
#endif
}`,
  };
}

function assertion(name: string, message: string, op: string): string {
  return `extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);
static __device__ void braid_${name}() {
  __assertfail("${message}", "${op}", 0, "braid_kernel", 1);
}`;
}

function extremum(name: "max" | "min", wins: ">" | "<"): string {
  const zeros = name === "max" ? "&" : "|";
  return `static __device__ __forceinline__ float braid_${name}(float x, float y) {
  float z;
  asm("${name}.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
static __device__ __forceinline__ double braid_${name}(double x, double y) {
  if (x != x) return x;
  if (y != y) return y;
  if (x == y) return __longlong_as_double(__double_as_longlong(x) ${zeros} __double_as_longlong(y));
  return x ${wins} y ? x : y;
}
static __device__ __forceinline__ int braid_${name}(int x, int y) { return x ${wins} y ? x : y; }
static __device__ __forceinline__ long long braid_${name}(long long x, long long y) { return x ${wins} y ? x : y; }`;
}

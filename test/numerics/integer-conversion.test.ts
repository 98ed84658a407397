/** Conversions between floats and integers, against WebAssembly's rules computed in exact integer arithmetic. */
import { describe, expect, it } from "vitest";
import { int64ToFloat, truncateToInt, truncateToInt64 } from "../../src/numerics/scalar/emit-js.ts";
import { createRandom } from "../../src/support/random.ts";

describe("truncateToInt", () => {
  it.each([
    [1.9, 1],
    [-1.9, -1],
    [-0.5, 0],
    [-0, 0],
    [2147483646.9, 2147483646],
    [2147483647, 2147483647],
    [2147483648, 2147483647],
    [-2147483648.9, -2147483648],
    [-2147483649, -2147483648],
    [1e300, 2147483647],
    [Infinity, 2147483647],
    [-Infinity, -2147483648],
    [NaN, 0],
  ])("%d -> %d", (x, expected) => expect(truncateToInt(x)).toBe(expected));
});

describe("truncateToInt64", () => {
  it.each([
    [1.9, 1n],
    [-1.9, -1n],
    [-0, 0n],
    [2251799813685249.5, 2251799813685249n],
    [2 ** 63, 2n ** 63n - 1n],
    [2 ** 63 - 1024, 2n ** 63n - 1024n],
    [-(2 ** 63), -(2n ** 63n)],
    [-1e30, -(2n ** 63n)],
    [Infinity, 2n ** 63n - 1n],
    [-Infinity, -(2n ** 63n)],
    [NaN, 0n],
  ])("%d -> %d", (x, expected) => expect(truncateToInt64(x)).toBe(expected));
});

/** The nearest multiple of 2^shift with 24 significant bits, ties to even, in integers only. */
function nearestFloat(x: bigint): number {
  const magnitude = x < 0n ? -x : x;
  const bits = magnitude.toString(2).length;
  const shift = BigInt(Math.max(0, bits - 24));
  const unit = 1n << shift;
  const below = magnitude / unit;
  const twice = (magnitude % unit) * 2n;
  const up = twice > unit || (twice === unit && below % 2n === 1n);
  // At most 2^24 times a power of two: exact in double.
  const rounded = Number(below + (up ? 1n : 0n)) * Number(unit);
  return x < 0n ? -rounded : rounded;
}

describe("int64ToFloat", () => {
  it("rounds once, also where double would round first", () => {
    // Just above the midpoint of two float32s, by less than a double can tell.
    const x = 2n ** 62n + 2n ** 38n + 1n;
    expect(int64ToFloat(x)).toBe(2 ** 62 + 2 ** 39);
    expect(Math.fround(Number(x))).toBe(2 ** 62);
    expect(int64ToFloat(-x)).toBe(-(2 ** 62 + 2 ** 39));
  });

  it("takes the even neighbour at midpoints", () => {
    expect(int64ToFloat(2n ** 62n + 2n ** 38n)).toBe(2 ** 62);
    expect(int64ToFloat(2n ** 62n + 3n * 2n ** 38n)).toBe(2 ** 62 + 2 ** 40);
  });

  it("is the nearest float32 everywhere", () => {
    const random = createRandom(5);
    const edges = [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 24n + 1n, 2n ** 53n, 2n ** 53n + 1n];
    const drawn = Array.from({ length: 20_000 }, () => {
      const wide = BigInt.asIntN(64, (BigInt(random.uint32()) << 32n) | BigInt(random.uint32()));
      return wide >> BigInt(random.integer(63));
    });
    expect([...edges, ...drawn].filter((x) => !Object.is(int64ToFloat(x), nearestFloat(x)))).toEqual([]);
  });

  it("sees every sticky bit", () => {
    const midpoint = 2n ** 62n + 2n ** 38n;
    for (let bit = 0; bit < 38; bit++) {
      expect(int64ToFloat(midpoint + (1n << BigInt(bit)))).toBe(2 ** 62 + 2 ** 39);
      expect(int64ToFloat(midpoint - (1n << BigInt(bit)))).toBe(2 ** 62);
    }
  });
});

/**
 * Words of packed dtypes. The reference is arithmetic on the definition: a word's value from its fields, and the
 * nearest word by comparing distances in exact double arithmetic.
 */
import { describe, expect, it } from "vitest";
import { packings, roundPacked } from "../../src/numerics/convert.ts";
import type { PackedDType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";

interface Format {
  readonly name: PackedDType;
  readonly exponentBits: number;
  readonly fractionBits: number;
  readonly nan: number;
  /** All ones are NaN, and there are no infinities. */
  readonly finite?: true;
}

const formats: readonly Format[] = [
  { name: "half", exponentBits: 5, fractionBits: 10, nan: 0x7e00 },
  { name: "bfloat16", exponentBits: 8, fractionBits: 7, nan: 0x7fc0 },
  { name: "float8_e4m3fn", exponentBits: 4, fractionBits: 3, nan: 0x7f, finite: true },
  { name: "float8_e5m2", exponentBits: 5, fractionBits: 2, nan: 0x7e },
];

/** The value of a word by IEEE 754's definition. Infinity's word continues the largest binade instead. */
function definedValue(format: Format, word: number): number {
  const { exponentBits, fractionBits } = format;
  const fraction = word & (2 ** fractionBits - 1);
  const exponent = (word >>> fractionBits) & (2 ** exponentBits - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = word < signOf(format) ? 1 : -1;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / 2 ** fractionBits) * 2 ** (exponent - bias);
}

function signOf({ exponentBits, fractionBits }: Format): number {
  return 2 ** (exponentBits + fractionBits);
}

/** The word of everything larger: all ones in a format without infinities. */
function infinityOf(format: Format): number {
  return format.finite === true ? signOf(format) - 1 : signOf(format) - 2 ** format.fractionBits;
}

/** The nearest magnitude word, ties to even, found by bisection over the words below and at infinity. */
function nearestWord(format: Format, x: number): number {
  let below = 0;
  let above = infinityOf(format);
  if (x >= definedValue(format, above)) return above;
  while (above - below > 1) {
    const middle = (below + above) >>> 1;
    if (definedValue(format, middle) <= x) below = middle;
    else above = middle;
  }
  const down = x - definedValue(format, below);
  const up = definedValue(format, above) - x;
  if (down === up) return below % 2 === 0 ? below : above;
  return down < up ? below : above;
}

/** Any finite float32, all exponents alike. */
function anyFloat(random: Random): number {
  const bits = new DataView(new ArrayBuffer(4));
  bits.setUint32(0, random.uint32());
  const x = bits.getFloat32(0);
  return Number.isFinite(x) ? x : 0;
}

describe.each(formats)("$name", (format) => {
  const { name, nan } = format;
  const { encode: narrow, decode: widen } = packings[name];
  const sign = signOf(format);
  const largest = format.finite === true ? NaN : Infinity;
  const round = (x: number): number => roundPacked(name, x);
  const infinity = infinityOf(format);

  it("gives every word its value", () => {
    for (let word = 0; word < 2 * sign; word++) {
      const magnitude = word % sign;
      const ofInfinity = word < sign ? largest : -largest;
      const expected = magnitude > infinity ? NaN : magnitude === infinity ? ofInfinity : definedValue(format, word);
      if (!Object.is(widen(word), expected)) expect.fail(`${word.toString(16)}: ${widen(word)}, not ${expected}`);
    }
  });

  it("takes every word back from its value, NaNs to one", () => {
    for (let word = 0; word < 2 * sign; word++) {
      const expected = Number.isNaN(widen(word)) ? nan : word;
      if (narrow(widen(word)) !== expected) expect.fail(word.toString(16));
    }
  });

  it("rounds to nearest even around every pair of neighbours", () => {
    const float32 = new Float32Array(3);
    const bits = new Int32Array(float32.buffer);
    for (let word = 0; word < infinity; word++) {
      // The midpoint is a float32, and so are its neighbours.
      const middle = (definedValue(format, word) + definedValue(format, word + 1)) / 2;
      float32.fill(middle);
      bits[0] = at(bits, 0) - 1;
      bits[2] = at(bits, 2) + 1;
      const even = word % 2 === 0 ? word : word + 1;
      const found = [...float32].map(narrow);
      const negative = [...float32].map((x) => narrow(-x));
      if (found.join() !== [word, even, word + 1].join()) expect.fail(`${middle}: ${found.join()}`);
      if (negative.join() !== [word, even, word + 1].map((w) => w | sign).join()) expect.fail(`${-middle}`);
    }
  });

  it("rounds random floats to the nearest word", () => {
    const random = createRandom(11);
    for (let i = 0; i < 20_000; i++) {
      const x = anyFloat(random);
      const expected = nearestWord(format, Math.abs(x)) | (x < 0 || Object.is(x, -0) ? sign : 0);
      if (narrow(x) !== expected) expect.fail(`${x}: ${narrow(x)}, not ${expected}`);
    }
  });

  it("keeps zeros, infinities and NaN", () => {
    expect([0, -0, Infinity, -Infinity, NaN].map(narrow)).toEqual([0, sign, infinity, infinity | sign, nan]);
    expect([0, -0, Infinity, -Infinity, NaN].map(round)).toEqual([0, -0, largest, -largest, NaN]);
  });

  it("rounds idempotently", () => {
    const random = createRandom(12);
    for (let i = 0; i < 5_000; i++) {
      const once = round(anyFloat(random));
      if (!Object.is(round(once), once)) expect.fail(`${once}: ${round(once)}`);
    }
  });
});

it("overflows half from 65520 on", () => {
  expect(roundPacked("half", 65519.99609375)).toBe(65504);
  expect(roundPacked("half", 65520)).toBe(Infinity);
  expect(roundPacked("half", -1e30)).toBe(-Infinity);
});

it("overflows bfloat16 halfway above its largest value", () => {
  expect(roundPacked("bfloat16", 3.3895313892515355e38)).toBe(3.3895313892515355e38);
  expect(roundPacked("bfloat16", 3.4028234663852886e38)).toBe(Infinity);
});

it("overflows floats of 8 bits as PyTorch does", () => {
  const e4m3 = [464, 464.00003, -465, 1e30, Infinity].map((x) => roundPacked("float8_e4m3fn", Math.fround(x)));
  expect(e4m3).toEqual([448, NaN, NaN, NaN, NaN]);
  const e5m2 = [61439.996, 61440, -61440, 1e30].map((x) => roundPacked("float8_e5m2", Math.fround(x)));
  expect(e5m2).toEqual([57344, Infinity, -Infinity, Infinity]);
});

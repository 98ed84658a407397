/**
 * half and bfloat16 words. The reference is arithmetic on the definition: a word's value from its fields, and the
 * nearest word by comparing distances in exact double arithmetic.
 */
import { describe, expect, it } from "vitest";
import { bfloat16ToFloat, floatToBFloat16, floatToHalf, halfToFloat, roundPacked } from "../../src/numerics/convert.ts";
import type { PackedDType } from "../../src/numerics/dtype.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";

interface Format {
  readonly name: PackedDType;
  readonly exponentBits: number;
  readonly fractionBits: number;
  readonly narrow: (x: number) => number;
  readonly widen: (word: number) => number;
  readonly nan: number;
}

const formats: readonly Format[] = [
  {
    name: "half",
    exponentBits: 5,
    fractionBits: 10,
    narrow: floatToHalf,
    widen: halfToFloat,
    nan: 0x7e00,
  },
  {
    name: "bfloat16",
    exponentBits: 8,
    fractionBits: 7,
    narrow: floatToBFloat16,
    widen: bfloat16ToFloat,
    nan: 0x7fc0,
  },
];

/** The value of a word by IEEE 754's definition. Infinity's word continues the largest binade instead. */
function definedValue({ exponentBits, fractionBits }: Format, word: number): number {
  const fraction = word & (2 ** fractionBits - 1);
  const exponent = (word >>> fractionBits) & (2 ** exponentBits - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = word >>> 15 === 1 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias - fractionBits);
  return sign * (1 + fraction / 2 ** fractionBits) * 2 ** (exponent - bias);
}

function infinityOf({ exponentBits, fractionBits }: Format): number {
  return (2 ** exponentBits - 1) << fractionBits;
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
  const { name, narrow, widen, nan } = format;
  const round = (x: number): number => roundPacked(name, x);
  const infinity = infinityOf(format);

  it("gives every word its value", () => {
    for (let word = 0; word < 0x1_0000; word++) {
      const magnitude = word & 0x7fff;
      const sign = word >>> 15 === 1 ? -1 : 1;
      const expected =
        magnitude > infinity ? NaN : magnitude === infinity ? sign * Infinity : definedValue(format, word);
      if (!Object.is(widen(word), expected)) expect.fail(`${word.toString(16)}: ${widen(word)}, not ${expected}`);
    }
  });

  it("takes every word back from its value, NaNs to one", () => {
    for (let word = 0; word < 0x1_0000; word++) {
      const expected = (word & 0x7fff) > infinity ? nan : word;
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
      if (negative.join() !== [word, even, word + 1].map((w) => w | 0x8000).join()) expect.fail(`${-middle}`);
    }
  });

  it("rounds random floats to the nearest word", () => {
    const random = createRandom(11);
    for (let i = 0; i < 20_000; i++) {
      const x = anyFloat(random);
      const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
      const expected = nearestWord(format, Math.abs(x)) | sign;
      if (narrow(x) !== expected) expect.fail(`${x}: ${narrow(x)}, not ${expected}`);
    }
  });

  it("keeps zeros, infinities and NaN", () => {
    expect([0, -0, Infinity, -Infinity, NaN].map(narrow)).toEqual([0, 0x8000, infinity, infinity | 0x8000, nan]);
    expect([0, -0, Infinity, -Infinity, NaN].map(round)).toEqual([0, -0, Infinity, -Infinity, NaN]);
  });

  it("rounds idempotently", () => {
    const random = createRandom(12);
    for (let i = 0; i < 5_000; i++) {
      const once = round(anyFloat(random));
      expect(Object.is(round(once), once)).toBe(true);
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

it("gives words back", () => {
  const words = Uint16Array.of(0, 0x8000, 1, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x3f80);
  expect([...words].map(halfToFloat).map(floatToHalf)).toEqual([...words]);
  expect([...words].map(bfloat16ToFloat).map(floatToBFloat16)).toEqual([...words]);
});

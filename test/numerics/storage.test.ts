/** Elements in memory: bytes of every dtype, and values read back as they were written. */
import { describe, expect, it } from "vitest";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { elementsOf, storageView, type Value } from "../../src/numerics/tensor/host-tensor.ts";
import { keysOf } from "../../src/support/invariant.ts";

const bytesOfOne: { readonly [D in DType]: readonly number[] } = {
  double: [0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
  float: [0, 0, 0x80, 0x3f],
  half: [0, 0x3c],
  bfloat16: [0x80, 0x3f],
  float8_e4m3fn: [0x38],
  float8_e5m2: [0x3c],
  int: [1, 0, 0, 0],
  int64: [1, 0, 0, 0, 0, 0, 0, 0],
  bool: [1],
};

function one(dtype: DType): Value {
  return dtype === "int64" ? 1n : 1;
}

describe.each(keysOf(dtypes))("%s", (dtype) => {
  it("has its bytes, little-endian, and lies where it is put", () => {
    const buffer = new ArrayBuffer(64);
    const { bytes } = dtypes[dtype];
    const view = storageView(dtype, buffer, 8, 3);
    expect([view.length, view.byteOffset, view.BYTES_PER_ELEMENT]).toEqual([3, 8, bytes]);
    elementsOf(dtype, view).set(1, one(dtype));
    const expected = Array.from({ length: 64 }, () => 0);
    expected.splice(8 + bytes, bytes, ...bytesOfOne[dtype]);
    expect([...new Uint8Array(buffer)]).toEqual(expected);
  });

  it("reads what it wrote, over all that follows by default", () => {
    const elements = elementsOf(dtype, storageView(dtype, new ArrayBuffer(43), 8));
    expect(elements.length).toBe(Math.floor(35 / dtypes[dtype].bytes));
    elements.set(elements.length - 1, one(dtype));
    expect(elements.get(elements.length - 1)).toBe(one(dtype));
    expect(elements.get(0)).toBe(dtype === "int64" ? 0n : 0);
  });

  it("refuses an index outside and a value of the wrong kind", () => {
    const elements = elementsOf(dtype, storageView(dtype, new ArrayBuffer(16)));
    expect(() => elements.get(elements.length)).toThrow("invariant");
    expect(() => elements.set(elements.length, one(dtype))).toThrow("invariant");
    expect(() => elements.set(0, dtype === "int64" ? 1 : 1n)).toThrow("invariant");
  });
});

it("rounds to half and bfloat16 through float32", () => {
  // 2049 + 2^-20 lies above the midpoint of 2048 and 2050, but float32 knows no such number.
  const half = elementsOf("half", new Uint16Array(1));
  half.set(0, 2049 + 2 ** -20);
  expect(half.get(0)).toBe(2048);
  const bfloat16 = elementsOf("bfloat16", new Uint16Array(1));
  bfloat16.set(0, 257 + 2 ** -20);
  expect(bfloat16.get(0)).toBe(256);
});

it("stores bool as 0 or 1", () => {
  const bytes = new Uint8Array(2);
  const bool = elementsOf("bool", bytes);
  bool.set(0, -7);
  bool.set(1, NaN);
  expect([...bytes]).toEqual([1, 1]);
});

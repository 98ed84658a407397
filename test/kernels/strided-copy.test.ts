/** Strided copies against element-by-element ones, byte for byte. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CopyShape, createMoveBytes, prepareCopy } from "../../src/kernels/strided-copy.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { createWasmMemory } from "../../src/support/webassembly.ts";
import { offsetsOf, rowMajor } from "./run-kernel.ts";

/** Copies from one half of a memory of random bytes to the other, twice: by the kernel and element by element. */
function check(copy: CopyShape): void {
  const { shape, elementBytes, source, destination } = copy;
  const random = createRandom(1);
  const span = (strides: readonly number[]): number =>
    (1 + shape.reduce((last, extent, i) => last + (extent - 1) * at(strides, i), 0)) * elementBytes;
  const start = 16;
  const target = start + Math.ceil(span(source) / 8) * 8 + 16;
  const bytes = Uint8Array.from({ length: Math.ceil((target + span(destination) + 16) / 8) * 8 }, () =>
    random.integer(256),
  );
  const expected = bytes.slice();
  const to = offsetsOf({ shape, strides: destination });
  for (const [i, from] of offsetsOf({ shape, strides: source }).entries()) {
    const first = start + from * elementBytes;
    expected.set(bytes.subarray(first, first + elementBytes), target + at(to, i) * elementBytes);
  }
  const copied = copiedIn(bytes, copy, start, target);
  expect(Buffer.from(copied).equals(Buffer.from(expected))).toBe(true);
}

/** The bytes after the copy, in a memory of their size. */
function copiedIn(bytes: Uint8Array, copy: CopyShape, source: number, target: number): Uint8Array {
  const memory = createWasmMemory(bytes.length);
  const own = new Uint8Array(memory.buffer, 0, bytes.length);
  own.set(bytes);
  prepareCopy(memory, createMoveBytes(memory), copy)(source, target);
  return own;
}

const sizes = [1, 2, 4, 8] as const;

describe.each(sizes)("elements of %i bytes", (elementBytes) => {
  it("one element", () => check({ shape: [], elementBytes, source: [], destination: [] }));

  it("a long contiguous run", () => check({ shape: [500], elementBytes, source: [1], destination: [1] }));

  it("rows shorter and longer than a call is worth", () => {
    for (const columns of [1, 3, 8, 15, 16, 17, 64, 65]) {
      check({ shape: [5, columns], elementBytes, source: [70, 1], destination: [columns, 1] });
      check({ shape: [5, columns], elementBytes, source: [columns, 1], destination: [70, 1] });
    }
  });

  it("a transposition", () => check({ shape: [7, 9], elementBytes, source: [1, 7], destination: [9, 1] }));

  it("one element again and again", () =>
    check({ shape: [4, 30], elementBytes, source: [0, 0], destination: [30, 1] }));

  it("axes of one element, whatever their strides", () => {
    check({ shape: [1, 6, 1, 40], elementBytes, source: [3, 40, 7, 1], destination: [1, 50, 0, 1] });
  });
});

it("any box", () => {
  const axis = fc.record({ extent: fc.integer({ min: 1, max: 9 }), pad: fc.integer({ min: 0, max: 3 }) });
  const boxes = fc.record({
    axes: fc.array(axis, { maxLength: 4 }),
    elementBytes: fc.constantFrom(...sizes),
    ranks: fc.tuple(fc.nat(), fc.nat(), fc.nat(), fc.nat()),
    padded: fc.constantFrom("source", "destination"),
  });
  fc.assert(
    fc.property(boxes, ({ axes, elementBytes, ranks, padded }) => {
      const shape = axes.map(({ extent }) => extent);
      // The padded side lies in memory in a random order of its axes.
      const ranked = axes.map((each, i) => ({ ...each, i, rank: at(ranks, i) })).toSorted((a, b) => a.rank - b.rank);
      const strides = shape.map(() => 0);
      let stride = 1;
      for (const { extent, pad, i } of ranked) {
        strides[i] = stride;
        stride *= extent + pad;
      }
      const [source, destination] = padded === "source" ? [strides, rowMajor(shape)] : [rowMajor(shape), strides];
      check({ shape, elementBytes, source, destination });
    }),
  );
});

it("keeps the bits of signalling NaNs", () => {
  const words = new BigUint64Array([0x7ff0_0000_0000_0001n, 0xfff4_dead_beef_0001n, 0n, 0n]);
  const copy = { shape: [2], elementBytes: 8, source: [1], destination: [1] };
  const copied = copiedIn(new Uint8Array(words.buffer), copy, 0, 16);
  expect([...new BigUint64Array(copied.buffer, 16, 2)]).toEqual([0x7ff0_0000_0000_0001n, 0xfff4_dead_beef_0001n]);
});

/** Trials of GEMMs on a GPU that is memory of the test's own. */
import { expect, it } from "vitest";
import type { Out } from "../../../src/backends/cuda/bindings/driver-api.ts";
import type { Trial } from "../../../src/backends/cuda/matmul/fastest-algorithm.ts";
import type { GemmLayout } from "../../../src/backends/cuda/matmul/gemm-layout.ts";
import { type TrialPlace, type TrialTools, withTrial } from "../../../src/backends/cuda/matmul/gemm-trial.ts";
import { at } from "../../../src/support/invariant.ts";

const layout: GemmLayout = {
  dtype: "half",
  swapped: false,
  left: { rows: 6, columns: 5, leading: 8, transposed: false, batchStride: 48 },
  right: { rows: 5, columns: 4, leading: 5, transposed: false, batchStride: 20 },
  result: { rows: 6, columns: 4, leading: 6, transposed: false, batchStride: 24 },
  hasBias: false,
  batchCount: 2,
  offsets: [],
};
/** Of the left operand, the right operand, the result and the workspace. */
const bytes = [2 * (48 + 4 * 8 + 6), 2 * (20 + 3 * 5 + 5), 2 * (24 + 3 * 6 + 6), 64 << 20];

/** A GPU with room for so many blocks. */
function fakeGpu(room: number) {
  const blocks = new Map<number, Uint8Array>();
  const asked: number[] = [];
  const find = (address: number): Uint8Array => {
    const block = blocks.get(Math.floor(address / 2 ** 32));
    if (block === undefined) throw new Error(`no memory at ${address}`);
    return block.subarray(address % 2 ** 32);
  };
  const raw = {
    cuMemAlloc_v2: (out: Out, size: number) => {
      asked.push(size);
      if (asked.length > room) return 2;
      blocks.set(asked.length, new Uint8Array(size));
      out[0] = asked.length * 2 ** 32;
      return 0;
    },
    cuMemFree_v2: (address: number) => (blocks.delete(address / 2 ** 32) ? 0 : 1),
    cuStreamQuery: () => 0,
  };
  const call = {
    cuMemcpyDtoDAsync_v2: (to: number, from: number, size: number) => find(to).set(find(from).subarray(0, size)),
  };
  const staging = {
    upload: (to: number, data: Uint8Array) => find(to).set(data),
    download: (from: number, data: Uint8Array) => data.set(find(from).subarray(0, data.length)),
  };
  // oxlint-disable-next-line typescript/consistent-type-assertions -- the calls that a trial makes
  return { tools: { gpu: { raw, call }, staging, stream: 7 } as unknown as TrialTools, blocks, asked, find };
}

it("takes memory for the operands and a workspace, and gives it back", () => {
  const { tools, blocks, asked, find } = fakeGpu(4);
  let place: TrialPlace | null = null;
  const queueOf = (given: TrialPlace) => {
    place = given;
    return (algorithm: number): number => {
      find(given.result).set([algorithm], at(bytes, 2) - 1);
      return algorithm === 9 ? 1 : 0;
    };
  };
  const results = withTrial(tools, layout, 3, queueOf, ({ count, resultOf, time }: Trial) => {
    expect(time(0, 4)).toBeGreaterThanOrEqual(0);
    return [count, resultOf(1), resultOf(2), resultOf(9)] as const;
  });
  expect(asked).toEqual(bytes);
  expect(place).toMatchObject({ stream: 7 });
  const [count, one, two, failed] = results ?? [];
  expect(count).toBe(3);
  expect([one?.length, one?.at(-1), two?.at(-1)]).toEqual([bytes[2], 1, 2]);
  expect(one?.subarray(0, -1)).toEqual(two?.subarray(0, -1));
  expect(failed).toBeNull();
  expect(blocks.size).toBe(0);
});

it("of 8-bit floats has operands of their dtypes, and scales for the rows or columns", () => {
  const { tools, asked, find } = fakeGpu(5);
  const scaled: GemmLayout = {
    ...layout,
    dtype: "bfloat16",
    batchCount: 1,
    scaled: { left: "float8_e4m3fn", right: "float8_e5m2", vectors: true },
  };
  withTrial(
    tools,
    scaled,
    1,
    ({ left, right, scales }) =>
      () => {
        // The bytes of infinities and NaNs.
        expect(find(left).every((byte) => (byte & 0x7f) !== 0x7f)).toBe(true);
        expect(find(right).every((byte) => (byte & 0x7c) !== 0x7c)).toBe(true);
        const values = [...new Float32Array(find(scales).slice().buffer)];
        expect(values.map((value) => value !== 0 && Math.abs(value) < 2)).toEqual(Array(6).fill(true));
        return 0;
      },
    ({ resultOf }) => resultOf(0),
  );
  expect(asked).toEqual([4 * 8 + 6, 3 * 5 + 5, 2 * (3 * 6 + 6), 4 * 6, 64 << 20]);
  expect.assertions(4);
});

it("does not take place where memory does not suffice", () => {
  const { tools, blocks } = fakeGpu(3);
  expect(
    withTrial(
      tools,
      layout,
      3,
      () => () => 0,
      () => "tried",
    ),
  ).toBeNull();
  expect(blocks.size).toBe(0);
});

it("gives memory back when a call fails", () => {
  const { tools, blocks } = fakeGpu(4);
  const failing = (): never => {
    throw new Error("the GPU is gone");
  };
  expect(() => withTrial(tools, layout, 3, () => () => 0, failing)).toThrow("the GPU is gone");
  expect(blocks.size).toBe(0);
});

it("operands are finite and of both signs, and repeat with an odd period", () => {
  const { tools, find } = fakeGpu(4);
  const large: GemmLayout = {
    ...layout,
    batchCount: 1,
    left: { ...layout.left, rows: 2 ** 19, leading: 2 ** 19, columns: 1 },
  };
  withTrial(
    tools,
    large,
    1,
    ({ left }) =>
      () => {
        const all = find(left).slice(0, 2 * 2 ** 19);
        const words = new Uint16Array(all.buffer);
        // An exponent of ones is an infinity or a NaN.
        expect(words.every((word) => (word & 0x7c00) !== 0x7c00)).toBe(true);
        expect(words.some((word) => word >= 0x8000) && words.some((word) => word > 0 && word < 0x8000)).toBe(true);
        const period = 2 ** 18 + 3;
        expect(words.slice(0, 1000)).toEqual(words.slice(period, period + 1000));
        return 0;
      },
    ({ resultOf }) => resultOf(0),
  );
  expect.assertions(3);
});

/** Scaled matmuls whose scales are of blocks: values against sums in float64, sharded as whole, and what is refused. */
import { DeviceMesh, Fusion, lower, parse, print, Tensor, type TensorView } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import * as api from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const { cast, quantize, scaledLinear, scaledMatmul, set } = api;

function random(shape: readonly number[], dtype: DType, seed: number): Tensor {
  const draw = createRandom(seed);
  const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 4 * draw.float() - 2);
  return { ...Tensor.from(values, dtype), shape };
}

interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Rows of a block of the weight. */
  readonly rows: number;
}

const cases: Readonly<Record<string, Sizes>> = {
  "1 x 128 with 1 x 128": { m: 5, n: 3, k: 256, rows: 1 },
  "1 x 128 with 128 x 128": { m: 5, n: 256, k: 256, rows: 128 },
  "a last block of fewer rows": { m: 3, n: 144, k: 128, rows: 128 },
  "one block": { m: 3, n: 16, k: 128, rows: 128 },
};

describe.each(Object.entries(cases))("%s", (_, { m, n, k, rows }) => {
  const [blocks, ofN] = [k / 128, Math.ceil(n / rows)];

  it.each(["bfloat16", "float"] as const)("adds the scaled sums of blocks, in %s", async (dtype) => {
    const f = new Fusion();
    const [x, w] = [f.input([m, k], "float8_e4m3fn"), f.input([k, n], "float8_e5m2")];
    f.output(scaledMatmul(x, w, f.input([m, blocks], "float"), f.input([blocks, ofN], "float"), { dtype }));
    const given = [
      random([m, k], "float8_e4m3fn", 1),
      random([k, n], "float8_e5m2", 2),
      random([m, blocks], "float", 3),
      random([blocks, ofN], "float", 4),
    ];
    const [a = [], b = [], p = [], q = []] = given.map((each) => Tensor.values(each).map(Number));
    const found = Tensor.values(at(evaluateFusion(f.data(), given).outputs, 0)).map(Number);
    const epsilon = dtype === "float" ? 2 ** -20 : 2 ** -8;
    for (const [i, value] of found.entries()) {
      const [row, column] = [Math.floor(i / n), i % n];
      const terms = Array.from({ length: k }, (__, z) => {
        const block = Math.floor(z / 128);
        const scales = at(p, row * blocks + block) * at(q, block * ofN + Math.floor(column / rows));
        return at(a, row * k + z) * at(b, z * n + column) * scales;
      });
      const size = terms.reduce((sum, each) => sum + Math.abs(each), 0);
      const wanted = terms.reduce((sum, each) => sum + each, 0);
      expect(Math.abs(value - wanted)).toBeLessThanOrEqual(epsilon * Math.abs(wanted) + 2 ** -20 * size);
    }
    await expectOracle(f, { devices: 1, rounds: true, machineAlone: true });
  });
});

interface Sharded {
  readonly f: Fusion;
  readonly y: TensorView;
}

/** x [m, k] and w [n, k] with blocks of `rows` rows, all on two devices, cut as `cut` says. */
function sharded(
  { m, n, k, rows }: Sizes,
  cut: (tensors: readonly [x: TensorView, w: TensorView, ofX: TensorView, ofW: TensorView, y: TensorView]) => void,
): Sharded {
  const f = new Fusion();
  const [x, w] = [f.input([m, k], "float8_e4m3fn"), f.input([n, k], "float8_e5m2")];
  const [ofX, ofW] = [f.input([m, k / 128], "float"), f.input([Math.ceil(n / rows), k / 128], "float")];
  const y = scaledLinear(x, w, ofX, ofW);
  f.output(y);
  for (const each of [x, w, ofX, ofW, y]) each.setDeviceMesh(DeviceMesh.range(2));
  cut([x, w, ofX, ofW, y]);
  return { f, y };
}

const collectives = (f: Fusion): readonly string[] =>
  [...print(lower(f)).matchAll(/type=([A-Z]\w+)/gu)].map(([, kind = ""]) => kind);

describe("over devices", () => {
  const inHalves = (each: TensorView, axis: number): void => {
    each.outerSplit(axis, 2).parallelize("DIDx");
  };

  it.each([1, 128])("cuts the blocks of %i rows with the rows of the weight", async (rows) => {
    const { f } = sharded({ m: 4, n: 512, k: 128, rows }, ([, w, , ofW, y]) => {
      inHalves(w, 0);
      inHalves(ofW, 0);
      inHalves(y, 1);
    });
    expect(collectives(f)).toEqual([]);
    await expectOracle(f, { devices: 2, rounds: true, machineAlone: true });
  });

  it.each([1, 128])("cuts the blocks of %i rows with K, and adds the devices' sums", async (rows) => {
    const { f } = sharded({ m: 4, n: 256, k: 512, rows }, ([x, w, ofX, ofW, y]) => {
      for (const each of [x, w, ofX, ofW]) inHalves(each, 1);
      inHalves(y, 0);
    });
    expect(collectives(f)).toEqual(["ReduceScatter"]);
    await expectOracle(f, { devices: 2, rounds: true });
  });

  it("takes its part of scales that are whole where K is cut", async () => {
    const { f } = sharded({ m: 4, n: 16, k: 512, rows: 1 }, ([x, w]) => {
      for (const each of [x, w]) inHalves(each, 1);
    });
    expect(collectives(f)).toEqual(["Allreduce"]);
    await expectOracle(f, { devices: 2, rounds: true });
  });

  const uneven: Readonly<Record<string, readonly [Sizes, (tensors: readonly TensorView[]) => void]>> = {
    "K in halves of a block and a half": [
      { m: 4, n: 16, k: 384, rows: 1 },
      ([x, w]) => [x, w].forEach((each) => each && inHalves(each, 1)),
    ],
    "rows in halves of a block and a half": [
      { m: 4, n: 384, k: 128, rows: 128 },
      ([, w, , , y]) => [w, y].forEach((each, axis) => each && inHalves(each, axis)),
    ],
    "rows in halves, the last block of which has fewer": [
      { m: 4, n: 192, k: 128, rows: 128 },
      ([, w, , ofW, y]) => [w, y, ofW].forEach((each, i) => each && inHalves(each, i % 2)),
    ],
    "rows of one block in halves": [
      { m: 4, n: 64, k: 128, rows: 128 },
      ([, w, , , y]) => [w, y].forEach((each, axis) => each && inHalves(each, axis)),
    ],
  };
  it.each(Object.entries(uneven))("is right where devices have %s", async (name, [sizes, cut]) => {
    const { f } = sharded(sizes, cut);
    expect(collectives(f)).toEqual(name.startsWith("rows of one") ? [] : expect.arrayContaining(["Allgather"]));
    await expectOracle(f, { devices: 2, rounds: true, machineAlone: true });
  });

  it.each([false, true])("gathers rows with their scales, Stream: %s", async (stream) => {
    const f = new Fusion();
    const [x, w] = [f.input([2, 4, 256], "float8_e4m3fn"), f.input([512, 256], "float8_e4m3fn")];
    const [ofX, ofW] = [f.input([2, 4, 2], "float"), f.input([4, 2], "float")];
    const [whole, scales] = [set(x), set(ofX)];
    const y = scaledLinear(whole, w, scales, ofW);
    f.output(y);
    for (const each of [x, w, ofX, ofW, whole, scales, y]) each.setDeviceMesh(DeviceMesh.range(2));
    for (const each of [x, ofX]) each.axis(0).parallelize("DIDx");
    for (const each of [w, ofW]) inHalves(each, 0);
    inHalves(y, 2);
    if (stream) y.axis(0).parallelize("Stream");
    const text = print(lower(f));
    expect(print(parse(text))).toBe(text);
    await expectOracle(f, { devices: 2, rounds: true });
  });

  it("cuts blocks over two dimensions of a mesh, along K and along the rows of the weight", async () => {
    const { f } = sharded({ m: 4, n: 256, k: 256, rows: 128 }, (tensors) => {
      const [x, w, ofX, ofW, y] = tensors;
      for (const each of tensors) each.setDeviceMesh(DeviceMesh.ofShape([2, 2]));
      for (const each of [x, w, ofX, ofW]) inHalves(each, 1);
      for (const each of [w, ofW]) each.outerSplit(0, 2).parallelize("DIDy");
      y.outerSplit(1, 2).parallelize("DIDy");
    });
    expect(collectives(f)).toEqual(["Allreduce"]);
    await expectOracle(f, { devices: 4, rounds: true, machineAlone: true });
  });

  it("runs chunks of whole blocks of columns, and refuses others", async () => {
    const inChunks = (count: number): Fusion =>
      sharded({ m: 4, n: 512, k: 128, rows: 128 }, ([, , , , y]) => {
        y.outerSplit(1, count).parallelize("Stream");
      }).f;
    await expectOracle(inChunks(2), { devices: 2, rounds: true, machineAlone: true });
    expect(diagnosticOf(() => lower(inChunks(8))).code).toBe("stream-on-cut-axis");
  });

  it("has weights with their own blocks on each device", async () => {
    const f = new Fusion();
    const [x, w] = [f.input([2, 4, 256], "float8_e4m3fn"), f.input([2, 256, 256], "float8_e4m3fn")];
    const [ofX, ofW] = [f.input([2, 4, 2], "float"), f.input([2, 2, 2], "float")];
    const y = scaledLinear(x, w, ofX, ofW, { dtype: "float" });
    f.output(y);
    await expectOracle(f, { devices: 1, rounds: true, machineAlone: true });
    for (const each of [x, w, ofX, ofW, y]) {
      each.setDeviceMesh(DeviceMesh.range(2));
      each.axis(0).parallelize("DIDx");
    }
    await expectOracle(f, { devices: 2, rounds: true });
  });
});

describe("quantize", () => {
  const numbers = (tensor: Tensor): readonly number[] => Tensor.values(tensor).map(Number);

  it.each(["1x128", "128x128"] as const)("gives each block of %s its largest as the largest number", (granularity) => {
    const f = new Fusion();
    const x = f.input([256, 256], "bfloat16");
    const found = quantize(x, { granularity });
    for (const each of [cast(found.values, "float"), found.scale]) f.output(each);
    const again = quantize(x, { granularity, scale: found.scale });
    f.output(cast(again.values, "float"));
    // Each block of rows and columns has another size.
    const values = Array.from({ length: 256 * 256 }, (_, i) => {
      const size = 2 ** (3 * Math.floor(i / (128 * 256)) + 5 * Math.floor((i % 256) / 128));
      return ((i % 7) - 3) * size;
    });
    const given: Tensor = { ...Tensor.from(values, "bfloat16"), shape: [256, 256] };
    const { outputs } = evaluateFusion(f.data(), [given]);
    const [quantized = [], scale = [], same = []] = outputs.map(numbers);
    const rows = granularity === "1x128" ? 1 : 128;
    expect(at(outputs, 1).shape).toEqual([256 / rows, 2]);
    expect(same).toEqual(quantized);
    const scaleOf = (i: number): number => at(scale, Math.floor(i / 256 / rows) * 2 + Math.floor((i % 256) / 128));
    const isOff = (value: number, i: number): boolean =>
      !(Math.abs(value * scaleOf(i) - at(values, i)) <= 2 ** -4 * Math.abs(at(values, i)));
    expect(quantized.findIndex(isOff)).toBe(-1);
    expect(Math.max(...quantized)).toBe(448);
  });

  it("cuts blocks with the rows and columns of devices, and multiplies", async () => {
    for (const axis of [0, 1]) {
      const f = new Fusion();
      const shape = axis === 0 ? [256, 128] : [128, 256];
      const [x, w] = [f.input(shape, "bfloat16"), f.input(shape, "bfloat16")];
      const [a, b] = [quantize(x, { granularity: "1x128" }), quantize(w, { granularity: "128x128" })];
      const y = scaledLinear(a.values, b.values, a.scale, b.scale);
      f.output(y);
      for (const each of [x, w, y]) each.setDeviceMesh(DeviceMesh.range(2));
      for (const each of [x, w]) each.outerSplit(axis, 2).parallelize("DIDx");
      y.outerSplit(0, 2).parallelize("DIDx");
      const found = collectives(f);
      expect(found).toEqual(axis === 1 ? ["ReduceScatter"] : found.map(() => "Allgather"));
      await expectOracle(f, { devices: 2, rounds: true, machineAlone: true });
    }
  });
});

const eight = (f: Fusion, shape: readonly number[]): TensorView => f.input([...shape], "float8_e4m3fn");
const floats = (f: Fusion, shape: readonly number[]): TensorView => f.input([...shape], "float");
const refused: Readonly<Record<string, readonly [build: (f: Fusion) => unknown, text: RegExp]>> = {
  "a depth of a block and a half": [
    (f) => scaledLinear(eight(f, [4, 192]), eight(f, [8, 192]), floats(f, [4, 2]), floats(f, [8, 2])),
    /no multiple of 128/u,
  ],
  "blocks of rows of x": [
    (f) => scaledLinear(eight(f, [256, 256]), eight(f, [8, 256]), floats(f, [2, 2]), floats(f, [8, 2])),
    /scales of a scaled matmul do not fit/u,
  ],
  "blocks of one operand alone": [
    (f) => scaledLinear(eight(f, [4, 256]), eight(f, [8, 256]), floats(f, [4, 1]), floats(f, [8, 2])),
    /scales of a scaled matmul do not fit/u,
  ],
  "another number of blocks": [
    (f) => scaledLinear(eight(f, [4, 256]), eight(f, [8, 256]), floats(f, [4, 2]), floats(f, [8, 3])),
    /scales of a scaled matmul do not fit/u,
  ],
  "blocks of an unknown number": [
    (f) =>
      scaledLinear(
        eight(f, [4, 256]),
        f.input([null, 256], "float8_e4m3fn"),
        floats(f, [4, 2]),
        f.input([null, 2], "float"),
      ),
    /scales of a scaled matmul do not fit/u,
  ],
  "to quantize part of a block": [
    (f) => quantize(floats(f, [128, 192]), { granularity: "128x128" }),
    /not cut in blocks of 128x128/u,
  ],
};

it.each(Object.entries(refused))("refuses %s", (_, [build, text]) => {
  expect(diagnosticOf(() => build(new Fusion())).message).toMatch(text);
});

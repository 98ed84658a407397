/** Scaled matmuls of floats of 8 bits: values against sums in float64, sharded as whole, dumps, and what is refused. */
import { DeviceMesh, Fusion, lower, parse, print, Tensor, type TensorView } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import * as api from "../../src/ir/api/ops.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { inDouble, toDouble } from "../../src/oracle/value.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { diagnosticOf } from "./expect-diagnostic.ts";

const { cast, quantize, scaledLinear, scaledMatmul, set } = api;
const [m, n, k] = [6, 10, 48];

interface Scales {
  readonly ofX: readonly number[];
  readonly ofW: readonly number[];
}

const granularities: Readonly<Record<string, Scales>> = {
  tensorwise: { ofX: [], ofW: [] },
  rowwise: { ofX: [m, 1], ofW: [1, n] },
  "rows of x": { ofX: [m, 1], ofW: [] },
};

function random(shape: readonly number[], dtype: DType, seed: number): Tensor {
  const draw = createRandom(seed);
  const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 4 * draw.float() - 2);
  return { ...Tensor.from(values, dtype), shape };
}

describe.each(Object.entries(granularities))("%s", (_, { ofX, ofW }) => {
  it.each(["bfloat16", "half", "float"] as const)("is the scaled sum of products, in %s", async (dtype) => {
    const f = new Fusion();
    const [x, w] = [f.input([m, k], "float8_e4m3fn"), f.input([k, n], "float8_e5m2")];
    const [sx, sw] = [f.input(ofX, "float"), f.input(ofW, "float")];
    f.output(scaledMatmul(x, w, sx, sw, { dtype }));
    const given = [
      random([m, k], "float8_e4m3fn", 1),
      random([k, n], "float8_e5m2", 2),
      random(ofX, "float", 3),
      random(ofW, "float", 4),
    ];
    const { outputs } = evaluateFusion(f.data(), given);
    const [a = [], b = [], p = [], q = []] = given.map((each) => Tensor.values(each).map(Number));
    const found = Tensor.values(at(outputs, 0)).map(Number);
    const wanted = found.map((__, i) => {
      const [row, column] = [Math.floor(i / n), i % n];
      const sum = Array.from({ length: k }, (___, z) => at(a, row * k + z) * at(b, z * n + column));
      return (
        sum.reduce((total, each) => total + each, 0) *
        (p[p.length > 1 ? row : 0] ?? NaN) *
        (q[q.length > 1 ? column : 0] ?? NaN)
      );
    });
    const epsilon = { bfloat16: 2 ** -8, half: 2 ** -11, float: 2 ** -20 }[dtype];
    found.forEach((value, i) => {
      expect(Math.abs(value - at(wanted, i))).toBeLessThanOrEqual(epsilon * Math.abs(at(wanted, i)) + 1e-4);
    });
    await expectOracle(f, { devices: 1, rounds: true });
  });
});

function sharded(build: (f: Fusion, place: (...tensors: readonly TensorView[]) => void) => void): Fusion {
  const f = new Fusion();
  build(f, (...tensors) => {
    for (const each of tensors) each.setDeviceMesh(DeviceMesh.range(2));
  });
  return f;
}

/** x [2, m, k] is gathered, with its scales, and multiplied by the columns of a device. */
const gatherThenMultiply = (stream: boolean): Fusion =>
  sharded((f, place) => {
    const [x, w] = [f.input([2, m, k], "float8_e4m3fn"), f.input([2, n, k], "float8_e4m3fn")];
    const [sx, sw] = [f.input([2, m, 1], "float"), f.input([2, n, 1], "float")];
    const [own, ownScale] = [api.reshape(w, [2 * n, k]), api.reshape(sw, [2 * n, 1])];
    const [whole, scales] = [set(x), set(sx)];
    const y = scaledLinear(whole, own, scales, ownScale);
    f.output(y);
    place(x, w, sx, sw, whole, scales, y);
    for (const each of [x, w, sx, sw]) each.axis(0).parallelize("DIDx");
    if (stream) y.axis(0).parallelize("Stream");
  });

describe("over devices", () => {
  it.each([false, true])("gathers bytes with their scales, Stream: %s", async (stream) => {
    const f = gatherThenMultiply(stream);
    const text = print(lower(f));
    expect(text).toContain("__e4m3");
    expect(text).toContain("scaled_linear( ");
    expect(print(parse(text))).toBe(text);
    await expectOracle(f, { devices: 2, rounds: true });
  });

  it("adds the parts of a shared K in the dtype of the result", async () => {
    const f = sharded((fusion, place) => {
      const [x, w] = [fusion.input([2 * m, 2 * k], "float8_e4m3fn"), fusion.input([n, 2 * k], "float8_e5m2")];
      const [sx, sw] = [fusion.input([2 * m, 1], "float"), fusion.input([], "float")];
      const y = scaledLinear(x, w, sx, sw);
      fusion.output(y);
      place(x, w, sx, y);
      for (const each of [x, w]) each.outerSplit(1, 2).parallelize("DIDx");
      y.outerSplit(0, 2).parallelize("DIDx");
    });
    await expectOracle(f, { devices: 2, rounds: true });
  });

  it("adds nothing for a device that has no part of K", async () => {
    const f = new Fusion();
    const [x, w] = [f.input([m, 16], "float8_e4m3fn"), f.input([n, 16], "float8_e4m3fn")];
    f.output(scaledLinear(x, w, f.input([m, 1], "float"), f.input([n, 1], "float")));
    for (const each of f.inputs) each.setDeviceMesh(DeviceMesh.range(5));
    for (const each of [x, w]) each.outerSplit(1, 5).parallelize("DIDx");
    await expectOracle(f, { devices: 5, rounds: true });
  });

  it.each(["row", "tensor"])(
    "multiplies parts of K by scales of each device, and adds them: %s",
    async (granularity) => {
      const build = (fusion: Fusion): readonly TensorView[] => {
        const ofRows = granularity === "row";
        const [x, w] = [fusion.input([2, 2, m, k], "float8_e4m3fn"), fusion.input([2, n, k], "float8_e5m2")];
        const sx = fusion.input(ofRows ? [2, 2, m, 1] : [2], "float");
        const sw = fusion.input(ofRows ? [2, n, 1] : [2], "float");
        const partial = scaledLinear(x, w, sx, sw);
        const y = api.sum(partial, [0]);
        fusion.output(y);
        return [x, w, sx, sw, partial, y];
      };
      const f = sharded((fusion, place) => {
        const all = build(fusion);
        place(...all);
        for (const each of all.slice(0, 4)) each.axis(0).parallelize("DIDx");
        for (const each of all.slice(4)) each.axis(1).parallelize("DIDx");
      });
      await expectOracle(f, { devices: 2, rounds: true });
      const alone = new Fusion();
      build(alone);
      await expectOracle(alone, { devices: 1, rounds: true });
      // Against sums that the test adds itself.
      const shapes = [
        [2, 2, m, k],
        [2, n, k],
        ...(granularity === "row"
          ? [
              [2, 2, m, 1],
              [2, n, 1],
            ]
          : [[2], [2]]),
      ];
      const dtypes = ["float8_e4m3fn", "float8_e5m2", "float", "float"] as const;
      const given = shapes.map((shape, i) => random(shape, at(dtypes, i), 11 + i));
      const found = Tensor.values(at(evaluateFusion(f.data(), given).outputs, 0)).map(Number);
      const [a = [], b = [], p = [], q = []] = given.map((each) => Tensor.values(each).map(Number));
      for (const [i, value] of found.entries()) {
        const [row, column] = [Math.floor(i / n), i % n];
        const parts = [0, 1].map((d) => {
          const sum = Array.from(
            { length: k },
            (_, z) => at(a, (d * 2 * m + row) * k + z) * at(b, (d * n + column) * k + z),
          );
          const scales = granularity === "row" ? at(p, d * 2 * m + row) * at(q, d * n + column) : at(p, d) * at(q, d);
          return sum.reduce((total, each) => total + each, 0) * scales;
        });
        const size = parts.reduce((total, each) => total + Math.abs(each), 0);
        expect(Math.abs(value - at(parts, 0) - at(parts, 1))).toBeLessThanOrEqual(2 ** -7 * size + 1e-4);
      }
    },
  );

  it("quantizes by rows or by the largest of all devices, with a bias", async () => {
    for (const granularity of ["row", "tensor"] as const) {
      const f = sharded((fusion, place) => {
        const [x, w, bias] = [
          fusion.input([2, m, k], "bfloat16"),
          fusion.input([k, n], "bfloat16"),
          fusion.input([n], "bfloat16"),
        ];
        const left = quantize(x, { granularity });
        const right = quantize(api.permute(w, [1, 0]), { granularity });
        const y = scaledLinear(left.values, right.values, left.scale, right.scale, { bias });
        fusion.output(y);
        place(x, y);
        x.axis(0).parallelize("DIDx");
        y.axis(0).parallelize("DIDx");
      });
      const data = f.data();
      const given = [random([2, m, k], "bfloat16", 5), random([k, n], "bfloat16", 6), random([n], "bfloat16", 7)];
      const { outputs } = evaluateFusion(data, given);
      const [a = [], b = [], c = []] = given.map((each) => Tensor.values(each).map(Number));
      // Quantization errs by at most 2^-4 of each factor.
      Tensor.values(at(outputs, 0)).forEach((value, i) => {
        const [row, column] = [Math.floor(i / n), i % n];
        const terms = Array.from({ length: k }, (_, z) => at(a, row * k + z) * at(b, z * n + column));
        const size = terms.reduce((total, each) => total + Math.abs(each), 0);
        const wanted = terms.reduce((total, each) => total + each, 0) + at(c, column);
        expect(Math.abs(Number(value) - wanted)).toBeLessThanOrEqual(0.14 * size + 0.02);
      });
    }
  });
});

it("bounds products of two factors that underflow, and none that overflow; in double it rounds nothing", () => {
  const f = new Fusion();
  const [x, w] = [f.input([1, 16], "float8_e4m3fn"), f.input([1, 16], "float8_e4m3fn")];
  f.output(scaledLinear(x, w, f.input([], "float"), f.input([1, 1], "float")));
  const given = (ofX: number, ofW: number): readonly Tensor[] => [
    random([1, 16], "float8_e4m3fn", 8),
    random([1, 16], "float8_e4m3fn", 9),
    { ...Tensor.from([ofX], "float"), shape: [] },
    Tensor.from([[ofW]], "float"),
  ];
  const boundOf = (ofX: number, ofW: number): number =>
    at(evaluateFusion(f.data(), given(ofX, ofW)).bounds[0] ?? [], 0);
  // The least step of the first product, 1.4e-45, times the second scale.
  expect(boundOf(1e-44, 1e38)).toBeGreaterThan(1.4e-7);
  expect(boundOf(1e-3, 1e-3)).toBeLessThan(1e-6);
  expect(boundOf(1e30, 1e30)).toBe(Infinity);
  const exact = evaluateFusion(inDouble(f.data()), given(0.1, 0.3).map(toDouble)).outputs;
  const rounded = evaluateFusion(f.data(), given(0.1, 0.3)).outputs;
  expect(at(exact, 0).dtype).toBe("double");
  expect(Tensor.values(at(exact, 0))).not.toEqual(Tensor.values(at(rounded, 0)));
});

it("divides zeros by a scale that is not 0, and takes a given scale", () => {
  const f = new Fusion();
  const x = f.input([2, 16], "float");
  const found = quantize(x, { granularity: "row" });
  const given = quantize(x, { dtype: "float8_e5m2", scale: api.full(f, [], 0.5, "float") });
  for (const each of [cast(found.values, "float"), found.scale, cast(given.values, "float")]) f.output(each);
  const rows = Array.from({ length: 2 }, (_, row) => Array.from({ length: 16 }, (__, i) => row * (i - 7)));
  const { outputs } = evaluateFusion(f.data(), [Tensor.from(rows, "float")]);
  const [values = [], scale = [], halves = []] = outputs.map((each) => Tensor.values(each).map(Number));
  expect(values.slice(0, 16).every((value) => value === 0)).toBe(true);
  expect([values[16], values[31]]).toEqual([-384, 448]);
  expect(scale[1]).toBeCloseTo(8 / 448, 6);
  expect(halves.slice(16, 19)).toEqual([-14, -12, -10]);
});

const ones = (f: Fusion): TensorView => api.full(f, [], 1, "float");
const refused: Readonly<Record<string, readonly [build: (f: Fusion) => unknown, text: RegExp]>> = {
  "a depth that is no multiple of 16": [
    (f) => scaledMatmul(f.input([4, 24], "float8_e4m3fn"), f.input([24, 8], "float8_e4m3fn"), ones(f), ones(f)),
    /multiple of 16/u,
  ],
  "no scales": [
    (f) => api.linear(f.input([4, 16], "float8_e4m3fn"), f.input([8, 16], "float8_e4m3fn")),
    /only stores numbers/u,
  ],
  // From JavaScript.
  "a missing scale": [
    (f): unknown =>
      Reflect.apply(scaledMatmul, null, [
        f.input([4, 16], "float8_e4m3fn"),
        f.input([16, 8], "float8_e4m3fn"),
        ones(f),
      ]),
    /operand 3 of scaledMatmul is not a tensor/u,
  ],
  "operands of 16 bits": [
    (f) => scaledMatmul(f.input([4, 16], "bfloat16"), f.input([16, 8], "float8_e4m3fn"), ones(f), ones(f)),
    /an operand of a scaled matmul has another dtype/u,
  ],
  "scales of bfloat16": [
    (f) =>
      scaledMatmul(
        f.input([4, 16], "float8_e4m3fn"),
        f.input([16, 8], "float8_e4m3fn"),
        ones(f),
        cast(ones(f), "bfloat16"),
      ),
    /a scale of a scaled matmul has another dtype/u,
  ],
  "scales of other rows": [
    (f) =>
      scaledMatmul(
        f.input([4, 16], "float8_e4m3fn"),
        f.input([16, 8], "float8_e4m3fn"),
        f.input([5, 1], "float"),
        ones(f),
      ),
    /scales of a scaled matmul do not fit/u,
  ],
  "swapped scales": [
    (f) =>
      scaledMatmul(
        f.input([4, 16], "float8_e4m3fn"),
        f.input([16, 8], "float8_e4m3fn"),
        f.input([1, 8], "float"),
        f.input([4, 1], "float"),
      ),
    /scales of a scaled matmul do not fit/u,
  ],
  "weights of other leading axes": [
    (f) => scaledLinear(f.input([2, 4, 16], "float8_e4m3fn"), f.input([3, 8, 16], "float8_e4m3fn"), ones(f), ones(f)),
    /the weight of linear has too many axes/u,
  ],
  "a result of 8 bits": [
    (f) =>
      scaledMatmul(f.input([4, 16], "float8_e4m3fn"), f.input([16, 8], "float8_e4m3fn"), ones(f), ones(f), {
        dtype: "float8_e4m3fn",
      }),
    /the result of a scaled matmul has another dtype/u,
  ],
};

it.each(Object.entries(refused))("refuses %s", (name, [build, text]) => {
  const { message, help } = diagnosticOf(() => build(new Fusion()));
  expect(message).toMatch(text);
  if (name === "no scales") expect(help).toContain("scaledLinear()");
});

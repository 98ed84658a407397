/** Scans and sorts on devices and in loops: the oracle's results, and what they communicate. */
import { describe, expect, it } from "vitest";
import {
  addcmul,
  argsort,
  atan2,
  cummax,
  cumprod,
  cumsum,
  DeviceMesh,
  erfc,
  fmod,
  Fusion,
  gradients,
  lerp,
  lower,
  mul,
  oneHot,
  ones,
  reshape,
  softmax,
  sort,
  sum,
  Tensor,
  type TensorView,
  topk,
  tril,
  triu,
} from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectRoundTrip } from "../support/round-trip.ts";

function program(
  devices: number,
  build: (x: TensorView, f: Fusion) => TensorView,
  place: (x: TensorView, output: TensorView) => void,
): Fusion {
  const f = new Fusion();
  const x = f.input([12, 8]);
  const output = build(x, f);
  f.output(output);
  x.setDeviceMesh(DeviceMesh.range(devices));
  place(x, output);
  return f;
}

async function check(f: Fusion, devices: number, collectives: string): Promise<void> {
  expect(collectivesOf(f, devices)).toBe(collectives);
  expectRoundTrip(lower(f), [{ rank: 0, sizes: {} }]);
  await expectOracle(f, { devices, machineAlone: true });
}

const forms: readonly (readonly [string, (x: TensorView) => TensorView])[] = [
  ["cumsum", (x) => cumsum(x, 1)],
  ["argsort", (x) => argsort(x, 1, { descending: true })],
];

describe.each(forms)("%s", (_, build) => {
  it("keeps the sharding of rows", async () => {
    const cut = (x: TensorView): void => void x.outerSplit(0, 3).parallelize("DIDx");
    await check(program(3, build, cut), 3, "");
  });

  it("runs in chunks of rows", async () => {
    const f = program(1, (x) => mul(build(x), 2), (x) => void x.outerSplit(0, 3).parallelize("Stream")); // prettier-ignore
    await check(f, 1, "");
  });

  it("gathers a cut axis", async () => {
    const f = program(2, build, (x) => void x.outerSplit(1, 2).parallelize("DIDx"));
    await check(f, 2, "Allgather 1");
  });

  it("gathers a cut axis for a result that is cut along it", async () => {
    const f = program(2, build, (x, output) => {
      output.setDeviceMesh(DeviceMesh.range(2));
      for (const each of [x, output]) each.outerSplit(1, 2).parallelize("DIDx");
    });
    await check(f, 2, "Allgather 1");
  });
});

it("a router takes the best experts of each token, and its gradient goes to them alone", async () => {
  const f = new Fusion();
  const x = f.input([16, 6]);
  const { values, indices } = topk(x, 2, 1);
  const weights = softmax(values, 1);
  const counts = cumsum(sum(oneHot(indices, 6), [0, 1]), 0);
  const found = gradients(f, { of: [weights], cotangents: [f.input([16, 2])], wrt: [x] });
  for (const each of [weights, counts, ...found]) if (each !== null) f.output(each);
  x.setDeviceMesh(DeviceMesh.range(2));
  x.outerSplit(0, 2).parallelize("DIDx");
  await expectOracle(f, { devices: 2, rounds: true });
});

const evaluate = (build: (x: TensorView, f: Fusion) => TensorView, values: readonly number[]): readonly number[] => {
  const f = new Fusion();
  const x = f.input([values.length]);
  f.output(build(x, f));
  const { outputs } = evaluateFusion(f.data(), [Tensor.from(values)]);
  return outputs.flatMap(({ data }) => Array.from(data, Number));
};

describe("ties, NaN and zeros are PyTorch's", () => {
  const values = [2, NaN, -0, 5, 0, 5, -1];
  it.each([
    ["sort", (x: TensorView) => sort(x, 0).values, [-1, -0, 0, 2, 5, 5, NaN]],
    ["argsort", (x: TensorView) => argsort(x, 0), [6, 2, 4, 0, 3, 5, 1]],
    ["descending", (x: TensorView) => argsort(x, 0, { descending: true }), [1, 3, 5, 0, 2, 4, 6]],
    ["topk", (x: TensorView) => topk(x, 2).indices, [1, 3]],
    ["the smallest", (x: TensorView) => topk(x, 2, 0, { largest: false }).values, [-1, -0]],
    ["cumsum", (x: TensorView) => cumsum(x, 0), [2, NaN, NaN, NaN, NaN, NaN, NaN]],
  ] as const)("%s", (_, build, expected) => {
    expect(evaluate(build, values)).toEqual(expected);
  });
});

it.each([
  ["cumprod", cumprod, [2, 0, 3, 0, 5], [1, 8, 0, 0, 0]],
  ["cummax", cummax, [1, 3, 2, 3, NaN], [1, 2, 0, 1, 1]],
] as const)("the gradient of %s, of zeros, ties and NaN", (_, build, values, expected) => {
  const gradientOf = (x: TensorView, f: Fusion): TensorView => {
    const y = build(x, 0);
    const [g] = gradients(f, { of: [y], cotangents: [ones(f, [5])], wrt: [x] });
    return g ?? x;
  };
  expect(evaluate(gradientOf, values)).toEqual(expected);
});

it("triangles and functions made of others", () => {
  const grid = (x: TensorView): TensorView => reshape(x, [2, 3]);
  const six = [1, 2, 3, 4, 5, 6];
  expect(evaluate((x) => triu(grid(x), 1), six)).toEqual([0, 2, 3, 0, 0, 6]);
  expect(evaluate((x) => tril(grid(x)), six)).toEqual([1, 0, 0, 4, 5, 0]);
  expect(evaluate((x) => lerp(x, mul(x, 3), 0.5), [1, -2])).toEqual([2, -4]);
  expect(evaluate((x) => addcmul(x, x, x, 2), [1, -2])).toEqual([3, 6]);
  expect(evaluate((x) => fmod(x, 3), [-7, 7, 2.5])).toEqual([-1, 1, 2.5]);
  expect(evaluate((x) => atan2(x, -1), [0, -0, 1])).toEqual([Math.PI, -Math.PI, 0.75 * Math.PI].map(Math.fround));
  // From tables, to 6 digits.
  const tails = evaluate((x) => erfc(x), [0, 0.5, -1, 3]);
  [1, 0.4795001, 1.8427008, 2.2090497e-5].forEach((y, i) => {
    expect(Math.abs((tails[i] ?? 0) / y - 1)).toBeLessThan(2e-6);
  });
});

it("refuses a k that the axis does not have, and sums of bool", () => {
  const f = new Fusion();
  const x = f.input([4, 3]);
  for (const k of [0, 4, 1.5]) {
    expect(diagnosticOf(() => topk(x, k))).toMatchObject({ code: "bad-argument", found: `k = ${k}, an axis of 3` });
  }
  expect(diagnosticOf(() => cumsum(f.input([4], "bool"), 0)).code).toBe("dtype-mismatch");
  expect(diagnosticOf(() => sort(x, 2)).code).toBe("axis-out-of-range");
});

/**
 * Random graphs with some tensors annotated, at sizes from 0 that neither devices nor chunks divide: the oracle's
 * result on every CPU back end, or a diagnostic of lowering.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  amax,
  cast,
  DeviceMesh,
  DiagnosticError,
  Fusion,
  linear,
  lower,
  matmul,
  mul,
  permute,
  relu,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { expectOracle } from "../support/expect-oracle.ts";
import { draws, runs } from "../support/suite.ts";

const steps = ["relu", "mul", "cast", "permute", "linear", "matmul", "set", "sum", "amax"] as const;

const recipes = fc.record({
  devices: fc.constantFrom(1, 2, 3, 5),
  shape: fc.tuple(fc.nat(7), fc.nat(7)),
  ops: fc.array(
    fc.record({
      step: fc.constantFrom(...steps),
      /** The axis that is cut among the devices; none beyond the tensor's axes, and not annotated at all at 3. */
      cut: fc.nat(3),
      size: fc.nat(6),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  inputCut: fc.nat(2),
  stream: fc.option(fc.record({ axis: fc.nat(1), chunks: fc.integer({ min: 1, max: 5 }) })),
  backend: fc.constantFrom("nccl" as const, "cuda" as const),
  protocol: fc.constantFrom("get" as const, "put" as const),
});

type Recipe = typeof recipes extends fc.Arbitrary<infer T> ? T : never;

function build({ devices, shape, ops, inputCut, stream }: Recipe): Fusion {
  const mesh = DeviceMesh.range(devices);
  const f = new Fusion();
  const place = (tensor: TensorView, axis: number): void => {
    if (axis >= 3) return;
    tensor.setDeviceMesh(mesh);
    if (axis < tensor.rank) tensor.outerSplit(axis, devices).parallelize("DIDx");
  };
  let x = f.input([...shape]);
  place(x, inputCut);
  let sizes: readonly number[] = shape;
  for (const { step, cut, size } of ops) {
    const [made, extents] = apply(f, x, sizes, step, size, (weight) => {
      place(weight, size % 3);
    });
    x = made;
    sizes = extents;
    place(x, cut);
  }
  f.output(x);
  if (stream !== null && stream !== undefined && stream.axis < x.rank) {
    const { axis, chunks } = stream;
    if (x.axis(axis).parallelType === "Serial" && x.rank === x.nDims) x.outerSplit(axis, chunks).parallelize("Stream");
  }
  return f;
}

function apply(
  f: Fusion,
  x: TensorView,
  sizes: readonly number[],
  step: (typeof steps)[number],
  size: number,
  place: (weight: TensorView) => void,
): readonly [TensorView, readonly number[]] {
  const last = sizes.at(-1);
  switch (step) {
    case "relu":
      return [relu(x), sizes];
    case "mul":
      return [mul(x, x), sizes];
    case "cast":
      return [cast(x, x.dtype === "float" ? "double" : "float"), sizes];
    case "set":
      return [set(x), sizes];
    case "permute":
      return [permute(x, sizes.map((_, axis) => axis).toReversed()), sizes.toReversed()];
    case "linear":
    case "matmul": {
      if (last === undefined) return [set(x), sizes];
      const weight = f.input(step === "linear" ? [size, last] : [last, size], x.dtype);
      place(weight);
      const made = step === "linear" ? linear(x, weight) : matmul(x, weight);
      return [made, [...sizes.slice(0, -1), size]];
    }
    case "sum":
    case "amax": {
      if (sizes.length === 0) return [relu(x), sizes];
      const axis = size % sizes.length;
      return [(step === "sum" ? sum : amax)(x, [axis]), sizes.toSpliced(axis, 1)];
    }
  }
}

function lowers(fusion: Fusion, { devices, backend }: Recipe): boolean {
  try {
    for (let rank = 0; rank < devices; rank++) lower(fusion, { rank, backend });
    return true;
  } catch (error) {
    if (error instanceof DiagnosticError) return false;
    throw error;
  }
}

it("give the oracle's result", async () => {
  const counts = { quick: 8, long: 280 };
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(recipes, async (recipe) => {
      const fusion = build(recipe);
      if (!lowers(fusion, recipe)) return;
      ran++;
      const { devices, backend, protocol } = recipe;
      await expectOracle(build(recipe), { devices, backend, ...(backend === "cuda" ? { protocol } : {}) });
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(0.4 * runs(counts));
});

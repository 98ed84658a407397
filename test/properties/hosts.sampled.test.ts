/**
 * Random products on meshes of two dimensions, of rows and columns that nothing divides, in chunks or whole: the
 * oracle's result on every CPU back end, however the devices are spread over hosts and the ranks over processes.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { add, compile, DeviceMesh, DiagnosticError, Fusion, linear, set, type TensorView } from "@braid-compiler/braid";
import { outputsOf } from "../mpi/outputs-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { draws, runs } from "../support/suite.ts";

const extent = fc.constantFrom(4, 8, 12, 5, 7, 1, 0);

const recipes = fc.record({
  rows: fc.integer({ min: 1, max: 3 }),
  columns: fc.integer({ min: 1, max: 3 }),
  /** M, K, N. */
  sizes: fc.tuple(extent, extent, extent),
  /** Of x, the axis on DIDy and on DIDx; 2: none. Both on one axis: in this order from the outside. */
  x: fc.tuple(fc.nat(2), fc.nat(2)),
  w: fc.tuple(fc.nat(2), fc.nat(2)),
  /** The same of a residual; null: y has no annotation but its chunks. */
  residual: fc.option(fc.tuple(fc.nat(2), fc.nat(2)), { nil: null }),
  chunks: fc.option(fc.integer({ min: 1, max: 4 }), { nil: null }),
  /** Chunks of rows of the operands too, outside of their devices. */
  chunked: fc.boolean(),
  /** The sum is scattered over DIDx, and gathered afterwards. */
  scattered: fc.boolean(),
  devicesPerHost: fc.constantFrom("row" as const, "one" as const, "all" as const),
  backend: fc.constantFrom("nccl" as const, "cuda" as const),
  processes: fc.integer({ min: 2, max: 4 }),
});

type Recipe = typeof recipes extends fc.Arbitrary<infer T> ? T : never;

function build(recipe: Recipe): Fusion {
  const { rows, columns, sizes, residual, chunks, chunked, scattered } = recipe;
  const [m, k, n] = sizes;
  const mesh = DeviceMesh.ofShape([rows, columns]);
  const f = new Fusion();
  const [x, w] = [f.input([m, k]), f.input([n, k])];
  const place = (tensor: TensorView, [y, along]: readonly [number, number], outer: number | null): void => {
    tensor.setDeviceMesh(mesh);
    let inner = 0;
    if (outer !== null) {
      tensor.outerSplit(0, outer);
      inner = 1;
    }
    if (y < 2) tensor.outerSplit(y + inner, rows).parallelize("DIDy");
    const shift = y < 2 && y <= along ? inner + 1 : inner;
    if (along < 2) tensor.outerSplit(along + shift, columns).parallelize("DIDx");
  };
  const outer = chunked ? chunks : null;
  place(x, recipe.x, outer);
  place(w, recipe.w, null);
  let y = linear(x, w);
  if (chunks !== null) y.outerSplit(0, chunks).parallelize("Stream");
  if (scattered) {
    y.setDeviceMesh(mesh);
    y.outerSplit(chunks === null ? 0 : 1, columns).parallelize("DIDx");
    y = set(y);
    y.setDeviceMesh(mesh);
    if (chunks !== null) y.outerSplit(0, chunks).parallelize("Stream");
  }
  if (residual !== null) {
    const r = f.input([m, n]);
    place(r, residual, outer);
    y = add(y, r);
  }
  f.output(y);
  return f;
}

it("give the oracle's result, on one process and on several", async () => {
  const counts = { quick: 3, long: 25 };
  let ran = 0;
  await fc.assert(
    fc.asyncProperty(recipes, async (recipe) => {
      const { rows, columns, devicesPerHost, backend, processes } = recipe;
      const devices = rows * columns;
      const options = { devices, backend, devicesPerHost: { row: columns, one: 1, all: devices }[devicesPerHost] };
      const compiled = compiledOrRefused(() => compile(build(recipe), options));
      if (compiled === null) return;
      ran++;
      expect(compiled.report.ok).toBe(true);
      await expectOracle(build(recipe), options);
      if (processes > devices) return;
      expect(await outputsOf(compiled.program, processes)).toEqual(await outputsOf(compiled.program, 0));
    }),
    draws(counts),
  );
  expect(ran).toBeGreaterThan(0.6 * runs(counts));
});

function compiledOrRefused<T>(run: () => T): T | null {
  try {
    return run();
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

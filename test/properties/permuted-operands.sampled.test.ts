/**
 * Contractions of random permutes of random operands, looped along random axes: reading operands in place gives the
 * oracle's result.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  Fusion,
  linear,
  lower,
  matmul,
  MultiDeviceExecutor,
  permute,
  relu,
  type TensorView,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { walk } from "../../src/host/traverse.ts";
import { shapeOf } from "../../src/ir/sizes.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { runs } from "../support/suite.ts";

interface Recipe {
  readonly op: "matmul" | "linear";
  readonly left: readonly number[];
  readonly right: readonly number[];
  /** Orders of memory that the permutes bring to those of the operands: sort keys. */
  readonly keys: readonly (readonly number[])[];
  /** The axis of the output with Stream, counted modulo its axes; the last one is contracted. */
  readonly stream: number;
  /** Whether another op reads a permuted operand, too. */
  readonly shared: boolean;
}

const extent = fc.integer({ min: 1, max: 4 });
const keys = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 5, maxLength: 5 });

const recipes: fc.Arbitrary<Recipe> = fc
  .record({
    op: fc.constantFrom("matmul", "linear"),
    batch: fc.array(extent, { maxLength: 2 }),
    hasBatch: fc.tuple(fc.boolean(), fc.boolean()),
    sizes: fc.tuple(extent, extent, extent),
    keys: fc.tuple(keys, keys),
    stream: fc.integer({ min: 0, max: 9 }),
    shared: fc.boolean(),
  })
  .map(({ op, batch, hasBatch, sizes: [m, n, k], ...rest }) => ({
    op,
    left: [...(hasBatch[0] ? batch : []), m, k],
    right: op === "linear" ? [n, k] : [...(hasBatch[1] ? batch : []), k, n],
    ...rest,
  }));

/** An input that a permute brings to `shape`. */
function operand(f: Fusion, shape: readonly number[], order: readonly number[]): TensorView {
  const axes = [...shape.keys()].toSorted((x, y) => at(order, x) - at(order, y) || x - y);
  const stored = f.input(
    axes.map((axis) => at(shape, axis)),
    "float",
  );
  return permute(
    stored,
    shape.map((_, axis) => axes.indexOf(axis)),
  );
}

function build({ op, left, right, keys: orders, stream, shared }: Recipe): Fusion {
  const f = new Fusion();
  const [a, b] = [operand(f, left, at(orders, 0)), operand(f, right, at(orders, 1))];
  const c = op === "linear" ? linear(a, b) : matmul(a, b);
  f.output(c);
  if (shared) f.output(relu(b));
  const rank = c.data().domain.loop.length;
  // M or N of a matmul with batched operands cannot be looped over.
  const isBatched = op === "matmul" && right.length > 2;
  const refused = [isBatched && left.length > 2 ? rank - 3 : -1, isBatched ? rank - 2 : -1];
  const loopable = [...Array(rank).keys()].filter((axis) => !refused.includes(axis));
  c.axis(at(loopable, stream % loopable.length)).parallelize("Stream");
  return f;
}

it("gives the oracle's result, and only what no library reads in place is copied", async () => {
  const programs = { quick: 30, long: 150 };
  let copied = 0;
  let read = 0;
  await fc.assert(
    fc.asyncProperty(recipes, async (recipe) => {
      const fusion = build(recipe);
      const data = fusion.data();
      const host = lower(fusion, { accumulate: true });
      if (!recipe.shared) copied += host.units.length;
      read += walk(host.body).filter((op) => op.kind === "Matmul" && op.orders !== undefined).length;
      const shapes = data.inputs.map((id) => {
        const tensor = at(data.tensors, id);
        return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
      });
      const inputs = randomInputs(shapes, createRandom(7), "uniform");
      const { outputs, bounds } = evaluateFusion(data, inputs);
      const on = createCpuBackend({ workers: 0 });
      const executor = await MultiDeviceExecutor.create(fusion, { devices: 1, on, accumulate: true, streams: 3 });
      const results = await executor.run(inputs);
      await executor.close();
      outputs.forEach((expected, i) => {
        expect(compare(at(results, i), expected, at(bounds, i)).firstBad).toBeNull();
      });
    }),
    { seed: 11, numRuns: runs(programs) },
  );
  expect(copied).toBeGreaterThan(0);
  expect(read).toBeGreaterThan(runs(programs) / 3);
});

/**
 * Random chains of ops. Constant and symbolic extents give the same results, with the shape that the ops' rules
 * predict, and every op that the shape rules accept evaluates.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Fusion } from "../../src/ir/api/fusion.ts";
import {
  abs,
  add,
  amax,
  argsort,
  broadcast,
  cast,
  cumsum,
  linear,
  matmul,
  mul,
  permute,
  relu,
  reshape,
  select,
  slice,
  squeeze,
  sub,
  sum,
} from "../../src/ir/api/ops.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { requireSizesFit } from "../../src/ir/ops/check-sizes.ts";
import { shapeOf, sizesFromShapes } from "../../src/ir/sizes.ts";
import { Tensor } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { expectSample } from "./expect-sample.ts";
import { draws } from "../support/suite.ts";

/** A tensor and the shape that it must have. */
interface Shaped {
  readonly tv: TensorView;
  readonly shape: readonly number[];
}

type Step = (x: Shaped, random: Random, input: (shape: readonly number[]) => TensorView) => Shaped;

const count = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1);

const steps: readonly Step[] = [
  ({ tv, shape }) => ({ tv: add(relu(tv), abs(tv)), shape }),
  ({ tv, shape }) => ({ tv: cast(mul(cast(tv, "half"), tv), "float"), shape }),
  ({ tv, shape }, random) => {
    const order = shape.map((_, axis) => axis);
    for (let i = order.length - 1; i > 0; i--) {
      const j = random.integer(i + 1);
      [order[i], order[j]] = [at(order, j), at(order, i)];
    }
    return { tv: permute(tv, order), shape: order.map((axis) => at(shape, axis)) };
  },
  ({ tv, shape }, random) => ({ tv: shape.length === 0 ? tv : cumsum(tv, random.integer(shape.length)), shape }),
  ({ tv, shape }, random) => {
    const axis = random.integer(Math.max(1, shape.length));
    return { tv: shape.length === 0 ? tv : cast(argsort(tv, axis), "float"), shape };
  },
  ({ tv, shape }) => ({ tv: reshape(tv, [-1]), shape: [count(shape)] }),
  ({ tv, shape }) => ({ tv: reshape(tv, [1, ...tv.extents]), shape: [1, ...shape] }),
  ({ tv, shape }, random) => {
    const flags = [...shape.map(() => false), true].map((flag) => flag || random.integer(2) === 0);
    const kept = flags.filter((flag) => !flag).length;
    const all = [...flags, ...Array.from({ length: shape.length - kept }, () => false)];
    const own = shape.values();
    const wide = { tv: broadcast(tv, all), shape: all.map((flag) => (flag ? 1 : (own.next().value ?? 0))) };
    const removed = all.flatMap((flag, axis) => (flag && random.integer(2) === 0 ? [axis] : []));
    return { tv: squeeze(wide.tv, removed), shape: wide.shape.filter((_, axis) => !removed.includes(axis)) };
  },
  ({ tv, shape }, random) => {
    if (shape.length === 0) return { tv, shape };
    const axis = random.integer(shape.length);
    const kept = shape.filter((_, i) => i !== axis);
    const reduce = random.integer(2) === 0 ? sum : amax;
    const flags = shape.map((_, i) => i === axis);
    // x - reduce(x): the reduced axis comes back as a broadcast.
    return random.integer(2) === 0
      ? { tv: reduce(tv, [axis]), shape: kept }
      : { tv: sub(tv, broadcast(reduce(tv, [axis]), flags)), shape };
  },
  ({ tv, shape }, random) => {
    const starts = shape.map((extent) => random.integer(extent));
    const stops = shape.map((extent, axis) => at(starts, axis) + 1 + random.integer(extent - at(starts, axis)));
    return { tv: slice(tv, starts, stops), shape: stops.map((stop, axis) => stop - at(starts, axis)) };
  },
  ({ tv, shape }, random) => {
    if (shape.length === 0) return { tv, shape };
    const axis = random.integer(shape.length);
    const index = random.integer(2 * at(shape, axis)) - at(shape, axis);
    return { tv: select(tv, axis, index), shape: shape.filter((_, i) => i !== axis) };
  },
  ({ tv, shape }, random, input) => {
    const contracted = shape.at(-1);
    if (contracted === undefined) return { tv, shape };
    const columns = 1 + random.integer(3);
    const result = [...shape.slice(0, -1), columns];
    return random.integer(2) === 0
      ? { tv: matmul(tv, input([contracted, columns])), shape: result }
      : { tv: linear(tv, input([columns, contracted]), input([columns])), shape: result };
  },
];

function build(
  first: readonly number[],
  choices: readonly number[],
  seed: number,
  symbolic: boolean,
): { f: Fusion; shapes: readonly (readonly number[])[]; result: readonly number[] } {
  const f = new Fusion();
  const shapes: (readonly number[])[] = [];
  const random = createRandom(seed);
  const input = (shape: readonly number[]): TensorView => {
    shapes.push(shape);
    return f.input(symbolic ? shape.map(() => null) : shape, "float");
  };
  let current: Shaped = { tv: input(first), shape: first };
  for (const choice of choices) current = at(steps, choice)(current, random, input);
  f.output(current.tv);
  return { f, shapes, result: current.shape };
}

describe("random fusions", () => {
  it("evaluate to the shape of their rules, with constant and symbolic extents alike", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
        fc.array(fc.nat(steps.length - 1), { maxLength: 7 }),
        fc.nat(),
        (first, choices, seed) => {
          const constant = build(first, choices, seed, false);
          const symbolic = build(first, choices, seed, true);
          expect(symbolic.shapes).toEqual(constant.shapes);
          const inputs = randomInputs(
            constant.shapes.map((shape) => ({ dtype: "float", shape })),
            createRandom(seed),
            "uniform",
          );
          const expected = evaluateFusion(constant.f.data(), inputs);
          expect(at(expected.outputs, 0).shape).toEqual(constant.result);
          expect(evaluateFusion(symbolic.f.data(), inputs)).toEqual(expected);
          expectSample(constant.f.data(), inputs, createRandom(seed));
          for (const { f } of [constant, symbolic]) {
            const { ops, tensors, inputs: ids } = f.data();
            const sizes = sizesFromShapes(
              ids.map((id) => at(tensors, id)),
              constant.shapes,
            );
            for (const op of ops) expect(() => requireSizesFit(op, tensors, sizes)).not.toThrow();
            expect(shapeOf(at(tensors, tensors.length - 1), sizes)).toEqual(constant.result);
          }
          expect(Tensor.values(at(expected.outputs, 0))).toHaveLength(count(constant.result));
        },
      ),
      draws({ quick: 30, long: 120 }),
    );
  });
});

/**
 * Compares gradients with central differences on the oracle, in double. For inputs x, outputs y and random c and v:
 *
 *   (sum c y(x + e v) - sum c y(x - e v)) / 2 e   against   sum v dx,   dx the gradients for the cotangents c
 */
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { gradients } from "../../../src/ir/api/gradients.ts";
import type { TensorView } from "../../../src/ir/api/tensor-view.ts";
import type { Tensor } from "../../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom, type Random } from "../../../src/support/random.ts";

export interface DifferencesCase {
  /** The outputs that are differentiated, of double inputs. */
  readonly build: (...inputs: TensorView[]) => TensorView | readonly TensorView[];
  readonly shapes: readonly (readonly number[])[];
  /** An element from a number in [-1, 1); for functions with kinks and poles. */
  readonly element?: (random: number) => number;
  /** Builds the inputs with extents that are known only at run time. */
  readonly symbolic?: boolean;
}

export interface Differences {
  readonly analytic: number;
  readonly numeric: number;
  /** What the two may differ by. */
  readonly tolerance: number;
}

const step = 1e-5;

export function differences({ build, shapes, element = (x) => x, symbolic = false }: DifferencesCase, seed: number) {
  const random = createRandom(seed);
  const draw = (shape: readonly number[], element = () => 2 * random.float() - 1): Tensor => ({
    dtype: "double",
    shape,
    data: Float64Array.from({ length: elementCount(shape) }, element),
  });
  const f = new Fusion();
  const inputs = shapes.map((shape) =>
    f.input(
      shape.map((extent) => (symbolic && extent !== 1 ? null : extent)),
      "double",
    ),
  );
  const built = build(...inputs);
  const of = "id" in built ? [built] : built;
  for (const y of of) f.output(y);
  const drawApart = numbersApart(random, total(shapes.map(elementCount)));
  const values = shapes.map((shape) => draw(shape, () => element(drawApart())));
  const directions = shapes.map((shape) => draw(shape));
  const moved = (e: number): readonly Tensor[] =>
    values.map((value, i) => zipWith(value, at(directions, i), (x, v) => x + e * v));
  const y = evaluateFusion(f.data(), values).outputs;
  const seeds = y.map(({ shape }) => draw(shape));
  const program = f.data();
  const { slope, spread } = slopeOf((e) => total(terms(evaluateFusion(program, moved(e)).outputs, seeds)));

  const cotangents = of.map((output) => f.input(output.extents, "double"));
  const found = gradients(f, { of, cotangents, wrt: inputs });
  const known = found.filter((each) => each !== null);
  for (const gradient of known) f.output(gradient);
  const all = evaluateFusion(f.data(), [...values, ...seeds]).outputs.slice(of.length);
  const used = directions.filter((_, i) => found[i] !== null);
  all.forEach(({ shape }, i) => {
    const expected = at(used, i).shape;
    if (String(shape) !== String(expected))
      throw new Error(`gradient ${i} has shape ${String(shape)}, not ${String(expected)}`);
  });
  const size = total(terms(y, seeds).map(Math.abs)) + total(terms(all, used).map(Math.abs));
  return {
    analytic: total(terms(all, used)),
    numeric: slope,
    tolerance: 1e-8 * (1 + size) + spread,
  } satisfies Differences;
}

/**
 * Draws `count` numbers in [-1, 1), no two of them nearly equal: where `amin` or `maximum` change from one element to the
 * other within a step, there is no slope.
 */
function numbersApart(random: Random, count: number): () => number {
  const distance = Math.min(1e-3, 1 / (4 * count));
  const drawn: number[] = [];
  return () => {
    for (;;) {
      const next = 2 * random.float() - 1;
      if (drawn.some((other) => Math.abs(other - next) < distance)) continue;
      drawn.push(next);
      return next;
    }
  };
}

function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** The slope of a function at 0 by central differences, and how far it may be off because of curvature. */
export function slopeOf(f: (e: number) => number): { readonly slope: number; readonly spread: number } {
  const slope = (e: number): number => (f(e) - f(-e)) / (2 * e);
  const [fine, coarse] = [slope(step), slope(2 * step)];
  // Without the error of second order, which curvature makes. What is left of it is below the distance of the two.
  return { slope: (4 * fine - coarse) / 3, spread: Math.abs(fine - coarse) };
}

/** The products of elements of equal place. */
export function terms(a: readonly Tensor[], b: readonly Tensor[]): readonly number[] {
  return a.flatMap((each, i) => [...zipWith(each, at(b, i), (p, q) => p * q).data].map(Number));
}

export function total(list: readonly number[]): number {
  return list.reduce((sum, term) => sum + term, 0);
}

function zipWith(a: Tensor, b: Tensor, combine: (x: number, y: number) => number): Tensor {
  const data = Float64Array.from({ length: a.data.length }, (_, i) => combine(Number(a.data[i]), Number(b.data[i])));
  return { dtype: "double", shape: a.shape, data };
}

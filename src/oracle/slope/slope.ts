/**
 * Slopes of a Fusion, by central differences in double: a second opinion on what `gradients` derives. They evaluate ops
 * by their definitions and know no rule of differentiation.
 */
import type { TensorId } from "../../ir/domain.ts";
import { type Op, outputsOf } from "../../ir/ops/op.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Random } from "../../support/random.ts";
import { makeValue, numbersOf, type Value, withoutBounds } from "../value.ts";
import { continuedOp, type Continuing } from "./continued-op.ts";
import { valueOf } from "./evaluate-ops.ts";

/** A function of a tensor: the sum of tensors, each times its cotangent. */
export interface Weighted {
  /** The ops before `of`, in order. */
  readonly ops: readonly Op[];
  readonly of: readonly TensorId[];
  /** One per `of`. */
  readonly weights: readonly Value[];
}

export interface Slope {
  /** Along the direction, by the gradients. */
  readonly claimed: number;
  /** The same by differences; NaN if the function is not finite nearby. */
  readonly found: number;
  /** What the two may differ by: curvature and rounding. */
  readonly bound: number;
  /** What gradients of this size have along random directions, but at least a part of the function. */
  readonly scale: number;
  /** How many elements are left out, because their gradients are not finite, of how many. */
  readonly leftOut: number;
  readonly of: number;
  readonly agrees: boolean;
  /** Whether the bound is narrow enough for any wrong gradient to show. */
  readonly isSharp: boolean;
}

type Steps = readonly [number, number, number];

/** Distances in units of the direction. The first is tried alone; all three say how far curvature leads astray. */
const wideSteps: Steps = [2 ** -14, 2 ** -16, 2 ** -18];
/** For functions that are defined, or smooth, very near the values only. */
const narrowSteps: Steps = [2 ** -21, 2 ** -23, 2 ** -25];

/** A tensor, and the gradient of `Weighted` for it. */
export interface Claim {
  readonly wrt: TensorId;
  readonly gradient: Value;
}

interface OwnClaim extends Pick<Slope, "leftOut" | "of"> {
  readonly direction: Float64Array;
  readonly slope: number;
  /** What a gradient of this size has along a random direction. */
  readonly size: number;
}

/** The slope of `weighted` along a random direction of all claimed tensors, from `values`. */
export function compareSlope(
  weighted: Weighted,
  values: ReadonlyMap<TensorId, Value>,
  claims: readonly Claim[],
  random: Random,
  setting: Continuing,
): Slope {
  const own = claims.map(({ wrt, gradient }) => ({ wrt, ...claimOf(gradient, valueOf(values, wrt), random) }));
  const directions = new Map(own.map(({ wrt, direction }) => [wrt, direction]));
  const total = (part: "slope" | "leftOut" | "of"): number => own.reduce((sum, claim) => sum + claim[part], 0);
  const [claimed, leftOut, of] = [total("slope"), total("leftOut"), total("of")];
  const size = Math.hypot(...own.map((claim) => claim.size));
  const least = Math.min(...own.map((claim) => claim.size));
  const height = weighted.of.reduce((sum, id, i) => {
    const [y, c] = [numbersOf(valueOf(values, id)), numbersOf(at(weighted.weights, i))];
    return y.reduce((total, element, k) => total + Math.abs(times(at(c, k), element)), sum);
  }, 0);
  const slope = (step: number): number => {
    const [before, after] = [-step, step].map((distance) =>
      movedOutputs(weighted, values, directions, distance, setting),
    );
    const rise = weighted.weights.reduce((sum, weight, i) => {
      const [c, low, high] = [weight, before?.[i], after?.[i]].map((value) => value && numbersOf(value));
      invariant(c && low && high, "all outputs are evaluated", i);
      return c.reduce((total, factor, k) => total + times(factor, at(high, k) - at(low, k)), sum);
    }, 0);
    return rise / (2 * step);
  };
  const rounding = (step: number): number => 1e-6 * size + (2 ** -50 * height) / step;
  const slopeOf = (found: number, bound: number): Slope => {
    const scale = Math.max(size, Math.abs(found), 1e-4 * height);
    const agrees = Math.abs(claimed - found) <= bound;
    const isSharp = leftOut < of && bound <= 0.01 * (claims.length > 1 ? least : scale);
    return { claimed, found, bound, scale, leftOut, of, agrees, isSharp };
  };
  const measured = ([long, middle, short]: Steps, known?: number): Slope => {
    const [first, second, third] = [known ?? slope(long), slope(middle), slope(short)];
    return slopeOf(second, rounding(short) + 4 * Math.max(Math.abs(first - second), Math.abs(second - third)));
  };
  const first = slope(wideSteps[0]);
  const usual = slopeOf(first, rounding(wideSteps[0]));
  // Of several claims, a wrong one is looked for among them alone.
  if (usual.agrees || claims.length > 1) return usual;
  const wide = measured(wideSteps, first);
  return wide.isSharp ? wide : measured(narrowSteps);
}

/** A weight of 0 leaves out elements that are not finite. */
function times(weight: number, x: number): number {
  return weight === 0 ? 0 : weight * x;
}

function moved(start: Value, direction: Float64Array, distance: number): Value {
  const elements = numbersOf(start);
  return makeValue(start.dtype, start.shape, (_, flat) => ({
    element: at(elements, flat) + distance * at(direction, flat),
    bound: 0,
  }));
}

/**
 * A direction, along which each element moves by about its own size, so that none crosses a pole at 0, and the slope by
 * the gradient. A gradient in parts has them one after the other.
 */
function claimOf(gradient: Value, start: Value, random: Random): OwnClaim {
  const [elements, from] = [numbersOf(gradient), numbersOf(start)];
  const usual = Math.sqrt(from.reduce((sum, x) => sum + x * x, 0) / from.length);
  let [slope, squares, leftOut] = [0, 0, 0];
  const direction = from.map((x, i) => {
    let element = 0;
    for (let part = i; part < elements.length; part += from.length) element += at(elements, part);
    const size = (0.5 + random.float() / 2) * (Math.abs(x) || usual || 1);
    const by = random.integer(2) === 0 ? -size : size;
    if (!Number.isFinite(element)) {
      leftOut += 1;
      return 0;
    }
    slope += element * by;
    squares += (element * by) ** 2;
    return by;
  });
  return { direction, slope, size: Math.sqrt(squares), leftOut, of: from.length };
}

/** The values of `of` where the tensors have moved along their directions. */
function movedOutputs(
  { ops, of }: Weighted,
  values: ReadonlyMap<TensorId, Value>,
  directions: ReadonlyMap<TensorId, Float64Array>,
  distance: number,
  setting: Continuing,
): readonly Value[] {
  const changed = new Map([...directions].map(([id, by]) => [id, moved(valueOf(values, id), by, distance)]));
  const now = (id: TensorId): Value => changed.get(id) ?? valueOf(values, id);
  for (const op of ops) {
    if (!op.inputs.some((id) => changed.has(id))) continue;
    const evaluated = {
      operands: op.inputs.map((id) => valueOf(values, id)),
      results: outputsOf(op).map((id) => valueOf(values, id)),
    };
    const results = continuedOp(op, op.inputs.map(now), evaluated, setting);
    outputsOf(op).forEach((id, i) => {
      const result = at(results, i);
      // Unchanged: what follows is so, too.
      if (result === evaluated.results[i]) return;
      const direction = directions.get(id);
      changed.set(id, withoutBounds(direction === undefined ? result : moved(result, direction, distance)));
    });
  }
  return of.map(now);
}

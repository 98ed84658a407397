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
  /** What gradients of this size have along random directions. */
  readonly scale: number;
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

/** The slope of `weighted` along a random direction of all claimed tensors, from `values`. */
export function compareSlope(
  weighted: Weighted,
  values: ReadonlyMap<TensorId, Value>,
  claims: readonly Claim[],
  random: Random,
  setting: Continuing,
): Slope {
  const directions = new Map(claims.map(({ wrt }) => [wrt, directionOf(valueOf(values, wrt), random)]));
  const own = claims.map(({ wrt, gradient }) => claimOf(gradient, directions.get(wrt) ?? new Float64Array()));
  const claimed = own.reduce((sum, claim) => sum + claim.slope, 0);
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
    const shows = claims.length > 1 ? least : Math.max(size, Math.abs(found), 1e-4 * height);
    return {
      claimed,
      found,
      bound,
      scale: Math.max(size, Math.abs(found)),
      agrees: Math.abs(claimed - found) <= bound,
      isSharp: Number.isFinite(claimed) && bound <= 0.01 * shows,
    };
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

/** Each element moves by about its own size, so that none crosses a pole at 0. */
function directionOf(start: Value, random: Random): Float64Array {
  const elements = numbersOf(start);
  const usual = Math.sqrt(elements.reduce((sum, x) => sum + x * x, 0) / elements.length);
  return elements.map((x) => {
    const part = 0.5 + random.float() / 2;
    return (random.integer(2) === 0 ? -part : part) * (Math.abs(x) || usual || 1);
  });
}

function moved(start: Value, direction: Float64Array, distance: number): Value {
  const elements = numbersOf(start);
  return makeValue(start.dtype, start.shape, (_, flat) => ({
    element: at(elements, flat) + distance * at(direction, flat),
    bound: 0,
  }));
}

/** A gradient in parts has them one after the other. */
function claimOf(gradient: Value, direction: Float64Array): { readonly slope: number; readonly size: number } {
  const elements = numbersOf(gradient);
  let [slope, squares] = [0, 0];
  direction.forEach((by, i) => {
    let element = 0;
    for (let part = i; part < elements.length; part += direction.length) element += at(elements, part);
    slope += element * by;
    squares += (element * by) ** 2;
  });
  return { slope, size: Math.sqrt(squares) };
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

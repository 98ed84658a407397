/**
 * Slopes of a Fusion, by central differences in double: a second opinion on what `gradients` derives. They evaluate ops
 * by their definitions and know no rule of differentiation.
 */
import type { TensorId } from "../../ir/domain.ts";
import type { Derivation, FusionData } from "../../ir/fusion-data.ts";
import { type Op, outputsOf, type BinaryOp } from "../../ir/ops/op.ts";
import { shapeOf, type Sizes } from "../../ir/sizes.ts";
import type { Tensor } from "../../numerics/tensor/host-tensor.ts";
import { at, invariant } from "../../support/invariant.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { evaluateOp, type Setting, twoValues } from "../evaluate-op.ts";
import { valueAt, valuesOnly } from "../evaluate.ts";
import {
  fromTensor,
  inDouble,
  makeValue,
  oracleNumbers,
  toDouble,
  type OracleValue,
  withoutBounds,
  elementAt,
} from "../value.ts";
import { dtypes } from "../../numerics/dtype.ts";
import { broadcastReader } from "../pointwise.ts";
import { reduction } from "../reduction.ts";

/** A function of a tensor: the sum of tensors, each times its cotangent. */
export interface Weighted {
  /** The ops before `of`, in order. */
  readonly ops: readonly Op[];
  readonly of: readonly TensorId[];
  /** One per `of`. */
  readonly weights: readonly OracleValue[];
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
export interface SlopeClaim {
  readonly wrt: TensorId;
  readonly gradient: OracleValue;
}

interface OwnClaim extends Pick<Slope, "leftOut" | "of"> {
  readonly direction: Float64Array;
  readonly slope: number;
  /** What a gradient of this size has along a random direction. */
  readonly size: number;
}

/** The slope of `weighted` along a random direction of all claimed tensors, from `values`. */
function compareSlope(
  weighted: Weighted,
  values: ReadonlyMap<TensorId, OracleValue>,
  claims: readonly SlopeClaim[],
  random: Random,
  setting: Continuing,
): Slope {
  const own = claims.map(({ wrt, gradient }) => ({ wrt, ...claimOf(gradient, valueAt(values, wrt), random) }));
  const directions = new Map(own.map(({ wrt, direction }) => [wrt, direction]));
  const total = (part: "slope" | "leftOut" | "of"): number => own.reduce((sum, claim) => sum + claim[part], 0);
  const [claimed, leftOut, of] = [total("slope"), total("leftOut"), total("of")];
  const size = Math.hypot(...own.map((claim) => claim.size));
  const least = Math.min(...own.map((claim) => claim.size));
  const height = weighted.of.reduce((sum, id, i) => {
    const [y, c] = [oracleNumbers(valueAt(values, id)), oracleNumbers(at(weighted.weights, i))];
    return y.reduce((total, element, k) => total + Math.abs(times(at(c, k), element)), sum);
  }, 0);
  const slope = (step: number): number => {
    const [before, after] = [-step, step].map((distance) =>
      movedOutputs(weighted, values, directions, distance, setting),
    );
    const rise = weighted.weights.reduce((sum, weight, i) => {
      const [c, low, high] = [weight, before?.[i], after?.[i]].map((value) => value && oracleNumbers(value));
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

function moved(start: OracleValue, direction: Float64Array, distance: number): OracleValue {
  const elements = oracleNumbers(start);
  return makeValue(start.dtype, start.shape, (_, flat) => ({
    element: at(elements, flat) + distance * at(direction, flat),
    bound: 0,
  }));
}

/**
 * A direction, along which each element moves by about its own size, so that none crosses a pole at 0, and the slope by
 * the gradient. A gradient in parts has them one after the other.
 */
function claimOf(gradient: OracleValue, start: OracleValue, random: Random): OwnClaim {
  const [elements, from] = [oracleNumbers(gradient), oracleNumbers(start)];
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
  values: ReadonlyMap<TensorId, OracleValue>,
  directions: ReadonlyMap<TensorId, Float64Array>,
  distance: number,
  setting: Continuing,
): readonly OracleValue[] {
  const changed = new Map([...directions].map(([id, by]) => [id, moved(valueAt(values, id), by, distance)]));
  const now = (id: TensorId): OracleValue => changed.get(id) ?? valueAt(values, id);
  for (const op of ops) {
    if (!op.inputs.some((id) => changed.has(id))) continue;
    const evaluated = {
      operands: op.inputs.map((id) => valueAt(values, id)),
      results: outputsOf(op).map((id) => valueAt(values, id)),
    };
    const held = setting.held.get(op.output);
    if (held === "whole") continue;
    const continued = continuedOp(op, op.inputs.map(now), evaluated, setting);
    const results = held === undefined ? continued : continued.map((each) => heldAt(held, each, evaluated));
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

/** What the gradients take for constant: a detached tensor, or the rows that an index has read. */
type Held = "whole" | number;

function heldAt(
  row: number,
  result: OracleValue,
  { operands, results }: { readonly operands: readonly OracleValue[]; readonly results: readonly OracleValue[] },
): OracleValue {
  const [index, before] = [oracleNumbers(at(operands, 1)), oracleNumbers(at(results, 0))];
  const elements = oracleNumbers(result);
  const width = elements.length / index.length;
  return makeValue(result.dtype, result.shape, (_, flat) => ({
    element: at(at(index, Math.floor(flat / width)) === row ? before : elements, flat),
    bound: 0,
  }));
}

// Evaluates ops one after the other, and keeps all values.

/** The ops that the tensors depend on, without those before tensors that are `known`. */
export function opsBefore(
  ops: readonly Op[],
  tensors: readonly TensorId[],
  known: { readonly has: (id: TensorId) => boolean } = new Set(),
): readonly Op[] {
  const needed = new Set(tensors);
  const isNeeded = (id: TensorId): boolean => needed.has(id) && !known.has(id);
  const found = ops.toReversed().filter((op) => {
    if (!outputsOf(op).some(isNeeded)) return false;
    for (const id of op.inputs) needed.add(id);
    return true;
  });
  return found.toReversed();
}

/** Whether the tensors can be computed of `inputs`: a Fusion that was cut by hand may lack ops. */
export function canMake(ops: readonly Op[], tensors: readonly TensorId[], inputs: readonly TensorId[]): boolean {
  const own = opsBefore(ops, tensors, new Set(inputs));
  const made = new Set([...inputs, ...own.flatMap(outputsOf)]);
  return [...tensors, ...own.flatMap((op) => op.inputs)].every((id) => made.has(id));
}

/** Adds what the ops make to `values`. */
function evaluateOps(ops: readonly Op[], values: Map<TensorId, OracleValue>, setting: Setting): void {
  for (const op of ops) {
    const operands = op.inputs.map((id) => valueAt(values, id));
    const results = evaluateOp(op, operands, shapeOf(at(setting.tensors, op.output), setting.sizes), setting);
    outputsOf(op).forEach((id, i) => {
      if (i < results.length) values.set(id, withoutBounds(at(results, i)));
    });
  }
}

// The gradients of a derivation beside the slopes of what was differentiated, at a point.

export interface Pair {
  readonly gradient: TensorId;
  readonly wrt: TensorId;
}

/**
 * `pairs`: those that will be asked for. `inputs`: of what was differentiated. All is evaluated in double, when the first
 * slope is asked for.
 */
export function slopesAt(
  fusion: FusionData,
  derivation: Derivation,
  pairs: readonly Pair[],
  inputs: readonly Tensor[],
  sizes: Sizes,
): (pairs: readonly Pair[], seed: number) => Slope {
  const { of, cotangents, whole } = derivation;
  const joint = inDouble(withoutScales({ ...fusion, ...whole }));
  const corners = (fusion.markers ?? []).filter(({ name }) => name === "clamp" || name === "extreme");
  const takesFirst = new Set(corners.flatMap(({ kept, outputs }) => [...kept, ...outputs]));
  const held = new Map(
    (fusion.markers ?? []).flatMap(({ name, outputs, padding = -1 }): (readonly [TensorId, Held])[] => {
      const output = at(outputs, 0);
      return name === "detach" ? [[output, "whole"]] : name === "paddedRows" ? [[output, padding]] : [];
    }),
  );
  const setting: Continuing = { tensors: joint.tensors, sizes, arithmetic: valuesOnly, takesFirst, held };
  let point: { readonly weighted: Weighted; readonly values: Values; readonly derived: Values } | null = null;
  const gradients = pairs.map(({ gradient }) => gradient);
  const evaluate = (): NonNullable<typeof point> => {
    const values = new Map(joint.inputs.map((id, i) => [id, fromTensor(toDouble(at(inputs, i)))]));
    // The backward pass alone starts from tensors that the forward pass has saved.
    const wanted = [...of, ...cotangents.flatMap((id) => id ?? []), ...fusion.inputs];
    evaluateOps(opsBefore(joint.ops, wanted, values), values, setting);
    const derived = whole === undefined ? values : new Map(fusion.inputs.map((id) => [id, valueAt(values, id)]));
    evaluateOps(opsBefore(inDouble(fusion).ops, gradients, derived), derived, setting);
    const weights = cotangents.map((id) => (id === null ? one : valueAt(values, id)));
    return { weighted: { ops: opsBefore(joint.ops, of), of, weights }, values, derived };
  };
  return (asked, seed) => {
    point ??= evaluate();
    const { weighted, values, derived } = point;
    const claims = asked.map(({ wrt, gradient }) => ({ wrt, gradient: valueAt(derived, gradient) }));
    return compareSlope(weighted, values, claims, createRandom(seed), setting);
  };
}

/**
 * With plain linears for those of 8-bit floats, whose gradients pass the rounding as if it were none. In double nothing
 * is rounded, but which elements saturate would be a corner.
 */
function withoutScales({ markers = [], ...fusion }: FusionData): FusionData {
  const operands = new Map(
    markers.flatMap((marker) =>
      marker.name === "float8Linear" ? [[at(marker.outputs, 0), marker.operands] as const] : [],
    ),
  );
  const ops = fusion.ops.map((op): Op => {
    const own = operands.get(op.output);
    return own === undefined ? op : { kind: "Linear", inputs: [own.x, own.weight], output: op.output };
  });
  return { ...fusion, markers, ops };
}

type Values = ReadonlyMap<TensorId, OracleValue>;

const one = makeValue("double", [], () => ({ element: 1, bound: 0 }));

/*
 * An op near the values that it was evaluated with, continued where its definition has a corner or a step: an extremum
 * keeps taking the element that it took, and a step stays. The result is smooth, so it has a slope, and at a corner
 * the slope is the derivative that PyTorch defines.
 */

/** What an op was evaluated with. */
interface Evaluated {
  readonly operands: readonly OracleValue[];
  readonly results: readonly OracleValue[];
}

interface Continuing extends Setting {
  /** The maxima and minima that take the first of equal elements, as those of `clamp` do, rather than their mean. */
  readonly takesFirst: ReadonlySet<TensorId>;
  /** Tensors that stay, as a whole or in part. */
  readonly held: ReadonlyMap<TensorId, Held>;
}

/** Functions that are steps: near a value they are what they are there. */
const steps: ReadonlySet<string> = new Set(["sign", "floor", "ceil", "trunc", "round"]);

/** The results for `operands`, which are near those of `evaluated`. */
function continuedOp(
  op: Op,
  operands: readonly OracleValue[],
  evaluated: Evaluated,
  setting: Continuing,
): readonly OracleValue[] {
  const [result, x, then] = [at(evaluated.results, 0), at(operands, 0), at(evaluated.operands, 0)];
  // Integers and bools are steps of floats.
  if (dtypes[result.dtype].family !== "float") return evaluated.results;
  if (op.kind === "Unary") {
    if (steps.has(op.op)) return evaluated.results;
    if (op.op === "abs") return [zipped(x, then, (now, before) => Math.sign(before) * now)];
    if (op.op === "relu") return [zipped(x, then, (now, before) => (before > 0 ? now : 0))];
  }
  if (op.kind === "Binary" && (op.op === "maximum" || op.op === "minimum")) {
    return [extremeOperand(op, operands, evaluated, setting.takesFirst.has(op.output))];
  }
  if (op.kind === "Reduction" && (op.op === "amax" || op.op === "amin")) {
    return [meanOfExtremes(x, then, result, op.axes, setting, setting.takesFirst.has(op.output))];
  }
  return evaluateOp(op, operands, result.shape, setting);
}

function zipped(a: OracleValue, b: OracleValue, combine: (a: number, b: number) => number): OracleValue {
  const element = (flat: number): number => combine(Number(a.elements[flat]), Number(b.elements[flat]));
  return makeValue(a.dtype, a.shape, (_, flat) => ({ element: element(flat), bound: 0 }));
}

/** The operand that was the extreme one. */
function extremeOperand(
  { op, scalar }: BinaryOp,
  operands: readonly OracleValue[],
  { operands: before, results }: Evaluated,
  takesFirst: boolean,
): OracleValue {
  const { dtype, shape } = at(results, 0);
  const readersOf = (values: readonly OracleValue[]): readonly ((index: readonly number[], flat: number) => number)[] =>
    twoValues(scalar, 0, values, shape).map((value) => {
      const read = broadcastReader(value, shape);
      return (index, flat) => Number(read(index, flat).element);
    });
  const [[a, b], [oldA, oldB]] = [readersOf(operands), readersOf(before)];
  invariant(a && b && oldA && oldB, "a binary op has two operands", op);
  const element = (index: readonly number[], flat: number): number => {
    const apart = (oldA(index, flat) - oldB(index, flat)) * (op === "maximum" ? 1 : -1);
    if (apart > 0 || (apart === 0 && takesFirst)) return a(index, flat);
    if (apart < 0) return b(index, flat);
    return (a(index, flat) + b(index, flat)) / 2;
  };
  return makeValue(dtype, shape, (index, flat) => ({ element: element(index, flat), bound: 0 }));
}

/** Of the elements that were extreme: all of them move the result, or the first one does. */
function meanOfExtremes(
  now: OracleValue,
  then: OracleValue,
  result: OracleValue,
  axes: readonly number[],
  { arithmetic }: Setting,
  takesFirst: boolean,
): OracleValue {
  const extremes = { ...result, shape: then.shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent)) };
  const sumOf = (term: (flat: number) => number): OracleValue => {
    const found = new Set<string>();
    const terms = makeValue(then.dtype, then.shape, (index, flat) => {
      const row = index.filter((_, axis) => !axes.includes(axis)).join();
      const isLater = takesFirst && found.has(row);
      const isExtreme = !isLater && then.elements[flat] === elementAt(extremes, index).element;
      if (isExtreme) found.add(row);
      return { element: isExtreme ? term(flat) : 0, bound: 0 };
    });
    return reduction("sum", terms, axes, 0, arithmetic);
  };
  const total = sumOf((flat) => Number(now.elements[flat]));
  return zipped(
    total,
    sumOf(() => 1),
    (sum, count) => sum / count,
  );
}

/** Reductions by one op, pairs of a value and its index (argmax), and windows that make cumulative results. */
import { amax, amin, argmax, bitXor, cast, neg, pad } from "../../../ir/api/ops.ts";
import { binary } from "../../../ir/api/ops/apply.ts";
import { scan } from "../../../ir/api/ops/ordered.ts";
import { reductionFunctions, type ReductionOpType } from "../../../ir/ops/functions/reduction.ts";
import type { BinaryOpType } from "../../../ir/ops/op.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { at } from "../../../support/invariant.ts";
import { partReductions } from "../../manual/parts.ts";
import { numbers, requireAxes, wordIn } from "../read-attributes.ts";
import type { OpRegion } from "../syntax/nodes.ts";
import { cutTo, dtypeIn, scalarOf, splatOf, ownView, type MlirValue, type ValueType, ownWhole } from "../value.ts";
import {
  contradicted,
  firstRegion,
  madeValue,
  madeValues,
  operandAt,
  type ReadRow,
  type Reading,
  refuse,
  resultType,
  readRow,
  soleOpOf,
  typeText,
  valueType,
} from "./reading.ts";
import { spacedBy } from "./shape.ts";
import { windowed, type AxisWindows } from "./windows.ts";

interface Combiner {
  readonly reduction: ReductionOpType;
  readonly binary: BinaryOpType;
}

const combinersByName: Readonly<Record<string, Combiner>> = {
  "stablehlo.add": { reduction: "sum", binary: "add" },
  "stablehlo.multiply": { reduction: "prod", binary: "mul" },
  "stablehlo.maximum": { reduction: "amax", binary: "maximum" },
  "stablehlo.minimum": { reduction: "amin", binary: "minimum" },
  "stablehlo.or": { reduction: "amax", binary: "maximum" },
  "stablehlo.and": { reduction: "amin", binary: "minimum" },
};

/** The combiner of an op name; of bools, `add` is `or` and `multiply` is `and`. */
function combinerNamed({ element }: ValueType, name: string): Combiner | null {
  const isBool = element === "i1";
  const known = combinersByName[(isBool && bools[name]) || name] ?? null;
  return !isBool && (name === "stablehlo.or" || name === "stablehlo.and") ? null : known;
}

const bools: Readonly<Record<string, string>> = {
  "stablehlo.add": "stablehlo.or",
  "stablehlo.multiply": "stablehlo.and",
};

/**
 * The combiner that a region on two scalars of `type` applies: by the name of its one op, or tried on pairs that tell
 * combiners apart, for regions that convert or constrain. `result`: of a region that combines several pairs.
 */
export function combinerOf(reading: Reading, type: ValueType, result = 0): Combiner {
  const region = firstRegion(reading);
  const name = soleOpOf(region);
  const found = name === null ? triedCombiner(reading, region, type, result) : combinerNamed(type, name);
  return (
    found ??
    refuse(
      reading,
      `a combination by ${name ?? "another function"}`,
      "add, multiply, maximum, minimum; and, or of bools",
    )
  );
}

const pairs = [
  [2, 3],
  [5, 3],
  [-7, 4],
  [0, -6],
  [1, 1],
] as const;

function triedCombiner(reading: Reading, region: OpRegion, { element }: ValueType, result: number): Combiner | null {
  const { reader, op } = reading;
  const count = region.arguments.length / 2;
  const scalar = (value: number, argument: number): MlirValue =>
    scalarOf(reader, valueType(reader, op.position, at(region.arguments, argument).type).element, value);
  const others = count === 1 ? [pairs[0]] : pairs.slice(0, 3);
  const tried = (a: number, b: number): number => {
    const results = others.map(([before, after]) => {
      const values = region.arguments.map((_, i) => {
        const [own, other] = i < count ? [a, before] : [b, after];
        return scalar(i % count === result ? own : other, i);
      });
      const found = reading.region(region, values)[result];
      return Number((found && splatOf(found)) ?? Number.NaN);
    });
    // A result that depends on other pairs is no combination of its own.
    return new Set(results).size === 1 ? at(results, 0) : Number.NaN;
  };
  const isBool = element === "i1";
  const all = isBool
    ? ([
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
      ] as const)
    : pairs;
  const results = all.map(([a, b]) => tried(a, b));
  const fits = (combine: (a: number, b: number) => number): boolean =>
    all.every(([a, b], i) => combine(a, b) === results[i]);
  if (!isBool && fits((a, b) => a + b)) return combinersByName["stablehlo.add"] ?? null;
  if (!isBool && fits((a, b) => a * b)) return combinersByName["stablehlo.multiply"] ?? null;
  if (fits(Math.max)) return combinersByName["stablehlo.maximum"] ?? null;
  return fits(Math.min) ? (combinersByName["stablehlo.minimum"] ?? null) : null;
}

function reduce(reading: Reading): readonly MlirValue[] {
  const { reader, op, operands } = reading;
  const over = requireAxes(reader, op, numbers(reader, op, ["dimensions"]), operandAt(reading).type.shape.length);
  const count = operands.length / 2;
  if (!Number.isInteger(count))
    contradicted(reading, `${operands.length} operands`, "an initial value for each operand");
  const [axis] = over;
  if (count === 2 && over.length === 1 && axis !== undefined && operandAt(reading, 1).counts === axis) {
    return argumentOfExtremum(reading, axis);
  }
  const word = wordIn(op.items[op.items.findIndex((item) => wordIn(item) === "applies") + 1] ?? null);
  const combiners = Array.from({ length: count }, (_, i) => {
    const { type } = operandAt(reading, i);
    if (op.regions.length > 0 || word === null) return combinerOf(reading, type, i);
    return (
      combinerNamed(type, word) ?? refuse(reading, `a combination by ${word}`, "add, multiply, maximum or minimum")
    );
  });
  return madeValues(reading, () =>
    combiners.map((combiner, i) => {
      const [value, initial] = [operandAt(reading, i), operandAt(reading, count + i)];
      const whole = ownWhole(reading, value);
      const reduced = over.length === 0 ? whole : partReductions[combiner.reduction](whole, over);
      const dtype = dtypeIn(value.type);
      const element = splatOf(initial);
      const { identity } = reductionFunctions[combiner.reduction];
      if (element !== null && Number(element) === Number(identity(dtype))) return cutTo(value.type, reduced);
      return cutTo(value.type, withInitial(reading, combiner, reduced, initial));
    }),
  );
}

/** The initial value goes into each result once. */
function withInitial(reading: Reading, combiner: Combiner, reduced: TensorView, initial: MlirValue): TensorView {
  const element = splatOf(initial);
  const isNumber = element !== null && reduced.dtype !== "bool";
  return binary(combiner.binary, reduced, isNumber ? element : ownView(reading, initial));
}

/**
 * `reduce (x, iota)` whose region keeps the larger value and its index. The region is tried on pairs that tell argmax
 * from argmin and from all else: which of two wins, also of equal ones in either order.
 */
function argumentOfExtremum(reading: Reading, axis: number): readonly MlirValue[] {
  const { reader } = reading;
  const [value, index] = [operandAt(reading), operandAt(reading, 1)];
  const region = firstRegion(reading);
  const pick = ([x, i]: readonly [number, number], [y, j]: readonly [number, number]): number | null => {
    const scalars = [x, i, y, j].map((each, k) => scalarOf(reader, (k % 2 === 0 ? value : index).type.element, each));
    const [best = null, place = null] = reading.region(region, scalars).map(splatOf);
    if (best === null || place === null) return null;
    return [x, y].findIndex((each, k) => each === Number(best) && [i, j][k] === Number(place));
  };
  const wins = [pick([1, 0], [2, 1]), pick([2, 0], [1, 1]), pick([1, 0], [1, 1]), pick([1, 1], [1, 0])].join("");
  const isMost = wins === "1001";
  if (!isMost && wins !== "0101")
    return refuse(
      reading,
      "a region that is neither argmax nor argmin",
      "the first largest or smallest value and its index",
    );
  const type = resultType(reading, 1);
  return madeValues(reading, () => {
    const whole = ownWhole(reading, value);
    // Of integers, -x is not above all others for the least x.
    const turned = dtypes[whole.dtype].family === "float" ? neg(whole) : bitXor(whole, -1);
    return [(isMost ? amax : amin)(whole, [axis]), cast(argmax(isMost ? whole : turned, axis), dtypeIn(type))];
  });
}

/** A window that covers everything up to each index: `padding = [[n - 1, 0]]`, `window_dimensions = [n]`. */
function reduceWindow(reading: Reading): MlirValue {
  const { reader, op } = reading;
  const [value, initial] = [operandAt(reading), operandAt(reading, 1)];
  const { shape } = value.type;
  const ones = shape.map(() => 1);
  const window = numbers(reader, op, ["window_dimensions"]);
  const zeros = shape.flatMap(() => [0, 0]);
  const given = numbers(reader, op, ["padding"], zeros);
  // `dense<0>`: one for all.
  const padding = given.length === 1 ? zeros.map(() => at(given, 0)) : given;
  const others = ["window_strides", "base_dilations", "window_dilations"].flatMap((name) =>
    numbers(reader, op, [name], ones),
  );
  const [axis, ...more] = window.flatMap((size, i) => (size === 1 ? [] : [i]));
  const extent = axis === undefined ? 1 : at(shape, axis);
  const isForward = axis !== undefined && padding[2 * axis] === extent - 1 && padding[2 * axis + 1] === 0;
  const isBackward = axis !== undefined && padding[2 * axis] === 0 && padding[2 * axis + 1] === extent - 1;
  const isCumulative =
    axis === undefined || (more.length === 0 && window[axis] === extent && (isForward || isBackward));
  if (!isCumulative || others.some((each) => each !== 1)) return reduceWindows(reading, window, padding);
  const combiner = combinerOf(reading, value.type);
  return madeValue(reading, () => {
    const tensor = ownWhole(reading, value);
    const scanned = axis === undefined ? tensor : scan(combiner.reduction, tensor, axis, !isForward);
    const element = splatOf(initial);
    const { identity } = reductionFunctions[combiner.reduction];
    const isNeutral = element !== null && Number(element) === Number(identity(dtypeIn(value.type)));
    return cutTo(value.type, isNeutral ? scanned : withInitial(reading, combiner, scanned, initial));
  });
}

/** Windows of a pool: each axis becomes two, of which the one within a window is reduced. */
function reduceWindows(reading: Reading, sizes: readonly number[], padding: readonly number[]): MlirValue {
  const { reader, op } = reading;
  const [value, initial] = [operandAt(reading), operandAt(reading, 1)];
  const { shape } = value.type;
  const type = resultType(reading);
  if (sizes.length !== shape.length || padding.length !== 2 * shape.length || type.shape.length !== shape.length) {
    contradicted(reading, `windows of ${sizes.length} axes`, `windows of ${shape.length} axes, padded on both sides`);
  }
  const [strides = [], spacings = [], dilations = []] = ["window_strides", "base_dilations", "window_dilations"].map(
    (name) => {
      const ones = shape.map(() => 1);
      const found = numbers(reader, op, [name], ones);
      return found.length === shape.length
        ? found
        : contradicted(reading, `${found.length} ${name}`, `${shape.length}`);
    },
  );
  const windows = shape.map((_, i): AxisWindows => ({
    places: type.shape[i] ?? 0,
    size: at(sizes, i),
    stride: at(strides, i),
    dilation: at(dilations, i),
  }));
  const fits = windows.every(({ places, size, stride, dilation }, i) => {
    const wide = (at(shape, i) - 1) * at(spacings, i) + 1 + at(padding, 2 * i) + at(padding, 2 * i + 1);
    return places > 0 && places === Math.floor((wide - (size - 1) * dilation - 1) / stride) + 1;
  });
  if (!fits) contradicted(reading, typeText(type), "a place for each window, and at least one");
  const combiner = combinerOf(reading, value.type);
  const identity = reductionFunctions[combiner.reduction].identity(dtypeIn(value.type));
  return madeValue(reading, () => {
    const whole = ownWhole(reading, value);
    const spaced = spacedBy(
      whole,
      spacings.map((each) => each - 1),
      identity,
    );
    const widths = shape.map((_, i) => [at(padding, 2 * i), at(padding, 2 * i + 1)] as const);
    const padded = padding.some((each) => each !== 0) ? pad(spaced, widths, identity) : spaced;
    const cut = windows.reduceRight((tensor, each, i) => windowed(reader, tensor, i, each), padded);
    const reduced = partReductions[combiner.reduction](
      cut,
      shape.map((_, i) => 2 * i + 1),
    );
    const element = splatOf(initial);
    const isNeutral = element !== null && Number(element) === Number(identity);
    return cutTo(value.type, isNeutral ? reduced : withInitial(reading, combiner, reduced, initial));
  });
}

export const reductionRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.reduce": {
    read: reduce,
    note: "by add, multiply, maximum, minimum, and, or; of a value and its index as argmax and argmin",
  },
  "stablehlo.reduce_window": readRow(
    reduceWindow,
    "as a cumulative result or a pool: sum, product, maximum or minimum",
  ),
};

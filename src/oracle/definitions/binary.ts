/** Functions of two operands. */
import type { BinaryOpType, ReductionOpType } from "../../ir/ops/op.ts";

// What reductions and reducing collectives apply to elements.

interface ReductionDefinition {
  readonly float: (x: number, y: number) => number;
  readonly integer: (x: bigint, y: bigint) => bigint;
  /** How roundings accumulate. null if the result is one of the elements, and exact. */
  readonly accumulates: "sum" | "product" | null;
}

/** Of bool, amax is `or` and amin `and`. */
export const reductionDefinitions: { readonly [Op in ReductionOpType]: ReductionDefinition } = {
  sum: { float: (x, y) => x + y, integer: (x, y) => x + y, accumulates: "sum" },
  prod: { float: (x, y) => x * y, integer: (x, y) => x * y, accumulates: "product" },
  /** NaN if either is; -0 is below 0. */
  amax: { float: (x, y) => extremum(x, y, x > y, 0), integer: (x, y) => (x > y ? x : y), accumulates: null },
  amin: { float: (x, y) => extremum(x, y, x < y, -0), integer: (x, y) => (x < y ? x : y), accumulates: null },
};

function extremum(x: number, y: number, isFirst: boolean, zero: number): number {
  if (Number.isNaN(x) || Number.isNaN(y)) return NaN;
  if (x === 0 && y === 0) return Object.is(x, zero) ? x : y;
  return isFirst ? x : y;
}

export interface BinaryDefinition {
  /** Null for functions of integers and bools. */
  readonly float: ((x: number, y: number) => number) | null;
  /** Null for functions of floats. The dtype has `bits` bits. */
  readonly integer: ((x: bigint, y: bigint, bits: number) => bigint) | null;
  /** The largest change of the result for given changes of the operands. Integer results are `truncated`. */
  readonly spread: (x: Moved, y: Moved, truncated: boolean) => number;
  /** Of comparisons, whose result is a bool: 1 or 0. */
  readonly compares?: true;
  /** Roundings relative to the result. Most functions are correctly rounded. */
  readonly roundings?: number;
}

/** An operand, its absolute value, and the largest change of the operand. */
export interface Moved {
  readonly at: number;
  readonly size: number;
  readonly by: number;
}

type Spread = BinaryDefinition["spread"];

const largerChange: Spread = (x, y) => Math.max(x.by, y.by);
const anyChange: Spread = () => Infinity;

/** Uncertain where the intervals of both operands touch. */
const touching: Spread = (x, y) => {
  if (x.by === Infinity || y.by === Infinity) return Infinity;
  return Math.abs(x.at - y.at) <= x.by + y.by ? 1 : 0;
};

function comparison(
  float: (x: number, y: number) => boolean,
  integer: (x: bigint, y: bigint) => boolean,
): BinaryDefinition {
  return {
    float: (x, y) => (float(x, y) ? 1 : 0),
    integer: (x, y) => (integer(x, y) ? 1n : 0n),
    spread: touching,
    compares: true,
  };
}

function ofIntegers(integer: NonNullable<BinaryDefinition["integer"]>): BinaryDefinition {
  return { float: null, integer, spread: anyChange };
}

/** C's function, of which JavaScript's differs at 1 and -1. */
function power(x: number, y: number): number {
  if (y === 0 || x === 1) return 1;
  if (x === -1 && (y === Infinity || y === -Infinity)) return 1;
  return x ** y;
}

/** Monotonic in each operand as long as x stays on one side of 0, so extreme at the corners. */
function spreadOfPower(x: Moved, y: Moved): number {
  if (x.by >= x.size || (x.at < 0 && (y.by > 0 || !Number.isInteger(y.at)))) return Infinity;
  const exact = power(x.at, y.at);
  const corners = [x.at - x.by, x.at + x.by].flatMap((base) => [power(base, y.at - y.by), power(base, y.at + y.by)]);
  return Math.max(...corners.map((corner) => Math.abs(corner - exact)));
}

/** The arc that the changes make at the least distance from 0. It jumps where y changes its sign below x = 0. */
function spreadOfAngle(y: Moved, x: Moved): number {
  const distance = Math.hypot(Math.max(0, y.size - y.by), Math.max(0, x.size - x.by));
  const jumps = y.by >= y.size && x.at - x.by <= 0;
  return jumps || distance === 0 ? Infinity : (y.by + x.by) / distance;
}

/** Computed in double. Rounding to float32 then gives the correct float32 result, because 53 >= 2 * 24 + 2 bits. */
export const binaryDefinitions: { readonly [Op in BinaryOpType]: BinaryDefinition } = {
  add: { float: (x, y) => x + y, integer: (x, y) => x + y, spread: (x, y) => x.by + y.by },
  sub: { float: (x, y) => x - y, integer: (x, y) => x - y, spread: (x, y) => x.by + y.by },
  mul: {
    float: (x, y) => x * y,
    integer: (x, y) => x * y,
    spread: (x, y) => x.size * y.by + y.size * x.by + x.by * y.by,
  },
  /** Integers truncate toward zero, and x / 0 is 0. */
  div: {
    float: (x, y) => x / y,
    integer: (x, y) => (y === 0n ? 0n : x / y),
    // |x/y - x'/y'|, for y' bounded away from 0.
    spread: (x, y, truncated) =>
      y.size <= y.by ? Infinity : ((x.size / y.size) * y.by + x.by) / (y.size - y.by) + (truncated ? 1 : 0),
  },
  atan2: { float: Math.atan2, integer: null, spread: spreadOfAngle, roundings: 8 },
  fmod: { float: (x, y) => x % y, integer: null, spread: anyChange },
  pow: { float: power, integer: null, spread: spreadOfPower, roundings: 16 },
  /** NaN if either is; -0 is below 0. */
  maximum: { float: (x, y) => extremum(x, y, x > y, 0), integer: (x, y) => (x > y ? x : y), spread: largerChange },
  minimum: { float: (x, y) => extremum(x, y, x < y, -0), integer: (x, y) => (x < y ? x : y), spread: largerChange },
  eq: comparison((x, y) => x === y, (x, y) => x === y), // prettier-ignore
  ne: comparison((x, y) => x !== y, (x, y) => x !== y), // prettier-ignore
  lt: comparison((x, y) => x < y, (x, y) => x < y), // prettier-ignore
  le: comparison((x, y) => x <= y, (x, y) => x <= y), // prettier-ignore
  gt: comparison((x, y) => x > y, (x, y) => x > y), // prettier-ignore
  ge: comparison((x, y) => x >= y, (x, y) => x >= y), // prettier-ignore
  logicalAnd: { ...ofIntegers((x, y) => x * y), spread: largerChange },
  logicalOr: { ...ofIntegers((x, y) => (x === 0n ? y : x)), spread: largerChange },
  bitAnd: ofIntegers((x, y) => x & y),
  bitOr: ofIntegers((x, y) => x | y),
  bitXor: ofIntegers((x, y) => x ^ y),
  /** By y modulo the number of bits. */
  shiftLeft: ofIntegers((x, y, bits) => x << (y & BigInt(bits - 1))),
  shiftRight: ofIntegers((x, y, bits) => x >> (y & BigInt(bits - 1))),
  /** With the sign of y; 0 for y = 0. */
  remainder: ofIntegers((x, y) => (y === 0n ? 0n : ((x % y) + y) % y)),
};

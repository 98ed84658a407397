/** Conversions of a group between the scalar types, as integer-conversion.ts states them. What has no vector form goes lane by lane. */
import type { ScalarType } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { extractLane, get, replaceLane, scalar, shuffleWords, vector, type VectorInstruction } from "./instructions.ts";
import { groupElements, partsOfType, shapeOfType, type Lanes } from "./lanes.ts";
import type { Code } from "./wasm-encoding.ts";

/** The code of each vector of the result. */
type Conversion = (value: Lanes) => readonly Code[];

const same: Conversion = (value) => value.map(get);

/** Both halves of a vector of 32-bit lanes, by an instruction that widens the low one. */
function widened(instruction: VectorInstruction): Conversion {
  return (value) => {
    const whole = get(at(value, 0));
    return [vector(instruction, whole), vector(instruction, shuffleWords([2, 3, 2, 3], whole, whole))];
  };
}

/** Two vectors of 64-bit lanes, by an instruction that narrows one to its low half. */
function narrowed(instruction: VectorInstruction): Conversion {
  return ([low, high]) => [
    shuffleWords([0, 1, 4, 5], vector(instruction, get(low ?? 0)), vector(instruction, get(high ?? 0))),
  ];
}

/** The low words of two vectors of 64-bit lanes: wraps i64 to i32, and narrows masks. */
export function lowWords([low, high]: Lanes): Code {
  return shuffleWords([0, 2, 4, 6], get(low ?? 0), get(high ?? 0));
}

function laneByLane(from: ScalarType, to: ScalarType, instruction: Parameters<typeof scalar>[0]): Conversion {
  const lanesOf = (type: ScalarType): number => groupElements / partsOfType[type];
  const element = (value: Lanes, i: number): Code => {
    const part = get(at(value, Math.floor(i / lanesOf(from))));
    return scalar(instruction, extractLane(shapeOfType[from], i % lanesOf(from), part));
  };
  return (value) =>
    Array.from({ length: partsOfType[to] }, (_, part) => {
      const elements = Array.from({ length: lanesOf(to) }, (__, lane) => element(value, part * lanesOf(to) + lane));
      const shape = shapeOfType[to];
      return elements
        .slice(1)
        .reduce((code, each, i) => replaceLane(shape, i + 1, code, each), vector(`${shape}.splat`, at(elements, 0)));
    });
}

export const laneConversions: { readonly [From in ScalarType]: { readonly [To in ScalarType]: Conversion } } = {
  f64: {
    f64: same,
    f32: narrowed("f32x4.demote_f64x2_zero"),
    i32: narrowed("i32x4.trunc_sat_f64x2_s_zero"),
    i64: laneByLane("f64", "i64", "i64.trunc_sat_f64_s"),
  },
  f32: {
    f64: widened("f64x2.promote_low_f32x4"),
    f32: same,
    i32: ([value]) => [vector("i32x4.trunc_sat_f32x4_s", get(value ?? 0))],
    i64: laneByLane("f32", "i64", "i64.trunc_sat_f32_s"),
  },
  i32: {
    f64: widened("f64x2.convert_low_i32x4_s"),
    f32: ([value]) => [vector("f32x4.convert_i32x4_s", get(value ?? 0))],
    i32: same,
    i64: ([value]) => widenMask(value ?? 0),
  },
  i64: {
    f64: laneByLane("i64", "f64", "f64.convert_i64_s"),
    f32: laneByLane("i64", "f32", "f32.convert_i64_s"),
    i32: (value) => [lowWords(value)],
    i64: same,
  },
};

/** 32-bit lanes, extended with their signs: i32 to i64, and masks. */
export function widenMask(value: number): readonly Code[] {
  return [vector("i64x2.extend_low_i32x4_s", get(value)), vector("i64x2.extend_high_i32x4_s", get(value))];
}

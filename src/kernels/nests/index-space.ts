/**
 * The loop variables of a nest that computes one value, and the divisions that reshapes need. An axis may be split into
 * several loops, outermost first. If a division cuts through a loop evenly, the space requests that split and the nest
 * is built again. Nearly every reshape then ends as plain strides.
 */
import type { DType } from "../../numerics/dtype.ts";
import {
  apply,
  choose,
  computeType,
  constant,
  convert,
  type Expression,
  operand,
} from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { type Affine, type Atom, atomIndex, constantIndex, largest, scale, sum } from "./affine.ts";

/** The extents of each axis's loops. Their product is the axis's extent, and none is 1. */
export type AxisLoops = readonly (readonly number[])[];

export interface IndexSpace {
  /** The loops, axis by axis, then the divisions. */
  readonly atoms: readonly Atom[];
  /** The number of atoms that are loops. */
  readonly loopCount: number;
  /** The index along each axis. */
  readonly axes: readonly Affine[];
  readonly divide: (dividend: Affine, divisor: number) => { readonly quotient: Affine; readonly remainder: Affine };
  /** The index that an instruction loads; `by` are the loops that it changes with. */
  readonly loaded: (instruction: number, extent: number, by: readonly number[]) => Affine;
  /** The loops to use instead, if a division requested a split. */
  readonly refined: () => AxisLoops | null;
}

export function unsplit(shape: readonly number[]): AxisLoops {
  return shape.map((extent) => (extent === 1 ? [] : [extent]));
}

export function createIndexSpace(loops: AxisLoops): IndexSpace {
  const atoms: Atom[] = loops.flat().map((extent) => ({ kind: "loop", extent }));
  const loopCount = atoms.length;
  let request: { readonly loop: number; readonly inner: number } | null = null;

  let next = 0;
  const axes = loops.map((extents) =>
    extents.reduce((index, extent) => sum([scale(index, extent), atomIndex(next++)]), constantIndex(0)),
  );

  const divide = (dividend: Affine, divisor: number): { quotient: Affine; remainder: Affine } => {
    const whole = dividend.terms.filter(({ coefficient }) => coefficient % divisor === 0);
    const evenConstant = dividend.constant - (dividend.constant % divisor);
    const rest: Affine = {
      constant: dividend.constant - evenConstant,
      terms: dividend.terms.filter(({ coefficient }) => coefficient % divisor !== 0),
    };
    // Not times 1 / divisor, which is rounded: 49 * (1 / 49) is below 1.
    const even: Affine = {
      constant: evenConstant / divisor,
      terms: whole.map(({ atom, coefficient }) => ({ atom, coefficient: coefficient / divisor })),
    };
    const most = largest(rest, atoms);
    if (most < divisor) return { quotient: even, remainder: rest };
    request ??= splitFor(rest, divisor);
    const extent = Math.floor(most / divisor) + 1;
    const quotient = atoms.push({ kind: "quotient", extent, dividend: rest, divisor }) - 1;
    const remainder = atoms.push({ kind: "remainder", extent: divisor, dividend: rest, divisor }) - 1;
    return { quotient: sum([even, atomIndex(quotient)]), remainder: atomIndex(remainder) };
  };

  const splitFor = (rest: Affine, divisor: number): { loop: number; inner: number } | null => {
    for (const { atom, coefficient } of rest.terms) {
      const { kind, extent } = at(atoms, atom);
      const inner = divisor / coefficient;
      if (kind === "loop" && Number.isInteger(inner) && extent > inner && extent % inner === 0) {
        return { loop: atom, inner };
      }
    }
    return null;
  };

  const loaded = (instruction: number, extent: number, by: readonly number[]): Affine => {
    const known = atoms.findIndex(
      (atom) => atom.kind === "loaded" && atom.instruction === instruction && atom.extent === extent,
    );
    return atomIndex(known < 0 ? atoms.push({ kind: "loaded", extent, instruction, by }) - 1 : known);
  };

  const refined = (): AxisLoops | null => {
    if (request === null) return null;
    const { loop, inner } = request;
    let position = 0;
    return loops.map((extents) =>
      extents.flatMap((extent) => (position++ === loop ? [extent / inner, inner] : [extent])),
    );
  };

  return { atoms, loopCount, axes, divide, loaded, refined };
}

// Indices that a nest loads: in range for the address, and a value to use instead of what an index outside reads.

/** Operand 0, an index of `dtype`, as the nearest index of an axis of `extent` elements, at least one. */
function nearest(dtype: DType, extent: number): Expression {
  const index = operand(computeType[dtype], 0);
  return apply("min", apply("max", index, constant(index.type, 0)), constant(index.type, extent - 1));
}

/** The place of operand 0 along the axis. */
export function placeExpression(dtype: DType, extent: number): Expression {
  return convert("i32", nearest(dtype, extent));
}

/** Operand 1, a value of `read`, if operand 0 is an index of the axis; otherwise `outside`. */
export function insideExpression(dtype: DType, extent: number, read: DType, outside: Expression): Expression {
  const index = operand(computeType[dtype], 0);
  return choose([nearest(dtype, extent), "eq", index], operand(computeType[read], 1), outside);
}

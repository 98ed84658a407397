/**
 * Index arithmetic of generated loops: a constant plus atoms times coefficients. An atom is a loop variable, the quotient
 * or remainder of an uneven division, or an index that is loaded. All values are at least 0.
 */
import { at } from "../../support/invariant.ts";

export interface Term {
  /** Index in the nest's atoms. */
  readonly atom: number;
  readonly coefficient: number;
}

/** At most one term per atom, no zero coefficients, atoms in ascending order. */
export interface Affine {
  readonly constant: number;
  readonly terms: readonly Term[];
}

/** Runs over 0 .. extent-1. */
export type Atom =
  | { readonly kind: "loop"; readonly extent: number }
  | {
      readonly kind: "quotient" | "remainder";
      readonly extent: number;
      readonly dividend: Affine;
      readonly divisor: number;
    }
  /** The value of an instruction of the nest's body, which changes with the loops `by` alone. */
  | { readonly kind: "loaded"; readonly extent: number; readonly instruction: number; readonly by: readonly number[] };

/** The loops that an atom's value changes with. */
export function loopsBehind(atoms: readonly Atom[], atom: number): readonly number[] {
  const definition = at(atoms, atom);
  if (definition.kind === "loop") return [atom];
  return definition.kind === "loaded"
    ? definition.by
    : definition.dividend.terms.flatMap((term) => loopsBehind(atoms, term.atom));
}

/**
 * The last instruction that an atom needs; -1 for an atom that needs none. An atom is declared as soon as it can be, and
 * the others of one instruction in their order.
 */
export function lastNeeded(atoms: readonly Atom[], atom: number): number {
  const definition = at(atoms, atom);
  if (definition.kind === "loop") return -1;
  if (definition.kind === "loaded") return definition.instruction;
  return Math.max(-1, ...definition.dividend.terms.map((term) => lastNeeded(atoms, term.atom)));
}

export function constantIndex(constant: number): Affine {
  return { constant, terms: [] };
}

export function atomIndex(atom: number): Affine {
  return { constant: 0, terms: [{ atom, coefficient: 1 }] };
}

export function scale(index: Affine, factor: number): Affine {
  if (factor === 0) return constantIndex(0);
  return {
    constant: index.constant * factor,
    terms: index.terms.map(({ atom, coefficient }) => ({ atom, coefficient: coefficient * factor })),
  };
}

export function sum(indices: readonly Affine[]): Affine {
  const coefficients = new Map<number, number>();
  let constant = 0;
  for (const index of indices) {
    constant += index.constant;
    for (const { atom, coefficient } of index.terms) {
      coefficients.set(atom, (coefficients.get(atom) ?? 0) + coefficient);
    }
  }
  const terms = [...coefficients]
    .filter(([, coefficient]) => coefficient !== 0)
    .map(([atom, coefficient]) => ({ atom, coefficient }))
    .toSorted((a, b) => a.atom - b.atom);
  return { constant, terms };
}

export function coefficientOf(index: Affine, atom: number): number {
  return index.terms.find((term) => term.atom === atom)?.coefficient ?? 0;
}

/** The largest value of `index`. */
export function largest(index: Affine, atoms: readonly Atom[]): number {
  return index.terms.reduce(
    (value, { atom, coefficient }) => value + coefficient * (at(atoms, atom).extent - 1),
    index.constant,
  );
}

/** The offset of an index under the given strides. */
export function dot(index: readonly Affine[], strides: readonly number[]): Affine {
  return sum(index.map((axis, i) => scale(axis, at(strides, i))));
}

export function affineKey(index: Affine): string {
  return `${index.constant}${index.terms.map(({ atom, coefficient }) => `+${coefficient}*${atom}`).join("")}`;
}

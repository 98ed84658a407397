/** The JavaScript text of loop variables, and of indices made from them. */
import { at } from "../../support/invariant.ts";
import type { Affine, Atom } from "../nests/affine.ts";
import type { Loop } from "../nests/nest.ts";

export function affineText(index: Affine, atoms: readonly Atom[]): string {
  const terms = index.terms.map(({ atom, coefficient }) => product(atomName(atom, atoms), coefficient));
  return [...terms, `${index.constant}`].join(" + ");
}

export function product(name: string, coefficient: number): string {
  return coefficient === 1 ? name : `${name} * ${coefficient}`;
}

export function loopName({ atom }: Loop): string {
  return `i${atom}`;
}

export function atomName(atom: number, atoms: readonly Atom[]): string {
  return at(atoms, atom).kind === "loop" ? `i${atom}` : `d${atom}`;
}

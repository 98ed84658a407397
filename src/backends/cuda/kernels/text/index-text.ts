/**
 * Index arithmetic in generated kernels. A thread's number becomes loop variables by divisions by constants, which
 * compilers turn into multiplications. Loop variables become element offsets.
 */
import { type Affine, type Atom, largest, lastNeeded } from "../../../../kernels/nests/affine.ts";
import type { Access, Loop } from "../../../../kernels/nests/nest.ts";
import { at } from "../../../../support/invariant.ts";

/** The type for numbers up to `most`. */
export function indexType(most: number): string {
  return most < 2 ** 31 ? "unsigned" : "unsigned long long";
}

/** The type that holds the values of all. Offsets are computed in the type of the loop variables. */
export function widerType(types: readonly string[]): string {
  return types.every((type) => type === "unsigned") ? "unsigned" : "unsigned long long";
}

export function loopName(prefix: string, atom: number): string {
  return `${prefix}${atom}`;
}

/**
 * Declares the variables of `loops` from `flat`, the row-major number of the iteration. An iteration covers `step`
 * elements of the innermost loop. Names are prefix + atom.
 */
export function loopVariables(
  loops: readonly Loop[],
  flat: string,
  type: string,
  prefix: string,
  step = 1,
): readonly string[] {
  const lines: string[] = [];
  let rest = flat;
  for (let i = loops.length - 1; i >= 0; i--) {
    const { atom, extent } = at(loops, i);
    const count = i === loops.length - 1 ? extent / step : extent;
    const digit = i === 0 ? rest : `${rest} % ${count}u`;
    const scaled = i === loops.length - 1 && step > 1 ? `(${digit}) * ${step}u` : digit;
    lines.push(`const ${type} ${loopName(prefix, atom)} = ${scaled};`);
    if (i > 0) {
      const next = `${flat}_${i}`;
      lines.push(`const ${type} ${next} = ${rest} / ${count}u;`);
      rest = next;
    }
  }
  return lines;
}

/**
 * Declares the quotients and remainders of the nest, after its loop variables: those that follow from indices loaded by
 * instruction `after`, or from none.
 */
export function divisionVariables(atoms: readonly Atom[], type: string, prefix: string, after = -1): readonly string[] {
  return atoms.flatMap((atom, i) => {
    if (atom.kind === "loop" || atom.kind === "loaded" || lastNeeded(atoms, i) !== after) return [];
    const sign = atom.kind === "remainder" ? "%" : "/";
    return [`const ${type} ${loopName(prefix, i)} = (${affineText(atom.dividend, prefix)}) ${sign} ${atom.divisor}u;`];
  });
}

export function affineText(index: Affine, prefix: string): string {
  const terms = index.terms.map(({ atom, coefficient }) =>
    coefficient === 1 ? loopName(prefix, atom) : `${loopName(prefix, atom)} * ${coefficient}u`,
  );
  if (index.constant > 0 || terms.length === 0) terms.push(`${index.constant}u`);
  return terms.join(" + ");
}

/** The type in which every offset of the accesses can be computed. */
export function offsetType(accesses: readonly Access[], atoms: readonly Atom[]): string {
  return indexType(Math.max(0, ...accesses.map(({ offset }) => largest(offset, atoms))));
}

/**
 * Orders and merges the loops of a nest. Loops over elements may run in any order; the loop with the target's smallest
 * stride becomes innermost. Loops of a reduction keep their order, because it is the order of accumulation. Adjacent
 * loops that step evenly through every access are merged.
 */
import { at } from "../../support/invariant.ts";
import { type Affine, coefficientOf } from "./affine.ts";
import { loadsOf, type Access, type Loop, type Nest } from "./nest.ts";

export function arrangeLoops(nest: Nest): Nest {
  const indices = nest.body.flatMap((step) => (step.kind === "index" ? [step.index] : []));
  const steps = [...[...loadsOf(nest), nest.target].map(({ offset }) => offset), ...indices];
  const divided = new Set<number>();
  for (const atom of nest.atoms) {
    if (atom.kind === "quotient" || atom.kind === "remainder")
      for (const term of atom.dividend.terms) divided.add(term.atom);
  }
  const join = (loops: readonly Loop[]): readonly Loop[] =>
    loops.reduce<readonly Loop[]>((joined, loop) => {
      const outer = joined.at(-1);
      const joins =
        outer !== undefined &&
        !divided.has(outer.atom) &&
        !divided.has(loop.atom) &&
        steps.every((step) => coefficientOf(step, outer.atom) === coefficientOf(step, loop.atom) * loop.extent);
      if (!joins) return [...joined, loop];
      return [...joined.slice(0, -1), { atom: loop.atom, extent: outer.extent * loop.extent }];
    }, []);
  const byTarget = nest.loops.toSorted((a, b) => stride(nest.target, b) - stride(nest.target, a));
  const loops = join(byTarget);
  const reducedLoops = join(nest.reducedLoops);
  // A merged loop keeps its inner atom. Its outer atom is no longer a variable.
  const live = new Set([...loops, ...reducedLoops].map(({ atom }) => atom));
  const without = (offset: Affine): Affine => ({
    constant: offset.constant,
    terms: offset.terms.filter(({ atom }) => live.has(atom) || at(nest.atoms, atom).kind !== "loop"),
  });
  const strip = (access: Access): Access => ({ ...access, offset: without(access.offset) });
  return {
    ...nest,
    loops,
    reducedLoops,
    body: nest.body.map((instruction) => {
      if (instruction.kind === "load") return { ...instruction, access: strip(instruction.access) };
      return instruction.kind === "index" ? { ...instruction, index: without(instruction.index) } : instruction;
    }),
    target: strip(nest.target),
  };
}

/**
 * Whether the reduction should keep one accumulator per index of the innermost loop, and run that loop inside the
 * reduced loops. This pays if memory is contiguous along that loop and strided along the reduced loops.
 */
export function accumulatesRows(nest: Nest): boolean {
  const row = nest.loops.at(-1);
  const reduced = nest.reducedLoops.at(-1);
  if (row === undefined || reduced === undefined) return false;
  const cost = (loop: Loop): number => loadsOf(nest).reduce((total, access) => total + stride(access, loop), 0);
  return cost(row) < cost(reduced);
}

function stride(access: Access, loop: Loop): number {
  return coefficientOf(access.offset, loop.atom);
}

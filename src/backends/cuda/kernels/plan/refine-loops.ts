/**
 * Splits loops so that all nests loop over the same extents, if possible. arrangeLoops merges the loops of each nest as
 * far as its own operands allow, so nests over the same elements may have different loops.
 */
import { type Affine, type Atom, coefficientOf } from "../../../../kernels/nests/affine.ts";
import type { Access, Loop, Nest } from "../../../../kernels/nests/nest.ts";
import { at } from "../../../../support/invariant.ts";

/** Null if the extents have no common refinement, or a division prevents a split. */
export function refineLoops(nests: readonly Nest[]): readonly Nest[] | null {
  const extents = commonExtents(nests.map(({ loops }) => loops.map(({ extent }) => extent)));
  if (extents === null) return null;
  const refined = nests.map((nest) => splitLoops(nest, extents));
  return refined.some((nest) => nest === null) ? null : refined.flatMap((nest) => (nest === null ? [] : [nest]));
}

function commonExtents(lists: readonly (readonly number[])[]): readonly number[] | null {
  const rests = lists.map((list) => [...list]);
  const common: number[] = [];
  for (;;) {
    const open = rests.filter((rest) => rest.length > 0);
    if (open.length === 0) return common;
    if (open.length < rests.length) return null;
    const smallest = Math.min(...rests.map((rest) => at(rest, rest.length - 1)));
    for (const rest of rests) {
      const extent = at(rest, rest.length - 1);
      if (extent % smallest !== 0) return null;
      rest.pop();
      if (extent > smallest) rest.push(extent / smallest);
    }
    common.unshift(smallest);
  }
}

interface Split {
  readonly atom: number;
  /** Innermost first: the loop's own atom stays the innermost. */
  readonly pieces: readonly { readonly atom: number; readonly factor: number }[];
}

function splitLoops(nest: Nest, extents: readonly number[]): Nest | null {
  const atoms: Atom[] = [...nest.atoms];
  const loops: Loop[] = [];
  const splits: Split[] = [];
  let next = extents.length;
  for (const { atom, extent } of nest.loops.toReversed()) {
    const pieces: { atom: number; factor: number }[] = [];
    for (let factor = 1; factor < extent;) {
      const size = at(extents, --next);
      const piece = factor === 1 ? atom : atoms.push({ kind: "loop", extent: size }) - 1;
      pieces.push({ atom: piece, factor });
      loops.unshift({ atom: piece, extent: size });
      factor *= size;
    }
    if (pieces.length > 1) splits.push({ atom, pieces });
  }
  const divided = new Set(
    nest.atoms.flatMap((atom) =>
      atom.kind === "quotient" || atom.kind === "remainder" ? atom.dividend.terms.map((term) => term.atom) : [],
    ),
  );
  if (splits.some(({ atom }) => divided.has(atom))) return null;
  const move = (access: Access): Access => ({ ...access, offset: splitOffset(access.offset, splits) });
  return {
    ...nest,
    atoms,
    loops,
    body: nest.body.map((step) => {
      if (step.kind === "load") return { ...step, access: move(step.access) };
      return step.kind === "index" ? { ...step, index: splitOffset(step.index, splits) } : step;
    }),
    target: move(nest.target),
  };
}

function splitOffset(offset: Affine, splits: readonly Split[]): Affine {
  const added = splits.flatMap(({ atom, pieces }) => {
    const coefficient = coefficientOf(offset, atom);
    return coefficient === 0
      ? []
      : pieces.slice(1).map((piece) => ({ atom: piece.atom, coefficient: coefficient * piece.factor }));
  });
  return { constant: offset.constant, terms: [...offset.terms, ...added].toSorted((a, b) => a.atom - b.atom) };
}

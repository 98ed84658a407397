/**
 * Decides whether a group of nests is computed by tiles. If an operand is contiguous along another axis than the
 * results, a thread that walks along the results reads one element per row. With tiles, a block reads both axes along
 * the operand, transposes the tile in shared memory and writes along the results.
 */
import { coefficientOf } from "../../../../kernels/nests/affine.ts";
import type { Access, Nest } from "../../../../kernels/nests/nest.ts";
import { at } from "../../../../support/invariant.ts";
import { elementBytes } from "../text/element-text.ts";
import type { GroupedNest } from "./nest-groups.ts";
import { type AlignmentOf, vectorWidth } from "./vector-width.ts";

/** A load that goes through shared memory. */
export interface StagedLoad {
  /** The position of its nest in the group, and of the load in the nest's body. */
  readonly nest: number;
  readonly instruction: number;
  readonly access: Access;
  /** Elements that a thread reads at once along the operand. */
  readonly width: number;
  /** Elements from one row of the tile to the next. */
  readonly pitch: number;
}

export interface TilePlan {
  /** Positions among the loops: along the operands, and the innermost one, along the results. */
  readonly across: number;
  readonly along: number;
  /** Extent of a tile along both. */
  readonly side: number;
  readonly staged: readonly StagedLoad[];
  /** Elements that a thread stores at once. */
  readonly width: number;
}

/** Both extents must be at least this long, or tiles are mostly empty. */
const shortestExtent = 16;
/** Shared memory that a block has by default on every GPU. */
const mostSharedBytes = 48 << 10;
/** The width of a bank of shared memory: no access of a thread is wider. */
const bankBytes = 4;

/** Null if one thread per vector is as good. */
export function planTiles(group: readonly GroupedNest[], alignmentOf: AlignmentOf): TilePlan | null {
  const nests = group.map(({ nest }) => nest);
  const { loops } = at(nests, 0);
  const along = loops.length - 1;
  if (along < 1 || at(loops, along).extent < shortestExtent || nests.some(isDivided)) return null;
  const candidates = group.flatMap(({ nest, given }, n) =>
    nest.body.flatMap((step, instruction) => {
      if (step.kind !== "load" || given.has(instruction) || stepOf(nest, step.access, along) < 2) return [];
      const across = loops.findIndex((_, position) => stepOf(nest, step.access, position) === 1);
      return across < 0 || at(loops, across).extent < shortestExtent
        ? []
        : [{ nest: n, instruction, access: step.access, across }];
    }),
  );
  const [first] = candidates;
  const targets = group.flatMap(({ nest, stores }) => (stores ? [{ nest, access: nest.target }] : []));
  if (first === undefined || targets.some(({ nest, access }) => stepOf(nest, access, along) !== 1)) return null;
  const width = Math.min(...targets.map(({ nest, access }) => widthAlong(nest, access, along, alignmentOf)));
  const { across } = first;
  const own = candidates.filter((each) => each.across === across);
  const side = own.some(({ access }) => elementBytes(access.dtype) > 4) ? 32 : 64;
  const staged = own.map(({ nest, instruction, access }): StagedLoad => {
    const padding = Math.max(1, bankBytes / (width * elementBytes(access.dtype)));
    return {
      nest,
      instruction,
      access,
      width: widthAlong(at(nests, nest), access, across, alignmentOf),
      pitch: side + padding,
    };
  });
  const bytes = staged.reduce((sum, { pitch, access }) => sum + side * pitch * elementBytes(access.dtype), 0);
  return bytes > mostSharedBytes ? null : { across, along, side, staged, width };
}

/** Whether an access depends on a quotient or remainder of the loops. */
function isDivided({ body, target, atoms }: Nest): boolean {
  const accesses = [...body.flatMap((step) => (step.kind === "load" ? [step.access] : [])), target];
  return accesses.some(({ offset }) => offset.terms.some(({ atom }) => at(atoms, atom).kind !== "loop"));
}

function stepOf({ loops }: Nest, { offset }: Access, position: number): number {
  return coefficientOf(offset, at(loops, position).atom);
}

/** The number of elements that one bank holds, if the access allows that many. */
function widthAlong(nest: Nest, access: Access, position: number, alignmentOf: AlignmentOf): number {
  const widest = vectorWidth([], [access], nest.atoms, at(nest.loops, position), alignmentOf);
  return Math.min(widest, Math.max(1, bankBytes / elementBytes(access.dtype)));
}

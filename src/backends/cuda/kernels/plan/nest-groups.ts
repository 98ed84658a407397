/**
 * Decides which nests of a unit run in one kernel: those of rows (row-group.ts), and neighbours without a reduction that
 * loop over the same extents. A nest may read what an earlier nest of the group wrote only at the index that it writes
 * itself; the value then stays in a register.
 */
import type { Nest } from "../../../../kernels/nests/nest.ts";
import type { Phase } from "../../../../kernels/phase.ts";
import { at } from "../../../../support/invariant.ts";
import { isStored, mayFollow, nestSource } from "./nest-reads.ts";
import { refineLoops } from "./refine-loops.ts";
import { type RowGroup, rowGroupAt } from "./row-group.ts";

export type PhaseGroup =
  | { readonly kind: "nests"; readonly nests: readonly GroupedNest[] }
  | RowGroup
  | { readonly kind: "reduction" | "ordered"; readonly nest: Nest }
  | Extract<Phase, { readonly kind: "contraction" }>;

export interface GroupedNest {
  readonly nest: Nest;
  /** Loads that read the result of an earlier nest of the group: that nest's position in the group, by instruction. */
  readonly given: ReadonlyMap<number, number>;
  /** Whether any kernel reads the result from memory. */
  readonly stores: boolean;
}

const mostNests = 8;

/** `phases` do not share scratch yet. */
export function groupPhases(phases: readonly Phase[]): readonly PhaseGroup[] {
  const groups: PhaseGroup[] = [];
  let open: { readonly nest: Nest; readonly position: number }[] = [];
  let next = 0;
  const close = (): void => {
    if (open.length > 0) groups.push({ kind: "nests", nests: grouped(open, phases) });
    open = [];
  };
  for (const [position, phase] of phases.entries()) {
    if (position < next) continue;
    const rows = rowGroupAt(phases, position);
    if (rows !== null) {
      close();
      groups.push(rows);
      next = position + rows.nests.length;
      continue;
    }
    if (phase.kind === "nest" && phase.nest.reduction === null && phase.nest.ordered === undefined) {
      const refined = refineLoops([...open.map(({ nest }) => nest), phase.nest]);
      const [nests, nest] = [refined?.slice(0, -1), refined?.at(-1)];
      if (nests === undefined || nest === undefined || nests.length === mostNests || !mayFollow(nests, nest)) {
        close();
        open = [{ nest: phase.nest, position }];
      } else {
        open = [...nests.map((earlier, i) => ({ ...at(open, i), nest: earlier })), { nest, position }];
      }
      continue;
    }
    close();
    if (phase.kind !== "nest") groups.push(phase);
    else groups.push({ kind: phase.nest.ordered === undefined ? "reduction" : "ordered", nest: phase.nest });
  }
  close();
  return groups;
}

function grouped(
  group: readonly { readonly nest: Nest; readonly position: number }[],
  phases: readonly Phase[],
): readonly GroupedNest[] {
  const nests = group.map(({ nest }) => nest);
  const later = phases.slice(at(group, group.length - 1).position + 1);
  return nests.map((nest, index) => {
    const given = new Map<number, number>();
    for (const [i, instruction] of nest.body.entries()) {
      const source = instruction.kind === "load" ? nestSource(nests, index, instruction.access) : -1;
      if (source >= 0) given.set(i, source);
    }
    return { nest, given, stores: isStored(nest, later) };
  });
}

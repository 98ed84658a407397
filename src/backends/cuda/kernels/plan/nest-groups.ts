/**
 * Decides which nests of a unit run in one kernel: neighbours without a reduction that loop over the same extents. A
 * nest may read what an earlier nest of the group wrote only at the index that it writes itself; the value then stays
 * in a register.
 */
import { affineKey } from "../../../../kernels/nests/affine.ts";
import type { Access, Memory, Nest } from "../../../../kernels/nests/nest.ts";
import type { Phase } from "../../../../kernels/phase.ts";
import { at } from "../../../../support/invariant.ts";
import { memoryKey } from "../kernel-source.ts";
import { refineLoops } from "./refine-loops.ts";

export type PhaseGroup =
  | { readonly kind: "nests"; readonly nests: readonly GroupedNest[] }
  | { readonly kind: "reduction"; readonly nest: Nest }
  | Extract<Phase, { readonly kind: "contraction" }>;

export interface GroupedNest {
  readonly nest: Nest;
  /** Loads that read the result of an earlier nest of the group: that nest's position in the group, by instruction. */
  readonly given: ReadonlyMap<number, number>;
  /** Whether any kernel reads the result from memory. */
  readonly stores: boolean;
}

const mostNests = 8;

export function groupPhases(phases: readonly Phase[]): readonly PhaseGroup[] {
  const groups: PhaseGroup[] = [];
  let open: { readonly nest: Nest; readonly position: number }[] = [];
  const close = (): void => {
    if (open.length > 0) groups.push({ kind: "nests", nests: open.map((_, i) => grouped(open, i, phases)) });
    open = [];
  };
  for (const [position, phase] of phases.entries()) {
    if (phase.kind === "nest" && phase.nest.reduction === null) {
      const refined = refineLoops([...open.map(({ nest }) => nest), phase.nest]);
      const [nests, nest] = [refined?.slice(0, -1), refined?.at(-1)];
      if (nests === undefined || nest === undefined || !mayJoin(nests, nest)) {
        close();
        open = [{ nest: phase.nest, position }];
      } else {
        open = [...nests.map((earlier, i) => ({ ...at(open, i), nest: earlier })), { nest, position }];
      }
      continue;
    }
    close();
    groups.push(phase.kind === "nest" ? { kind: "reduction", nest: phase.nest } : phase);
  }
  close();
  return groups;
}

/** All nests loop over the same extents. */
function mayJoin(group: readonly Nest[], nest: Nest): boolean {
  if (group.length === mostNests) return false;
  return group.every((earlier) => {
    // A thread writes only its own elements, and within a kernel it may read back only those.
    const reads = loadsOf(nest).filter((access) => sameMemory(access.memory, earlier.target.memory));
    const overwrites = [...loadsOf(earlier), earlier.target].some(({ memory }) =>
      sameMemory(memory, nest.target.memory),
    );
    return !overwrites && reads.every((access) => sameElement(earlier, earlier.target, nest, access));
  });
}

function grouped(
  group: readonly { readonly nest: Nest; readonly position: number }[],
  index: number,
  phases: readonly Phase[],
): GroupedNest {
  const { nest } = at(group, index);
  const given = new Map<number, number>();
  for (const [i, instruction] of nest.body.entries()) {
    if (instruction.kind !== "load") continue;
    const source = group.findLastIndex(
      (earlier, k) => k < index && sameMemory(earlier.nest.target.memory, instruction.access.memory),
    );
    if (source >= 0) given.set(i, source);
  }
  const { target } = nest;
  const last = at(group, group.length - 1).position;
  const stores =
    target.memory.kind !== "scratch" || phases.slice(last + 1).some((phase) => readsFirst(phase, target.memory));
  return { nest, given, stores };
}

/**
 * Two values may share scratch, which is written again before it is read. The reader may then be of the other value;
 * storing is harmless.
 */
function readsFirst(phase: Phase, memory: Memory): boolean {
  if (phase.kind === "nest") return loadsOf(phase.nest).some((access) => sameMemory(access.memory, memory));
  const { a, b, bias } = phase;
  return [a, b, bias].some((address) => address !== null && sameMemory(address.memory, memory));
}

function sameElement(earlier: Nest, stored: Access, nest: Nest, read: Access): boolean {
  return stored.dtype === read.dtype && positionKey(earlier, stored) === positionKey(nest, read);
}

/**
 * The offset in terms of loop positions, which makes nests with different atoms comparable; "" if it contains a
 * division.
 */
function positionKey({ loops, atoms }: Nest, { offset }: Access): string {
  const positions = new Map(loops.map(({ atom }, position) => [atom, position]));
  const terms = offset.terms.map(({ atom, coefficient }) => ({ atom: positions.get(atom) ?? -1, coefficient }));
  if (terms.some(({ atom }) => atom < 0)) return `divided ${JSON.stringify(atoms)}${affineKey(offset)}`;
  return affineKey({ constant: offset.constant, terms: terms.toSorted((a, b) => a.atom - b.atom) });
}

function loadsOf(nest: Nest): readonly Access[] {
  return nest.body.flatMap((instruction) => (instruction.kind === "load" ? [instruction.access] : []));
}

function sameMemory(a: Memory, b: Memory): boolean {
  return memoryKey(a) === memoryKey(b);
}

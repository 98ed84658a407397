/** What the nests of one kernel read of each other, and which of their results stay in registers. */
import { affineKey } from "../../../../kernels/nests/affine.ts";
import { loadsOf, type Access, type NestMemory, type Nest } from "../../../../kernels/nests/nest.ts";
import type { Phase } from "../../../../kernels/phase.ts";
import { memoryKey } from "../kernel-source.ts";

/**
 * Whether a nest may follow `earlier` ones in a kernel: all loop over the same extents. A thread writes only its own
 * elements, and within a kernel it may read back only those. Nests that write the same memory write boxes of one value,
 * which share no element.
 */
export function mayFollow(earlier: readonly Nest[], nest: Nest): boolean {
  return earlier.every((each) => {
    const reads = loadsOf(nest).filter((access) => sameMemory(access.memory, each.target.memory));
    const overwrites = loadsOf(each).some(({ memory }) => sameMemory(memory, nest.target.memory));
    // An index is known before the nests of the group are computed.
    if (reads.length > 0 && nest.atoms.some(({ kind }) => kind === "loaded")) return false;
    return !overwrites && reads.every((access) => sameElement(each, each.target, nest, access));
  });
}

/** The position of the last nest before `index` that wrote what the load reads; -1 if none did. */
export function nestSource(nests: readonly Nest[], index: number, access: Access): number {
  return nests.findLastIndex((earlier, k) => k < index && sameMemory(earlier.target.memory, access.memory));
}

/** Whether the result of a nest goes to memory: it is an output, or a phase of `later` reads it. */
export function isStored({ target }: Nest, later: readonly Phase[]): boolean {
  return target.memory.kind !== "scratch" || later.some((phase) => readsMemory(phase, target.memory));
}

function readsMemory(phase: Phase, memory: NestMemory): boolean {
  if (phase.kind === "nest") {
    const { ordered, target } = phase.nest;
    const reads = ordered?.kind === "scatter" ? [...loadsOf(phase.nest), target] : loadsOf(phase.nest);
    return reads.some((access) => sameMemory(access.memory, memory));
  }
  const { a, b, bias } = phase;
  return [a, b, bias].some((address) => address !== null && sameMemory(address.memory, memory));
}

function sameElement(earlier: Nest, stored: Access, nest: Nest, read: Access): boolean {
  return stored.dtype === read.dtype && positionKey(earlier, stored) === positionKey(nest, read);
}

/**
 * The offset in terms of loop positions, which makes nests with different atoms comparable; with the atoms if it
 * contains a division.
 */
export function positionKey({ loops, atoms }: Nest, { offset }: Access): string {
  const positions = new Map(loops.map(({ atom }, position) => [atom, position]));
  const terms = offset.terms.map(({ atom, coefficient }) => ({ atom: positions.get(atom) ?? -1, coefficient }));
  if (terms.some(({ atom }) => atom < 0)) return `divided ${JSON.stringify(atoms)}${affineKey(offset)}`;
  return affineKey({ constant: offset.constant, terms: terms.toSorted((a, b) => a.atom - b.atom) });
}

function sameMemory(a: NestMemory, b: NestMemory): boolean {
  return memoryKey(a) === memoryKey(b);
}

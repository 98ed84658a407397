/**
 * Lets values of a unit share scratch: space is free after the last phase that reads it. Before this, every value has a
 * unique offset, which identifies it. Afterwards offsets overlap where lifetimes do not, by first fit in the order of
 * the phases.
 */
import type { Instruction, Memory, Nest } from "./nest.ts";
import type { Phase } from "../phase.ts";

export interface SharedScratch {
  readonly phases: readonly Phase[];
  readonly bytes: number;
}

/** The range of phases that use a value. The first phase writes it. */
interface Lifetime {
  readonly first: number;
  readonly last: number;
}

interface Place {
  readonly offset: number;
  readonly end: number;
  readonly last: number;
}

/** `sizes` maps the offset of each value to its aligned bytes. */
export function shareScratch(phases: readonly Phase[], sizes: ReadonlyMap<number, number>): SharedScratch {
  const { move, bytes } = placeScratch(phases.map(memoriesOf), sizes);
  return { phases: phases.map((phase) => movedPhase(phase, move)), bytes };
}

export interface ScratchPlaces {
  /** Where memory lies; other memory than scratch stays. */
  readonly move: (memory: Memory) => Memory;
  readonly bytes: number;
}

/** `uses` has the memory that each step uses, in order. Values that one step uses do not overlap. */
export function placeScratch(uses: readonly (readonly Memory[])[], sizes: ReadonlyMap<number, number>): ScratchPlaces {
  const lifetimes = lifetimesOf(uses);
  const offsets = new Map<number, number>();
  let live: readonly Place[] = [];
  let bytes = 0;
  for (const [name, { first, last }] of lifetimes) {
    live = live.filter((place) => place.last >= first);
    const size = sizes.get(name) ?? 0;
    const offset = firstGap(live, size);
    live = [...live, { offset, end: offset + size, last }].toSorted((a, b) => a.offset - b.offset);
    bytes = Math.max(bytes, offset + size);
    offsets.set(name, offset);
  }
  const move = (memory: Memory): Memory =>
    memory.kind === "scratch" ? { kind: "scratch", offset: offsets.get(memory.offset) ?? 0 } : memory;
  return { move, bytes };
}

/** In order of first use. */
function lifetimesOf(uses: readonly (readonly Memory[])[]): ReadonlyMap<number, Lifetime> {
  const lifetimes = new Map<number, Lifetime>();
  for (const [i, memories] of uses.entries()) {
    for (const memory of memories) {
      if (memory.kind !== "scratch") continue;
      lifetimes.set(memory.offset, { first: lifetimes.get(memory.offset)?.first ?? i, last: i });
    }
  }
  return lifetimes;
}

/** The lowest offset with `size` free bytes. */
function firstGap(live: readonly Place[], size: number): number {
  let offset = 0;
  for (const place of live) {
    if (place.offset - offset >= size) return offset;
    offset = Math.max(offset, place.end);
  }
  return offset;
}

export function memoriesOf(phase: Phase): readonly Memory[] {
  if (phase.kind === "contraction") {
    const { a, b, bias, c } = phase;
    return [a, b, ...(bias === null ? [] : [bias]), c].map(({ memory }) => memory);
  }
  const { body, target } = phase.nest;
  const loads = body.flatMap((instruction) => (instruction.kind === "load" ? [instruction.access.memory] : []));
  return [...loads, target.memory];
}

export function movedPhase<P extends Phase>(phase: P, move: ScratchPlaces["move"]): P;
export function movedPhase(phase: Phase, move: ScratchPlaces["move"]): Phase {
  const inMemory = <T extends { readonly memory: Memory }>(item: T): T => ({ ...item, memory: move(item.memory) });
  if (phase.kind === "nest") return { ...phase, nest: movedNest(phase.nest, move) };
  const { a, b, bias, c } = phase;
  return { ...phase, a: inMemory(a), b: inMemory(b), bias: bias && inMemory(bias), c: inMemory(c) };
}

export function movedNest(nest: Nest, move: ScratchPlaces["move"]): Nest {
  const body = nest.body.map((instruction): Instruction => {
    if (instruction.kind !== "load") return instruction;
    const { access } = instruction;
    return { ...instruction, access: { ...access, memory: move(access.memory) } };
  });
  return { ...nest, body, target: { ...nest.target, memory: move(nest.target.memory) } };
}

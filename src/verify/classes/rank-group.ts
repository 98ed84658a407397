/**
 * Groups of permutations of ranks that act freely: only the identity leaves a rank in its place. The orbits are the
 * classes of ranks. Each has as many ranks as the group has elements, and its lowest rank represents it.
 */
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";

/** By rank: the rank to which it goes. */
export type RankPermutation = Uint16Array;

export interface RankGroup {
  readonly generators: readonly RankPermutation[];
  /** The identity first. */
  readonly elements: readonly RankPermutation[];
  /** By element: its inverse. */
  readonly inverse: readonly number[];
  /** By rank: the representative of its class, and the element that takes the representative to it. */
  readonly representative: Int32Array;
  readonly elementTo: Int32Array;
}

/** The ranks that stand for their classes. */
export function representativesOf({ representative }: RankGroup): readonly number[] {
  return [...new Set(representative)];
}

export function identityGroup(rankCount: number): RankGroup {
  return groupOf([Uint16Array.from({ length: rankCount }, (_, rank) => rank)], []);
}

/** The group that these generate together with `group`; null if it does not act freely. */
export function withGenerator(group: RankGroup, generator: RankPermutation): RankGroup | null {
  const rankCount = generator.length;
  const generators = [...group.generators, generator];
  const all = [...group.elements];
  // In a free action the image of rank 0 determines the element.
  const byImage = new Map(all.map((element) => [at(element, 0), element]));
  for (const element of all) {
    for (const step of generators) {
      const next = element.map((rank) => at(step, rank));
      const known = byImage.get(at(next, 0));
      if (known === undefined) {
        if (all.length === rankCount) return null;
        byImage.set(at(next, 0), next);
        all.push(next);
      } else if (next.some((rank, from) => rank !== known[from])) return null;
    }
  }
  const isFree = all.slice(1).every((element) => element.every((to, from) => to !== from));
  return isFree ? groupOf(all, generators) : null;
}

/** Whether an element takes every rank where `permutation` takes it. */
export function contains({ elements }: RankGroup, permutation: RankPermutation): boolean {
  return elements.some((element) => element.every((to, from) => to === permutation[from]));
}

function groupOf(elements: readonly RankPermutation[], generators: readonly RankPermutation[]): RankGroup {
  const rankCount = at(elements, 0).length;
  const representative = new Int32Array(rankCount).fill(-1);
  const elementTo = new Int32Array(rankCount);
  for (let rank = 0; rank < rankCount; rank++) {
    if (representative[rank] !== -1) continue;
    for (const [i, element] of elements.entries()) {
      representative[at(element, rank)] = rank;
      elementTo[at(element, rank)] = i;
    }
  }
  const byImage = new Map(elements.map((element, i) => [at(element, 0), i]));
  const inverse = elements.map((element) => byImage.get(element.indexOf(0)) ?? 0);
  return { generators, elements, inverse, representative, elementTo };
}

/**
 * Rotations along one dimension of a mesh of consecutive ranks: within blocks of `block` ranks, each goes `step` ranks
 * on. The rotation of all ranks by one comes first.
 */
export function* rotations(rankCount: number): Generator<RankPermutation> {
  const divisors = Array.from({ length: rankCount }, (_, i) => i + 1).filter((n) => rankCount % n === 0);
  for (const step of divisors) {
    for (const block of divisors.toReversed()) {
      if (block <= step || block % step !== 0) continue;
      yield Uint16Array.from({ length: rankCount }, (_, rank) => {
        const first = rank - (rank % block);
        return first + ((rank - first + step) % block);
      });
    }
  }
}

// Rotations along a mesh whose devices are in any order, read off the Program. A rank's partners are the others in the
// order in which its list first signals them, sends to them or gathers with them. If the ranks are alike, going from
// each rank to its n-th partner is a rotation of the mesh.

/** Further partners are sums of the first ones in all programs that lowering makes. */
const mostPartners = 4;

export function* meshRotations(program: Program): Generator<RankPermutation> {
  const partners = program.ranks.map(({ rank, commands }) => partnersOf(program, rank, commands));
  for (let number = 0; number < mostPartners; number++) {
    const to = partners.map((own) => own[number] ?? -1);
    if (new Set(to).size === to.length && !to.includes(-1)) yield Uint16Array.from(to);
  }
}

/** The first other ranks that the rank signals or sends to, or that follow it in the team of a collective. */
function partnersOf({ slots }: Program, rank: number, commands: readonly Command[]): readonly number[] {
  const found = new Set<number>();
  for (const command of commands) {
    if (command.kind === "signal") found.add(at(slots, command.slot).waiter);
    if (command.kind === "transfer") {
      const { operation } = command;
      if (operation.kind === "collective") {
        found.add(at(operation.team, (operation.team.indexOf(rank) + 1) % operation.team.length));
      } else for (const { type, peer } of operation.ops) if (type === "send") found.add(peer);
    }
    found.delete(rank);
    if (found.size === mostPartners) break;
  }
  return [...found];
}

/**
 * Transfers in a sweep: a member completes when all its peers have arrived, and then knows what its sources knew when
 * they arrived. If the members of a collective all need each other's data, all know the same afterwards and share one
 * clock vector.
 */
import { at, invariant } from "../../support/invariant.ts";
import type { Clocks, Snapshot } from "./clocks.ts";
import type { Graph } from "./graph.ts";

export interface Arrivals {
  /** A run begins. */
  begin(): void;
  hasArrived(member: number): boolean;
  isComplete(member: number): boolean;
  /** Returns the chains of members that can now continue. `position` is the transfer's. */
  arrive(member: number, chain: number, position: number): readonly number[];
}

export function createArrivals({ members, chainOf }: Graph, clocks: Clocks): Arrivals {
  const { count, transfer, first, partners, sources, node } = members;
  const arrived = new Uint8Array(count);
  const complete = new Uint8Array(count);
  const missing = new Int32Array(count);
  const started = Array.from({ length: count }, (): Snapshot | undefined => undefined);
  const readers = readersOf(sources, count);
  /** For collectives: how many members have arrived. */
  const present = new Int32Array(first.length);
  const chainOfMember = (member: number): number => at(chainOf, at(node, member));
  const takeFrom = (member: number, chain: number, from: readonly number[]): void => {
    for (const source of from) {
      const snapshot = started[source];
      invariant(snapshot !== undefined, "a source has arrived before what needs it completes", { member, source });
      clocks.join(chain, snapshot);
    }
  };
  const completeAll = (begin: number, end: number): readonly number[] => {
    const chains: number[] = [];
    for (let member = begin; member < end; member++) {
      complete[member] = 1;
      chains.push(chainOfMember(member));
    }
    if (sources[begin] === null) clocks.unite(started.slice(begin, end).filter((snapshot) => snapshot !== undefined));
    for (let member = begin; member < end; member++) takeFrom(member, chainOfMember(member), sources[member] ?? []);
    return chains;
  };
  return {
    begin: () => {
      arrived.fill(0);
      complete.fill(0);
      present.fill(0);
      for (let member = 0; member < count; member++) missing[member] = partners[member]?.length ?? 0;
    },
    hasArrived: (member) => arrived[member] === 1,
    isComplete: (member) => complete[member] === 1,
    arrive: (member, chain, position) => {
      arrived[member] = 1;
      // What a member knows when it starts; it has not completed itself.
      const reads = sources[member] === null ? 1 : at(readers, member);
      if (reads > 0) started[member] = clocks.snapshot(chain, position - 1, reads);
      const meets = partners[member] ?? null;
      if (meets === null) {
        const id = at(transfer, member);
        const here = at(present, id) + 1;
        present[id] = here;
        const [begin, end] = [at(first, id), at(first, id + 1)];
        return here < end - begin ? [] : completeAll(begin, end);
      }
      const chains: number[] = [];
      const meet = (one: number): void => {
        if (at(missing, one) > 0 || complete[one] === 1 || arrived[one] === 0) return;
        complete[one] = 1;
        takeFrom(one, chainOfMember(one), sources[one] ?? []);
        chains.push(chainOfMember(one));
      };
      for (const partner of meets) missing[partner] = at(missing, partner) - 1;
      for (const partner of meets) meet(partner);
      meet(member);
      return chains;
    },
  };
}

/** How many members need the data of each. */
function readersOf(sources: readonly (readonly number[] | null)[], count: number): Int32Array {
  const readers = new Int32Array(count);
  for (const needed of sources) for (const source of needed ?? []) readers[source] = at(readers, source) + 1;
  return readers;
}

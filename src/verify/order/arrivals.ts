/**
 * Transfers in a sweep. A participant completes when all its peers have arrived, and then knows what its sources knew
 * when they arrived. If all participants of a collective need each other's data, all know the same afterwards and share
 * one clock vector.
 */
import { at, invariant } from "../../support/invariant.ts";
import type { Clocks, Snapshot } from "./clocks.ts";
import type { Graph } from "./graph.ts";

export interface Arrivals {
  /** A run begins. */
  begin(): void;
  hasArrived(participant: number): boolean;
  isComplete(participant: number): boolean;
  /** Returns the chains of participants that can now continue. `position` is the transfer's. */
  arrive(participant: number, chain: number, position: number): readonly number[];
}

export function createArrivals({ participants, chainOf }: Graph, clocks: Clocks): Arrivals {
  const { count, transfer, first, peers, sources, node } = participants;
  const arrived = new Uint8Array(count);
  const complete = new Uint8Array(count);
  const missing = new Int32Array(count);
  const started = Array.from({ length: count }, (): Snapshot | undefined => undefined);
  const readers = readersOf(sources, count);
  /** For collectives: the number of participants that have arrived. */
  const present = new Int32Array(first.length);
  const chainOfParticipant = (participant: number): number => at(chainOf, at(node, participant));
  const takeFrom = (participant: number, chain: number, from: readonly number[]): void => {
    for (const source of from) {
      const snapshot = started[source];
      invariant(snapshot !== undefined, "a source has arrived before what needs it completes", { participant, source });
      clocks.join(chain, snapshot);
    }
  };
  const completeAll = (begin: number, end: number): readonly number[] => {
    const chains: number[] = [];
    for (let participant = begin; participant < end; participant++) {
      complete[participant] = 1;
      chains.push(chainOfParticipant(participant));
    }
    if (sources[begin] === null) clocks.unite(started.slice(begin, end).filter((snapshot) => snapshot !== undefined));
    for (let participant = begin; participant < end; participant++)
      takeFrom(participant, chainOfParticipant(participant), sources[participant] ?? []);
    return chains;
  };
  return {
    begin: () => {
      arrived.fill(0);
      complete.fill(0);
      present.fill(0);
      for (let participant = 0; participant < count; participant++)
        missing[participant] = peers[participant]?.length ?? 0;
    },
    hasArrived: (participant) => arrived[participant] === 1,
    isComplete: (participant) => complete[participant] === 1,
    arrive: (participant, chain, position) => {
      arrived[participant] = 1;
      // The participant's knowledge at its start, which excludes its own completion.
      const reads = sources[participant] === null ? 1 : at(readers, participant);
      if (reads > 0) started[participant] = clocks.snapshot(chain, position - 1, reads);
      const awaited = peers[participant] ?? null;
      if (awaited === null) {
        const id = at(transfer, participant);
        const here = at(present, id) + 1;
        present[id] = here;
        const [begin, end] = [at(first, id), at(first, id + 1)];
        return here < end - begin ? [] : completeAll(begin, end);
      }
      const chains: number[] = [];
      const completeIfReady = (one: number): void => {
        if (at(missing, one) > 0 || complete[one] === 1 || arrived[one] === 0) return;
        complete[one] = 1;
        takeFrom(one, chainOfParticipant(one), sources[one] ?? []);
        chains.push(chainOfParticipant(one));
      };
      for (const peer of awaited) missing[peer] = at(missing, peer) - 1;
      for (const peer of awaited) completeIfReady(peer);
      completeIfReady(participant);
      return chains;
    },
  };
}

/** The number of participants that need the data of each participant. */
function readersOf(sources: readonly (readonly number[] | null)[], count: number): Int32Array {
  const readers = new Int32Array(count);
  for (const needed of sources) for (const source of needed ?? []) readers[source] = at(readers, source) + 1;
  return readers;
}

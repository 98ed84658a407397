/**
 * Transfers in a sweep over classes. A participant arrives when its representative does. What completes it, and whose
 * knowledge it then has, is the same as in order/arrivals.ts.
 */
import { at } from "../../support/invariant.ts";
import type { ClassClocks, ClassSnapshot } from "./class-clocks.ts";
import type { ClassGraph } from "./class-graph.ts";

export interface ClassArrivals {
  /** A run begins. */
  begin(): void;
  hasArrived(node: number): boolean;
  /** `snapshot`: what the chain knew at the start. */
  arrive(node: number, snapshot: ClassSnapshot): void;
  /** Whether all that the node waits for have arrived; its chain then knows what its sources knew. */
  complete(node: number, chain: number): boolean;
}

/** A participant: the representative's node, and the element that takes the representative to the rank. */
interface Place {
  readonly node: number;
  readonly element: number;
}

interface Needs {
  readonly peers: readonly Place[];
  readonly sources: readonly Place[];
  /** Nodes of which all ranks of the class are sources. */
  readonly whole: readonly number[];
}

type Nodes = Pick<ClassGraph, "program" | "group" | "firstNode" | "participants" | "argument">;

/** By node, on demand. */
export function needsOf({ program, group, firstNode, participants, argument }: Nodes): (node: number) => Needs {
  const known = new Map<number, Needs>();
  const { transfer, first, peers, sources } = participants;
  const placeOf = (participant: number): Place => {
    const id = at(transfer, participant);
    const { rank, command } = at(at(program.transfers, id).participants, participant - at(first, id));
    const base = at(firstNode, at(group.representative, rank));
    return { node: base + 1 + command, element: at(group.elementTo, rank) };
  };
  const placesOf = (own: number, which: readonly number[] | null): readonly Place[] => {
    if (which !== null) return which.map(placeOf);
    const [begin, end] = [at(first, at(transfer, own)), at(first, at(transfer, own) + 1)];
    return Array.from({ length: end - begin }, (_, i) => placeOf(begin + i));
  };
  return (node) => {
    const before = known.get(node);
    if (before !== undefined) return before;
    const own = at(argument, node);
    const from = placesOf(own, sources[own] ?? null);
    const counts = new Map<number, number>();
    for (const place of from) counts.set(place.node, (counts.get(place.node) ?? 0) + 1);
    const whole = [...counts].flatMap(([each, count]) => (count === group.elements.length ? [each] : []));
    const needs: Needs = {
      peers: distinctNodes([...placesOf(own, peers[own] ?? null), { node, element: 0 }]),
      sources: from.filter((place) => !whole.includes(place.node)),
      whole,
    };
    known.set(node, needs);
    return needs;
  };
}

function distinctNodes(places: readonly Place[]): readonly Place[] {
  const nodes = new Set<number>();
  return places.filter(({ node }) => {
    const isNew = !nodes.has(node);
    nodes.add(node);
    return isNew;
  });
}

export function arrivalsOf(graph: Nodes, clocks: ClassClocks): ClassArrivals {
  const needs = needsOf(graph);
  const started = new Map<number, ClassSnapshot>();
  return {
    begin: () => started.clear(),
    hasArrived: (node) => started.has(node),
    arrive: (node, snapshot) => {
      started.set(node, snapshot);
    },
    complete: (node, chain) => {
      const { peers, sources, whole } = needs(node);
      if (!peers.every((peer) => started.has(peer.node))) return false;
      for (const source of whole) {
        const snapshot = started.get(source);
        if (snapshot !== undefined) clocks.joinAll(chain, snapshot);
      }
      for (const source of sources) {
        const snapshot = started.get(source.node);
        if (snapshot !== undefined) clocks.join(chain, snapshot, source.element);
      }
      return true;
    },
  };
}

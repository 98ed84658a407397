/**
 * Random graphs: groups have one type and no cycle, respect edges that forbid fusion, and do not depend on the order of
 * the nodes.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FusionEdge, typedFusion } from "../../src/passes/stream-loops/group/group-loops.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";
import { draws } from "../support/suite.ts";

interface Graph {
  readonly edges: readonly (readonly FusionEdge[])[];
  readonly types: readonly (string | null)[];
}

function graphs(types: readonly (string | null)[]): fc.Arbitrary<Graph> {
  const node = fc.record({
    type: fc.constantFrom(...types),
    before: fc.array(fc.record({ back: fc.integer({ min: 1, max: 6 }), fusible: fc.boolean() }), { maxLength: 3 }),
  });
  return fc.array(node, { maxLength: 24 }).map((nodes) => ({
    types: nodes.map(({ type }) => type),
    edges: nodes.map(({ before }, i) => {
      const known = new Map(before.flatMap(({ back, fusible }) => (back <= i ? [[i - back, fusible] as const] : [])));
      return [...known].map(([from, fusible]) => ({ from, fusible }));
    }),
  }));
}

function groupOfNode(groups: readonly (readonly number[])[]): number[] {
  const of: number[] = [];
  groups.forEach((nodes, group) => nodes.forEach((node) => (of[node] = group)));
  return of;
}

/** The nodes in another order that the edges allow; `newOf[i]` is the new number of node i. */
function shuffled({ edges, types }: Graph, random: Random): { graph: Graph; newOf: readonly number[] } {
  const left = new Set(types.keys());
  const newOf: number[] = [];
  const order: number[] = [];
  while (left.size > 0) {
    const ready = [...left].filter((node) => at(edges, node).every(({ from }) => !left.has(from)));
    const next = at(ready, random.integer(ready.length));
    left.delete(next);
    newOf[next] = order.length;
    order.push(next);
  }
  return {
    newOf,
    graph: {
      types: order.map((node) => types[node] ?? null),
      edges: order.map((node) => at(edges, node).map(({ from, fusible }) => ({ from: at(newOf, from), fusible }))),
    },
  };
}

/** The groups as text that does not depend on their order. */
function partition(groups: readonly (readonly number[])[], nameOf: (node: number) => number): string {
  return groups
    .map((nodes) => nodes.map(nameOf).sort((a, b) => a - b))
    .sort((a, b) => at(a, 0) - at(b, 0))
    .map((nodes) => nodes.join(" "))
    .join(" | ");
}

describe("typed fusion", () => {
  it("makes valid groups in an order that the edges allow", () => {
    fc.assert(
      fc.property(graphs([null, "a", "b", "c"]), ({ edges, types }) => {
        const groups = typedFusion(edges, types);
        const of = groupOfNode(groups);
        expect(groups.flat().sort((a, b) => a - b)).toEqual([...types.keys()]);
        for (const nodes of groups) {
          expect(new Set(nodes.map((node) => types[node])).size).toBe(1);
          if (types[at(nodes, 0)] === null) expect(nodes).toHaveLength(1);
          expect(nodes).toEqual([...nodes].sort((a, b) => a - b));
        }
        edges.forEach((before, node) => {
          for (const { from, fusible } of before) {
            if (at(of, from) === at(of, node)) expect(fusible).toBe(true);
            else expect(at(of, from)).toBeLessThan(at(of, node));
          }
        });
      }),
      draws({ quick: 300, long: 2000 }),
    );
  });

  it("gives the same groups in every order of the nodes, for one type", () => {
    fc.assert(
      fc.property(graphs([null, "a"]), fc.nat(), (graph, seed) => {
        const { graph: other, newOf } = shuffled(graph, createRandom(seed));
        const oldOf = new Map(newOf.map((now, node) => [now, node]));
        const expected = partition(typedFusion(graph.edges, graph.types), (node) => node);
        expect(partition(typedFusion(other.edges, other.types), (node) => oldOf.get(node) ?? -1)).toBe(expected);
      }),
      draws({ quick: 300, long: 2000 }),
    );
  });

  it("gives the same groups in every order of the nodes, for types that do not look alike", () => {
    const sizesDiffer = ({ types }: Graph): boolean => {
      const sizes = ["a", "b", "c"].map((type) => types.filter((each) => each === type).length);
      return new Set(sizes).size === sizes.length;
    };
    fc.assert(
      fc.property(graphs([null, "a", "a", "a", "b", "b", "c"]).filter(sizesDiffer), fc.nat(), (graph, seed) => {
        const { graph: other, newOf } = shuffled(graph, createRandom(seed));
        const oldOf = new Map(newOf.map((now, node) => [now, node]));
        const expected = partition(typedFusion(graph.edges, graph.types), (node) => node);
        expect(partition(typedFusion(other.edges, other.types), (node) => oldOf.get(node) ?? -1)).toBe(expected);
      }),
      draws({ quick: 200, long: 1000 }),
    );
  });

  it("makes as few groups of a single type as there can be", () => {
    /** The length of the longest path that has to change its group: no fewer groups are possible. */
    const needed = ({ edges, types }: Graph): number => {
      const depth: number[] = [];
      edges.forEach((before, node) => {
        const isMember = types[node] !== null;
        const via = before.map(({ from, fusible }) => {
          const there = at(depth, from);
          const stays = types[from] !== null && isMember && fusible;
          return isMember && !stays && there > 0 ? there + 1 : there;
        });
        depth.push(Math.max(isMember ? 1 : 0, ...via));
      });
      return Math.max(0, ...depth);
    };
    fc.assert(
      fc.property(graphs([null, "a"]), (graph) => {
        const groups = typedFusion(graph.edges, graph.types);
        expect(groups.filter(([node]) => graph.types[node ?? -1] === "a")).toHaveLength(needed(graph));
      }),
      draws({ quick: 200, long: 1000 }),
    );
  });

  it("keeps the group of the type that appears first where two types exclude each other and look alike", () => {
    // a0 -> b2, b1 -> a3: {a0, a3} needs b1 before it and b2 after it.
    const edges = [[], [], [{ from: 0, fusible: false }], [{ from: 1, fusible: false }]];
    expect(typedFusion(edges, ["a", "b", "b", "a"])).toEqual([[1], [0, 3], [2]]);
  });

  it("is fast on long chains and on many types", () => {
    const count = 20_000;
    const chain = Array.from({ length: count }, (_, i) => (i === 0 ? [] : [{ from: i - 1, fusible: true }]));
    const one = typedFusion(
      chain,
      chain.map(() => "a"),
    );
    expect(one).toHaveLength(1);
    const stretches = typedFusion(
      chain,
      chain.map((_, i) => `type ${Math.floor(i / 10)}`),
    );
    expect(stretches).toHaveLength(count / 10);
    // The last node of the only group needs the whole chain in front of it: no recursion may go that deep.
    const bridged = typedFusion(
      chain.map((before, i) => (i === count - 1 ? before : i === 1 ? [] : before)),
      chain.map((_, i) => (i === 0 || i === count - 1 ? "a" : null)),
    );
    expect(bridged.at(-1)).toEqual([0, count - 1]);
  });
});

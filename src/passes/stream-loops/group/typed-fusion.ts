/**
 * Partitions the nodes of a directed acyclic graph into groups of one type each, so that the groups form no cycle. Two
 * nodes of a type are separate only if an edge requires it or a path between them leaves the type. Each type has as few
 * groups as possible. If groups of two types would each have to contain a predecessor of the other, the type with nodes
 * nearer to the beginning of the graph keeps its group. The order of the nodes decides only between types that look
 * alike.
 *
 * Source: K. Kennedy and K. S. McKinley, "Typed Fusion with Applications to Parallel and Sequential Code Generation"
 * (Rice University, TR93-208). A node's group number is one more than that of the last group of its type that reaches
 * it by a path that must not be fused. Here all types are fused in turn, each within the stretch of the order that
 * holds its nodes. Types in different stretches therefore cost one walk in all.
 */
import { at } from "../../../support/invariant.ts";

export interface Edge {
  readonly from: number;
  /** Whether the two ends may be in one group, if they are of one type. */
  readonly fusible: boolean;
}

/**
 * `edges[i]` are the edges into node i, from nodes before it. `typeOf[i]` is null for a node that is always alone. In
 * the result all edges lead forward, and the order is close to that of the nodes.
 */
export function typedFusion(
  edges: readonly (readonly Edge[])[],
  typeOf: readonly (string | null)[],
): readonly (readonly number[])[] {
  const nodesOf = new Map<string, number[]>();
  typeOf.forEach((type, node) => {
    if (type === null) return;
    const nodes = nodesOf.get(type);
    if (nodes === undefined) nodesOf.set(type, [node]);
    else nodes.push(node);
  });
  const order: (readonly number[])[] = edges.map((_, node) => [node]);
  const positionOf = Int32Array.from(edges, (_, node) => node);
  for (const nodes of byPlace([...nodesOf.values()], edges)) {
    const positions = nodes.map((node) => at(positionOf, node)).sort((a, b) => a - b);
    const first = at(positions, 0);
    const end = at(positions, positions.length - 1) + 1;
    if (end - first === 1) continue;
    const stretch = order.slice(first, end);
    const fused = sorted(contract(stretch, levels(stretch, first, new Set(nodes), edges, positionOf)), edges);
    // The stretch keeps its length: contracted groups leave empty ones at its end.
    stretch.forEach((_, i) => {
      const group = fused[i] ?? [];
      order[first + i] = group;
      for (const node of group) positionOf[node] = first + i;
    });
  }
  const groups = order.filter((group) => group.length > 0).sort((a, b) => at(a, 0) - at(b, 0));
  return sorted(groups, edges);
}

/**
 * Orders types by the positions of their nodes in the graph: early nodes first, then those with long paths to the end.
 */
function byPlace(
  types: readonly (readonly number[])[],
  edges: readonly (readonly Edge[])[],
): readonly (readonly number[])[] {
  if (types.length < 2) return types;
  const count = edges.length;
  const depth = new Int32Array(count);
  const height = new Int32Array(count);
  edges.forEach((before, node) => {
    for (const { from } of before) depth[node] = Math.max(at(depth, node), at(depth, from) + 1);
  });
  for (let node = count - 1; node >= 0; node--) {
    for (const { from } of at(edges, node)) height[from] = Math.max(at(height, from), at(height, node) + 1);
  }
  const place = (node: number): number => at(depth, node) * count + (count - 1 - at(height, node));
  return types
    .map((nodes) => ({ nodes, places: nodes.map(place).sort((a, b) => a - b) }))
    .sort((a, b) => compareLists(a.places, b.places))
    .map(({ nodes }) => nodes);
}

/** Compares lists by their first difference. If one is a prefix of the other, the longer comes first. */
function compareLists(a: readonly number[], b: readonly number[]): number {
  const differing = a.findIndex((value, i) => value !== b[i]);
  if (differing < 0) return b.length - a.length;
  return differing < b.length ? at(a, differing) - at(b, differing) : -1;
}

/** For each position in the stretch, the number of its node's group; 0 for groups of other types. */
function levels(
  stretch: readonly (readonly number[])[],
  first: number,
  members: ReadonlySet<number>,
  edges: readonly (readonly Edge[])[],
  positionOf: Int32Array,
): readonly number[] {
  const own: number[] = [];
  /** For each position, the last group of the type that leads to it. */
  const reached: number[] = [];
  for (const [i, group] of stretch.entries()) {
    const [single] = group;
    const isMember = single !== undefined && members.has(single);
    let last = isMember ? 1 : 0;
    for (const node of group) {
      for (const { from, fusible } of at(edges, node)) {
        const before = at(positionOf, from) - first;
        if (before < 0 || before === i) continue;
        const there = at(reached, before);
        const together = isMember && fusible && members.has(from);
        last = Math.max(last, isMember && !together && there > 0 ? there + 1 : there);
      }
    }
    reached.push(last);
    own.push(isMember ? last : 0);
  }
  return own;
}

function contract(stretch: readonly (readonly number[])[], level: readonly number[]): readonly (readonly number[])[] {
  const groups: number[][] = [];
  const ofLevel = new Map<number, number[]>();
  stretch.forEach((nodes, i) => {
    const own = at(level, i);
    const known = own === 0 ? undefined : ofLevel.get(own);
    if (known !== undefined) {
      known.push(...nodes);
      return;
    }
    const group = [...nodes];
    if (group.length === 0) return;
    groups.push(group);
    if (own !== 0) ofLevel.set(own, group);
  });
  return groups.map((group) => group.sort((a, b) => a - b));
}

/** The groups in an order as close to the given one as the edges allow: each follows its predecessors. */
function sorted(
  groups: readonly (readonly number[])[],
  edges: readonly (readonly Edge[])[],
): readonly (readonly number[])[] {
  const groupOf = new Map<number, number>();
  groups.forEach((nodes, group) => {
    for (const node of nodes) groupOf.set(node, group);
  });
  const result: (readonly number[])[] = [];
  const state = groups.map((): "new" | "open" | "done" => "new");
  // An explicit stack: chains may be longer than the call stack.
  const stack: number[] = [];
  for (const root of groups.keys()) {
    stack.push(root);
    while (stack.length > 0) {
      const group = at(stack, stack.length - 1);
      if (state[group] === "new") {
        state[group] = "open";
        const needed = new Set<number>();
        for (const node of at(groups, group)) {
          for (const { from } of at(edges, node)) {
            const before = groupOf.get(from);
            if (before !== undefined && before !== group && state[before] === "new") needed.add(before);
          }
        }
        stack.push(...[...needed].sort((a, b) => b - a));
      } else {
        stack.pop();
        if (state[group] === "open") result.push(at(groups, group));
        state[group] = "done";
      }
    }
  }
  return result;
}

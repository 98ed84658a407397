/**
 * Decides which ops share a Stream loop. Their axes must have the same index and extent, the loop must read results of
 * the loop only at its own index, and no path between the ops may leave the loop. A statement that neither depends on a
 * loop nor feeds it moves out of the way, so that the grouping does not depend on the order of independent statements:
 *
 *   T1[Stream] = Set(T0); T2 = Set(T5); T3[Stream] = Set(T1)     ->     loop { T1, T3 }; T2
 *
 * Statements that are neither ops nor posts keep their places, and no op moves past them.
 */
import type { HostProgram, Statement } from "../../../host/nodes.ts";
import { statementAccess, isOp, walk } from "../../../host/traverse.ts";
import type { IterDomain, Tensor, TensorId } from "../../../ir/domain.ts";
import { sameScalar } from "../../../ir/scalar/fold.ts";
import { printScalar } from "../../../ir/scalar/scalar.ts";
import { type Chunks, chunksText, sameChunks } from "../../../ir/stream.ts";
import { at, groupedBy, pushTo } from "../../../support/invariant.ts";
import { canRunBeside, type LoopMember, type PeerTeam } from "../loop-member.ts";
import { type AxisClasses, axisClasses } from "./axis-classes.ts";

/** Ops that share a loop, in an order in which they can run. */
export interface StreamLoop {
  readonly kind: "StreamLoop";
  /** The axis that the loop prints: the Stream axis of its first op. */
  readonly over: IterDomain;
  /** How it cuts the axis; null if it runs over the axis's indices. */
  readonly chunks: Chunks | null;
  readonly members: readonly LoopMember[];
  /** The devices that exchange in the loop; null for none. */
  readonly peers: PeerTeam | null;
}

/** `members[i]` is statement i of the program as part of a loop; null for a statement without a Stream axis. */
export function groupIntoLoops(
  program: HostProgram,
  members: readonly (LoopMember | null)[],
): readonly (Statement | StreamLoop)[] {
  // Numbering all axes of a long program takes longer than a region of it.
  if (members.every((member) => member === null)) return program.body;
  const classes = axisClasses(program);
  const ownerOf = viewOwners(program.body);
  const groups: (Statement | StreamLoop)[] = [];
  let start = 0;
  for (const [position, statement] of program.body.entries()) {
    if (isOp(statement) || statement.kind === "PostOnStream") continue;
    groups.push(...groupStretch(program, members, start, position, classes, ownerOf), statement);
    start = position + 1;
  }
  groups.push(...groupStretch(program, members, start, program.body.length, classes, ownerOf));
  return groups;
}

/** Groups the statements `start` .. `end`-1, which are ops and posts. */
function groupStretch(
  { body, tensors }: HostProgram,
  allMembers: readonly (LoopMember | null)[],
  start: number,
  end: number,
  classes: AxisClasses,
  ownerOf: (tensor: TensorId) => TensorId,
): readonly (Statement | StreamLoop)[] {
  const statements = body.slice(start, end);
  const members = allMembers.slice(start, end);
  if (members.every((member) => member === null)) return statements;
  const edges = dependences(statements, ownerOf).map((before, node) =>
    before.map((from): FusionEdge => ({
      from,
      fusible: areFusible(members[from] ?? null, members[node] ?? null, classes),
    })),
  );
  const teams = spreadTeams(members, edges, tensors);
  const types = members.map((member, node) => {
    if (member === null) return null;
    const team = teams[node] ?? null;
    const { counted, chunks } = member;
    const over = `${classes.of(counted)} ${printScalar(counted.extent)} ${chunksText(chunks)}`;
    return team === null ? over : `${over} ${team.type} ${team.pieces} ${team.mesh.toString()}`;
  });
  return typedFusion(edges, types).map((nodes): Statement | StreamLoop => {
    const first = at(nodes, 0);
    const inLoop = nodes.flatMap((node) => members[node] ?? []);
    const [opener] = inLoop;
    if (opener === undefined) return at(statements, first);
    const { stream, chunks } = opener;
    return { kind: "StreamLoop", over: stream, chunks, members: inLoop, peers: teams[first] ?? null };
  });
}

function areFusible(producer: LoopMember | null, consumer: LoopMember | null, classes: AxisClasses): boolean {
  return producer !== null && consumer !== null && fusionObstacle(producer, consumer, classes) === null;
}

/** Why an op may not run in the loop of an earlier one. */
export type FusionObstacle = "axis" | "extent" | "chunks" | "overwrites" | "otherChunk";

/**
 * The first rule by which an op may not run in the loop of an earlier one, the producer; null if it may. It must read
 * the producer's result only at the loop's own index, because other chunks may not exist yet. Extents are compared
 * because a broadcast axis can link axes of different extents. In a hand-built program, an op that overwrites a tensor of
 * the producer must wait for the whole loop.
 */
export function fusionObstacle(
  { counted, chunks, inputs, outputs, made }: LoopMember,
  consumer: LoopMember,
  classes: AxisClasses,
): FusionObstacle | null {
  if (!classes.same(counted, consumer.counted)) return "axis";
  if (!sameScalar(counted.extent, consumer.counted.extent)) return "extent";
  if (!sameChunks(chunks, consumer.chunks)) return "chunks";
  if (consumer.outputs.some((output) => inputs.includes(output) || outputs.includes(output))) return "overwrites";
  const reads = consumer.inputs.flatMap((input, operand) => {
    const output = outputs.indexOf(input);
    return output < 0 ? [] : [{ read: consumer.read[operand] ?? null, made: made[output] ?? null }];
  });
  const isOwn = reads.length > 0 && reads.every((each) => each.made !== null && each.read?.id === each.made.id);
  return isOwn ? null : "otherChunk";
}

/**
 * The team of each op's loop: the team that the op exchanges with, or that of a connected op whose loop it can share.
 * Null for ops that no path connects to an exchange: they run in loops without one.
 */
function spreadTeams(
  members: readonly (LoopMember | null)[],
  edges: readonly (readonly FusionEdge[])[],
  tensors: readonly Tensor[],
): readonly (PeerTeam | null)[] {
  const teams = members.map((member) => member?.peers ?? null);
  const reached = teams.flatMap((team, node) => (team === null ? [] : [node]));
  if (reached.length === 0) return teams;
  const neighbours = members.map((): number[] => []);
  edges.forEach((before, node) => {
    for (const { from, fusible } of before) {
      if (!fusible) continue;
      at(neighbours, node).push(from);
      at(neighbours, from).push(node);
    }
  });
  for (const node of reached) {
    const team = at(teams, node);
    for (const next of at(neighbours, node)) {
      const member = members[next] ?? null;
      if (team === null || member === null || teams[next] !== null) continue;
      if (!canRunBeside(team, member, tensors)) continue;
      teams[next] = team;
      reached.push(next);
    }
  }
  return teams;
}

/** The tensor whose memory a tensor shares. In a hand-built program, a slice shares the memory of its source. */
function viewOwners(body: readonly Statement[]): (tensor: TensorId) => TensorId {
  const viewed = new Map<TensorId, TensorId>();
  for (const statement of walk(body)) {
    if (statement.kind === "HirAliasSelect" || statement.kind === "ShardByStream")
      viewed.set(statement.output, statement.input);
  }
  return (tensor) => {
    let owner = tensor;
    for (let next = viewed.get(owner); next !== undefined; next = viewed.get(owner)) owner = next;
    return owner;
  };
}

/**
 * For each statement, the positions of the statements that it must follow, ascending. Tensors with one owner count as
 * one tensor.
 */
function dependences(
  statements: readonly Statement[],
  ownerOf: (tensor: TensorId) => TensorId,
): readonly (readonly number[])[] {
  const writer = new Map<TensorId, number>();
  const readers = new Map<TensorId, number[]>();
  return statements.map((statement, position) => {
    const before = new Set<number>();
    const { reads, writes } = statementAccess(statement);
    for (const tensor of reads.map(ownerOf)) {
      const written = writer.get(tensor);
      if (written !== undefined) before.add(written);
      pushTo(readers, tensor, position);
    }
    for (const tensor of writes.map(ownerOf)) {
      const written = writer.get(tensor);
      if (written !== undefined) before.add(written);
      for (const reader of readers.get(tensor) ?? []) before.add(reader);
      writer.set(tensor, position);
      readers.set(tensor, []);
    }
    before.delete(position);
    return [...before].sort((a, b) => a - b);
  });
}

// Partitions the nodes of a directed acyclic graph into groups of one type each, so that the groups form no cycle. Two
// nodes of a type are separate only if an edge requires it or a path between them leaves the type. Each type has as few
// groups as possible. If groups of two types would each have to contain a predecessor of the other, the type with nodes
// nearer to the beginning of the graph keeps its group. The order of the nodes decides only between types that look
// alike.
//
// Source: K. Kennedy and K. S. McKinley, "Typed Fusion with Applications to Parallel and Sequential Code Generation"
// (Rice University, TR93-208). A node's group number is one more than that of the last group of its type that reaches
// it by a path that must not be fused. Here all types are fused in turn, each within the stretch of the order that
// holds its nodes. Types in different stretches therefore cost one walk in all.

export interface FusionEdge {
  readonly from: number;
  /** Whether the two ends may be in one group, if they are of one type. */
  readonly fusible: boolean;
}

/**
 * `edges[i]` are the edges into node i, from nodes before it. `typeOf[i]` is null for a node that is always alone. In
 * the result all edges lead forward, and the order is close to that of the nodes.
 */
export function typedFusion(
  edges: readonly (readonly FusionEdge[])[],
  typeOf: readonly (string | null)[],
): readonly (readonly number[])[] {
  const nodesOf = groupedBy(typeOf.keys(), (node) => at(typeOf, node));
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
  edges: readonly (readonly FusionEdge[])[],
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
  edges: readonly (readonly FusionEdge[])[],
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
  edges: readonly (readonly FusionEdge[])[],
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

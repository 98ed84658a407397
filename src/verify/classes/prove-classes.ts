/**
 * Proves a Program correct by one rank of each class (README.md). Says nothing about a Program with a finding or
 * a note, or whose ranks are not alike: then every rank is to be verified.
 */
import { accesses, regionBytes } from "../../commands/region.ts";
import { isWork, type Origin } from "../../commands/command.ts";
import { commandsOfRanks, type Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { at, getOrMake, InvariantError, pushTo } from "../../support/invariant.ts";
import type { OnProgress } from "../../support/progress.ts";
import { allocatedBuffers } from "../check/region-table.ts";
import { spanOf } from "../check/shared-bytes.ts";
import { illegalOverlap, repeatedOutput } from "../check/static-checks.ts";
import { checkRank } from "../check/structure/commands.ts";
import { checkApart, checkTables } from "../check/structure/tables.ts";
import { checkTransfer } from "../check/structure/transfers.ts";
import { nodeKinds } from "../order/graph.ts";
import { createParticipants } from "../order/slots.ts";
import { type Budget, createOwnPositions, mapsToItself } from "./automorphism.ts";
import { type ClassGraph, createClassGraph } from "./class-graph.ts";
import { advanceAll, needsOf, sweepClasses, type ClassObserver } from "./class-sweep.ts";
import type { Mapped } from "./moved-regions.ts";
import { createRankBuffers, type RankBuffers } from "./rank-buffers.ts";
import {
  contains,
  identityGroup,
  meshRotations,
  type RankPermutation,
  type RankGroup,
  representativesOf,
  rotations,
  withGenerator,
} from "./rank-group.ts";
import {
  ends,
  isSynchronization,
  type Iteration,
  neighboursOnOtherStreams,
  statementKey,
  type WantedNotes,
} from "../explain/notes.ts";
import type { ClockRows } from "../order/known.ts";

/** The size of a correct Program without notes. */
export interface ClassProof {
  readonly classes: number;
  readonly streams: number;
  readonly regions: number;
}

/** The elements of a group of as many ranks take 32 MiB. */
const mostRanks = 4096;

/** Null if the proof by class finds nothing out, or if there are fewer ranks than `leastRanks`. */
export function proveByClasses(
  program: Program,
  notes: WantedNotes,
  leastRanks = 2,
  onProgress?: OnProgress,
): ClassProof | null {
  return ifWellFormed(() => {
    if (program.ranks.length < leastRanks || program.ranks.length > mostRanks) return null;
    const buffers = createRankBuffers(program);
    checkTables(program, (rank) => buffers.likeRank[rank] === rank);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return proveChecked(mappedOf(program, buffers), notes, onProgress);
  });
}

/** The symmetries of a Program; null if its ranks are not alike. */
export function symmetryOf(program: Program): RankGroup | null {
  if (program.ranks.length > mostRanks) return null;
  return ifWellFormed(() => {
    const group = knownGroupOf(program, () => mappedOf(program, createRankBuffers(program)));
    return group.elements.length === 1 ? null : group;
  });
}

/** Null for a malformed Program. */
function ifWellFormed<T>(find: () => T | null): T | null {
  try {
    return find();
  } catch (error) {
    // A malformed Program. The proof of every rank says what is wrong.
    if (error instanceof DiagnosticError || error instanceof TypeError || error instanceof RangeError) return null;
    if (error instanceof InvariantError) return null;
    throw error;
  }
}

function proveChecked(mapped: Mapped, notes: WantedNotes, onProgress?: OnProgress): ClassProof | null {
  if (mapped.program.ranks.some(({ streams }) => streams.some(({ role }) => role === "pair"))) return null;
  onProgress?.("verifying: comparing the ranks");
  const group = knownGroupOf(mapped.program, () => mapped);
  return group.elements.length === 1 ? null : proveClasses(mapped, group, notes, onProgress);
}

function mappedOf(program: Program, buffers: RankBuffers): Mapped {
  const { ranks } = program;
  const nodeBase = new Int32Array(ranks.length + 1);
  for (const [rank, { origins }] of ranks.entries()) nodeBase[rank + 1] = at(nodeBase, rank) + origins.length + 2;
  const participants = createParticipants(program, nodeBase);
  return { program, buffers, ownPositions: createOwnPositions(program, buffers), participants, nodeBase };
}

/** By Program: a schedule asks before the proof does. */
const knownGroups = new WeakMap<Program, RankGroup>();

function knownGroupOf(program: Program, mapped: () => Mapped): RankGroup {
  return getOrMake(knownGroups, program, () => groupOf(mapped()));
}

/**
 * The group that the rotations generate which map the Program to itself. The search ends when the rotations that do not
 * have compared as many commands as the Program has.
 */
function groupOf(mapped: Mapped): RankGroup {
  const { ranks } = mapped.program;
  const size = commandsOfRanks(ranks);
  let left = size;
  let group = identityGroup(ranks.length);
  for (const rotation of candidates(mapped.program)) {
    if (group.elements.length === ranks.length || left <= 0) break;
    if (contains(group, rotation)) continue;
    const larger = withGenerator(group, rotation);
    if (larger === null) continue;
    const budget: Budget = { left: size };
    if (mapsToItself(mapped, rotation, budget)) group = larger;
    else left -= size - budget.left;
  }
  return group;
}

/** Of consecutive ranks first: those need no look at the lists. */
function* candidates(program: Program): Generator<RankPermutation> {
  yield* rotations(program.ranks.length);
  yield* meshRotations(program);
}

function proveClasses(
  mapped: Mapped,
  group: RankGroup,
  notes: WantedNotes,
  onProgress?: OnProgress,
): ClassProof | null {
  const { program, participants, nodeBase } = mapped;
  // What the lists of the representatives allocate, and the buffers of these ranks, are as in the other ranks.
  const ranks = representativesOf(group).map((rank) => at(program.ranks, rank));
  const allocated = allocatedBuffers({ ...program, ranks });
  checkApart(
    program.buffers.filter(({ rank }) => group.representative[rank] === rank),
    allocated,
  );
  const graph = createClassGraph(program, group, participants, nodeBase);
  const { representatives, nodesOf, parts } = graph;
  for (const rank of representatives) checkRank(program, at(program.ranks, rank));
  const observer = notes === false ? withoutNotes : createClassNotes(graph, notes);
  if (!representatives.every((rank) => operandsFit(program, rank))) return null;
  if (!endsInOneQueue(graph) || !sweepClasses(graph, observer, allocated, onProgress) || observer.mayHaveNotes())
    return null;
  const size = group.elements.length;
  return {
    classes: representatives.length,
    streams: nodesOf.size * size,
    regions: parts.table.regions.length * size,
  };
}

// The operands of one rank's commands: inside their buffers, and sharing bytes only where the command allows it.

function operandsFit(program: Program, rank: number): boolean {
  return at(program.ranks, rank).commands.every((command, index) => {
    if (!isWork(command.kind)) return true;
    if (repeatedOutput(program, command) !== null) return false;
    const { reads, writes } = accesses(program, rank, index);
    const touched = [...reads, ...writes].filter((region) => regionBytes(region) > 0);
    const areInside = touched.every(
      (region) => region.offset >= 0 && region.offset + spanOf(region) <= at(program.buffers, region.buffer).bytes,
    );
    const shares = touched.some(({ buffer }, i) => touched.some((other, j) => j < i && other.buffer === buffer));
    return areInside && (!shares || illegalOverlap(program, rank, index) === null);
  });
}

// What a list may lack apart from the sweep: events that an earlier command records, and progress with one queue for
// the whole list of each rank.

/** Whether the lists of all representatives end if each has one queue. Each event must be recorded earlier in its list. */
function endsInOneQueue(graph: ClassGraph): boolean {
  const { kind, argument, eventCount, representatives, firstNode, program } = graph;
  const recorded = new Uint8Array(eventCount);
  const signals = new Map<number, number>();
  const arrived = new Set<number>();
  const needs = needsOf(graph);
  const queues = representatives.map((rank) => {
    const first = at(firstNode, rank);
    return Int32Array.from({ length: at(program.ranks, rank).commands.length + 2 }, (_, i) => first + i);
  });
  return advanceAll(queues, (node) => {
    const what = at(argument, node);
    switch (kind[node]) {
      case nodeKinds.record: {
        const isFirst = recorded[what] === 0;
        recorded[what] = 1;
        return isFirst;
      }
      case nodeKinds.wait:
        return recorded[what] === 1;
      case nodeKinds.signal:
        signals.set(what, (signals.get(what) ?? 0) + 1);
        return true;
      case nodeKinds.take: {
        const count = signals.get(what) ?? 0;
        if (count > 0) signals.set(what, count - 1);
        return count > 0;
      }
      case nodeKinds.transfer:
        arrived.add(node);
        return needs(node).peers.every((peer) => arrived.has(peer.node));
      default:
        return true;
    }
  });
}

interface ClassNotes extends ClassObserver {
  /** After the sweep. */
  mayHaveNotes(): boolean;
}

const withoutNotes: ClassNotes = { starts: () => {}, waits: () => {}, mayHaveNotes: () => false };

/**
 * Whether a correct Program may get notes (explain/notes.ts): a needless wait, iterations in series, a buffer that some
 * ranks keep. Which notes, and where, only the proof of every rank says.
 */
function createClassNotes(graph: ClassGraph, wanted: WantedNotes): ClassNotes {
  const { nodesOf, chainOf, rankOf, firstNode, program } = graph;
  const position = new Int32Array(graph.nodeCount);
  for (const nodes of nodesOf.values()) for (const [i, node] of nodes.entries()) position[node] = i + 1;
  const workOf = workCounts(graph);
  const originOf = (node: number): Origin => {
    const rank = at(rankOf, node);
    return at(at(program.ranks, rank).origins, node - at(firstNode, rank) - 1);
  };
  const [idle, needed] = [new Set<string>(), new Set<string>()];
  const befores = seriesOf(graph);
  let isInSeries = false;
  return {
    starts: (node, known) => {
      for (const before of befores.get(node) ?? []) {
        if ((known[at(chainOf, before)] ?? 0) >= at(position, before)) isInSeries = true;
      }
    },
    waits: (node, known, { row, chain: from, position: reached }) => {
      if (wanted === "lowered") return;
      const own = at(chainOf, node);
      const adds = (chain: number, before: number, after: number): boolean =>
        chain !== own && workOf(chain, after) > workOf(chain, before);
      const isNeeded =
        adds(from, known[from] ?? 0, reached) ||
        (row !== known &&
          row.some((after, chain) => after > (known[chain] ?? 0) && adds(chain, known[chain] ?? 0, after)));
      const origin = originOf(node);
      if (isNeeded) needed.add(statementKey(origin));
      else if (isSynchronization(origin)) idle.add(statementKey(origin));
    },
    mayHaveNotes: () => isInSeries || [...idle].some((key) => !needed.has(key)) || keepsSome(graph),
  };
}

/** The nodes that do work among the first nodes of a chain, and those of its image. */
function workCounts({
  nodesOf,
  kind,
  chainBase,
  group,
  program,
}: ClassGraph): (chain: number, count: number) => number {
  const counts = new Map(
    [...nodesOf].map(([chain, nodes]) => {
      const sums = new Int32Array(nodes.length + 1);
      for (const [i, node] of nodes.entries()) {
        const what = kind[node];
        const works = what !== nodeKinds.record && what !== nodeKinds.wait && what !== nodeKinds.signal;
        sums[i + 1] = at(sums, i) + (works ? 1 : 0);
      }
      return [chain, sums] as const;
    }),
  );
  const chainCount = at(chainBase, program.ranks.length);
  const own = new Int32Array(chainCount);
  for (const [rank, representative] of group.representative.entries()) {
    for (let chain = at(chainBase, rank); chain < at(chainBase, rank + 1); chain++) {
      own[chain] = chain - at(chainBase, rank) + at(chainBase, representative);
    }
  }
  return (chain, count) => counts.get(at(own, chain))?.[count] ?? 0;
}

/** By the first work of an iteration: the last of the iteration before it, if the two share no data. */
function seriesOf(graph: ClassGraph): ReadonlyMap<number, readonly number[]> {
  const { program, representatives, firstNode, kind, chainOf } = graph;
  const ranks = representatives.map((rank) => at(program.ranks, rank));
  const neighbours = neighboursOnOtherStreams({ program: { ...program, ranks }, nodeBase: firstNode, kind, chainOf });
  const befores = new Map<number, number[]>();
  for (const [before, after] of neighbours) {
    if (shareData(graph, before, after)) continue;
    const [first, last] = ends(before, after);
    pushTo(befores, first, last);
  }
  return befores;
}

/** Whether one of the two writes bytes that the other touches. */
function shareData({ parts: { start, element, table } }: ClassGraph, a: Iteration, b: Iteration): boolean {
  const { reads, writes, overlaps, regions } = table;
  // A region of the representative, on behalf of the rank that has it.
  const touches = (nodes: readonly number[], rows: readonly ClockRows[]): readonly number[] =>
    nodes.flatMap((node) => {
      const found: number[] = [];
      for (let part = at(start, node); part < at(start, node + 1); part++) {
        for (const { start: first, values } of rows) {
          for (const region of values.subarray(at(first, part), at(first, part + 1))) {
            found.push(at(element, part) * regions.length + region);
          }
        }
      }
      return found;
    });
  const meets = (written: readonly number[], touched: ReadonlySet<number>): boolean =>
    written.some((each) => {
      const region = each % regions.length;
      const others = overlaps.values.subarray(at(overlaps.start, region), at(overlaps.start, region + 1));
      return others.some((other) => touched.has(each - region + other));
    });
  return (
    meets(touches(a.nodes, [writes]), new Set(touches(b.nodes, [reads, writes]))) ||
    meets(touches(b.nodes, [writes]), new Set(touches(a.nodes, [reads, writes])))
  );
}

/** Whether a tensor is freed in one place and kept in another. */
function keepsSome({ program, representatives }: ClassGraph): boolean {
  const isFreed = new Map<number, boolean>();
  for (const rank of representatives) {
    for (const command of at(program.ranks, rank).commands) {
      if (command.kind === "alloc") isFreed.set(command.buffer, isFreed.get(command.buffer) ?? false);
      if (command.kind === "free" && isFreed.has(command.buffer)) isFreed.set(command.buffer, true);
    }
  }
  const byName = new Map<string, boolean>();
  return [...isFreed].some(([buffer, freed]) => {
    const { name } = at(program.buffers, buffer);
    const other = byName.get(name) ?? freed;
    byName.set(name, freed);
    return other !== freed;
  });
}

/**
 * Proves a Program correct by one rank of each class (README.md). Says nothing about a Program with a finding or
 * a note, or whose ranks are not alike: then every rank is to be verified.
 */
import { accesses } from "../../commands/region.ts";
import { isWork } from "../../commands/command.ts";
import { commandsOfRanks, type Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { at, InvariantError } from "../../support/invariant.ts";
import { getOrMake } from "../../support/lists.ts";
import type { OnProgress } from "../../support/progress.ts";
import { allocatedBuffers } from "../check/blocks.ts";
import { sizeOf, spanOf } from "../check/shared-bytes.ts";
import { illegalOverlap, repeatedOutput } from "../check/static-checks.ts";
import { checkRank } from "../check/structure/commands.ts";
import { checkApart, checkTables } from "../check/structure/tables.ts";
import { checkTransfer } from "../check/structure/transfers.ts";
import { nodeKinds } from "../order/graph.ts";
import { createParticipants } from "../order/slots.ts";
import { type Budget, createOwnPositions, mapsToItself } from "./automorphism.ts";
import { type ClassGraph, createClassGraph } from "./class-graph.ts";
import { createClassNotes, withoutNotes } from "./class-notes.ts";
import { advanceAll, needsOf, sweepClasses } from "./class-sweep.ts";
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
  notes: boolean,
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

/** Whether the permutation maps the Program to itself; false for a malformed Program. */
export function isSymmetry(program: Program, to: RankPermutation): boolean {
  const budget: Budget = { left: Infinity };
  const find = (): true | null =>
    mapsToItself(mappedOf(program, createRankBuffers(program)), to, budget) ? true : null;
  return program.ranks.length <= mostRanks && ifWellFormed(find) === true;
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

function proveChecked(mapped: Mapped, notes: boolean, onProgress?: OnProgress): ClassProof | null {
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

function proveClasses(mapped: Mapped, group: RankGroup, notes: boolean, onProgress?: OnProgress): ClassProof | null {
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
  const observer = notes ? createClassNotes(graph) : withoutNotes;
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
    const touched = [...reads, ...writes].filter((region) => sizeOf(region) > 0);
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

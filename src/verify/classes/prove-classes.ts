/**
 * Proves a Program correct by one rank of each class (README.md). Says nothing about a Program with a finding or
 * a note, or whose ranks are not alike: then every rank is to be verified.
 */
import type { Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { at, InvariantError } from "../../support/invariant.ts";
import type { OnProgress } from "../../support/progress.ts";
import { allocatedBuffers } from "../check/blocks.ts";
import { checkRank } from "../check/structure/commands.ts";
import { checkApart, checkTables } from "../check/structure/tables.ts";
import { checkTransfer } from "../check/structure/transfers.ts";
import { createParticipants } from "../order/participants.ts";
import { type Budget, mapsToItself } from "./automorphism.ts";
import { createClassGraph } from "./class-graph.ts";
import { createClassNotes, withoutNotes } from "./class-notes.ts";
import { operandsFit } from "./class-operands.ts";
import { endsInOneQueue } from "./class-progress.ts";
import { sweepClasses } from "./class-sweep.ts";
import type { Mapped } from "./mapping.ts";
import { createRankBuffers } from "./rank-buffers.ts";
import { meshRotations } from "./mesh-rotations.ts";
import { contains, identityGroup, type Permutation, type RankGroup, rotations, withGenerator } from "./rank-group.ts";

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
    checkTables(program);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return proveChecked(program, notes, onProgress);
  });
}

/** The symmetries of a Program; null if its ranks are not alike. */
export function symmetryOf(program: Program): RankGroup | null {
  if (program.ranks.length > mostRanks) return null;
  return ifWellFormed(() => {
    const group = groupOf(mappedOf(program));
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

function proveChecked(program: Program, notes: boolean, onProgress?: OnProgress): ClassProof | null {
  const { ranks } = program;
  if (ranks.some(({ streams }) => streams.some(({ role }) => role === "pair"))) return null;
  const mapped = mappedOf(program);
  onProgress?.("verifying: comparing the ranks");
  const group = groupOf(mapped);
  return group.elements.length === 1 ? null : proveClasses(mapped, group, notes, onProgress);
}

function mappedOf(program: Program): Mapped {
  const { ranks } = program;
  const nodeBase = new Int32Array(ranks.length + 1);
  for (const [rank, { origins }] of ranks.entries()) nodeBase[rank + 1] = at(nodeBase, rank) + origins.length + 2;
  const participants = createParticipants(program, nodeBase);
  return { program, buffers: createRankBuffers(program), participants, nodeBase };
}

/**
 * The group that the rotations generate which map the Program to itself. The search ends when the rotations that do not
 * have compared as many commands as the Program has.
 */
function groupOf(mapped: Mapped): RankGroup {
  const { ranks } = mapped.program;
  const size = ranks.reduce((sum, { origins }) => sum + origins.length, 0);
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
function* candidates(program: Program): Generator<Permutation> {
  yield* rotations(program.ranks.length);
  yield* meshRotations(program);
}

function proveClasses(mapped: Mapped, group: RankGroup, notes: boolean, onProgress?: OnProgress): ClassProof | null {
  const { program, participants, nodeBase } = mapped;
  const allocated = allocatedInClasses(mapped, group);
  checkApart(program, allocated);
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

/** By buffer: whether a list allocates it, which that of its rank does if that of the representative does. */
function allocatedInClasses({ program, buffers }: Mapped, { representative }: RankGroup): Uint8Array {
  const representatives = new Set(representative);
  const ranks = program.ranks.filter(({ rank }) => representatives.has(rank));
  const ofRepresentatives = allocatedBuffers({ ...program, ranks });
  const allocated = new Set<string>();
  const keyOf = (rank: number, buffer: number): string => `${rank} ${at(buffers.numberOf, buffer)}`;
  for (const { id, rank } of program.buffers) if (ofRepresentatives[id] === 1) allocated.add(keyOf(rank, id));
  return Uint8Array.from(program.buffers, ({ id, rank }) =>
    allocated.has(keyOf(at(representative, rank), id)) ? 1 : 0,
  );
}

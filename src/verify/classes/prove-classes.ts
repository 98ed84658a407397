/**
 * Proves a Program correct by one rank of each class (docs/symmetry.md). Says nothing about a Program with a finding or
 * a note, or whose ranks are not alike: then every rank is to be verified.
 */
import type { Program } from "../../commands/program.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { at, InvariantError } from "../../support/invariant.ts";
import { checkRank } from "../check/structure/commands.ts";
import { checkTables } from "../check/structure/tables.ts";
import { checkTransfer } from "../check/structure/transfers.ts";
import { createParticipants, type Participants } from "../order/participants.ts";
import { type Budget, mapsToItself } from "./automorphism.ts";
import { createClassGraph } from "./class-graph.ts";
import { createClassNotes, withoutNotes } from "./class-notes.ts";
import { operandsFit } from "./class-operands.ts";
import { endsInOneQueue } from "./class-progress.ts";
import { sweepClasses } from "./class-sweep.ts";
import type { Mapped } from "./mapping.ts";
import { createRankBuffers } from "./rank-buffers.ts";
import { contains, identityGroup, type RankGroup, rotations, withGenerator } from "./rank-group.ts";

/** The size of a correct Program without notes. */
export interface ClassProof {
  readonly classes: number;
  readonly streams: number;
  readonly regions: number;
}

/** The elements of a group of as many ranks take 32 MiB. */
const mostRanks = 4096;

/** Null if the proof by class finds nothing out, or if there are fewer ranks than `leastRanks`. */
export function proveByClasses(program: Program, notes: boolean, leastRanks = 2): ClassProof | null {
  try {
    if (program.ranks.length < leastRanks || program.ranks.length > mostRanks) return null;
    checkTables(program);
    for (const [id, transfer] of program.transfers.entries()) checkTransfer(program, transfer, id);
    return proveChecked(program, notes);
  } catch (error) {
    // A malformed Program. The proof of every rank says what is wrong.
    if (error instanceof DiagnosticError || error instanceof TypeError || error instanceof RangeError) return null;
    if (error instanceof InvariantError) return null;
    throw error;
  }
}

function proveChecked(program: Program, notes: boolean): ClassProof | null {
  const { ranks } = program;
  if (ranks.some(({ streams }) => streams.some(({ role }) => role === "pair"))) return null;
  const nodeBase = new Int32Array(ranks.length + 1);
  for (const [rank, { commands }] of ranks.entries()) nodeBase[rank + 1] = at(nodeBase, rank) + commands.length + 2;
  const participants = createParticipants(program, nodeBase);
  const group = groupOf({ program, buffers: createRankBuffers(program), participants, nodeBase });
  if (group.elements.length === 1) return null;
  return proveClasses(program, group, participants, notes);
}

/**
 * The group that the rotations generate which map the Program to itself. The search ends when the rotations that do not
 * have compared as many commands as the Program has.
 */
function groupOf(mapped: Mapped): RankGroup {
  const { ranks } = mapped.program;
  const size = ranks.reduce((sum, { commands }) => sum + commands.length, 0);
  let left = size;
  let group = identityGroup(ranks.length);
  for (const rotation of rotations(ranks.length)) {
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

function proveClasses(
  program: Program,
  group: RankGroup,
  participants: Participants,
  notes: boolean,
): ClassProof | null {
  const graph = createClassGraph(program, group, participants);
  const { representatives, nodesOf, parts } = graph;
  for (const rank of representatives) checkRank(program, at(program.ranks, rank));
  const observer = notes ? createClassNotes(graph) : withoutNotes;
  if (!representatives.every((rank) => operandsFit(program, rank))) return null;
  if (!endsInOneQueue(graph) || !sweepClasses(graph, observer) || observer.mayHaveNotes()) return null;
  const size = group.elements.length;
  return {
    classes: representatives.length,
    streams: nodesOf.size * size,
    regions: parts.table.regions.length * size,
  };
}

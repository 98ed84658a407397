/**
 * Joins the command lists of all ranks to a Program: numbers buffers, kernels, transfers and slots over all ranks, matches what
 * ranks do together, and lays out memory. Pure: each process of a run links the same lists to the same Program.
 */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { BufferId } from "../buffer.ts";
import type { CommandList } from "../command-list.ts";
import { listsByRank } from "./lists-by-rank.ts";
import { linkCommand, type LinkedCombination } from "./link-command.ts";
import { type Combination, memberCombination } from "./peer-operands.ts";
import { matchOneSided } from "./match/one-sided.ts";
import { type LinkedCollective, matchPeerCollectives } from "./match/peer-collectives.ts";
import { matchTransfers } from "./match/transfers.ts";
import { layOutRank } from "./memory/memory-layout.ts";
import { mergeKernels } from "./merge-kernels.ts";
import { relocateView } from "./relocate.ts";
import type { Program, RankProgram } from "../program.ts";

/**
 * The Program of `lists`, one of each rank, in any order. Fails with `rank-missing`, or with every `transfer-mismatch` between
 * the ranks at once.
 */
export function link(lists: readonly CommandList[]): Program {
  const ordered = listsByRank(lists);
  const bases = bufferBases(ordered);
  const pairs = matchOneSided(ordered, (rank, view) => relocateView(at(bases, rank), view));
  const peers = matchPeerCollectives(ordered, bases, pairs.slots.length);
  const matched = matchTransfers(ordered, bases);
  const problems = [...matched.problems, ...pairs.problems, ...peers.problems];
  if (problems.length > 0) throw new DiagnosticError(problems);
  const combined = ordered.map((list, rank) => combinationsOf(list, at(peers.collectiveOf, rank)));
  const { kernels, idOf } = mergeKernels(
    ordered.map((list, rank) => [...list.kernels, ...[...at(combined, rank).values()].map(({ kernel }) => kernel)]),
  );
  const layouts = ordered.map((list, rank) => {
    const visible = new Set([...peerVisibleBuffers(list), ...at(peers.visible, rank)]);
    return layOutRank(list, at(bases, rank), visible);
  });
  const ranks = ordered.map((list, rank): RankProgram => {
    const kernelOf = at(idOf, rank);
    const links = {
      rank,
      bufferBase: at(bases, rank),
      kernelOf,
      pairOf: at(pairs.pairOf, rank),
      collectiveOf: at(peers.collectiveOf, rank),
      combinations: new Map(
        [...at(combined, rank)].map(([collective, combination], i): [number, LinkedCombination] => [
          collective,
          { ...combination, kernel: at(kernelOf, list.kernels.length + i) },
        ]),
      ),
    };
    return {
      rank,
      streams: list.streams,
      eventCount: list.eventCount,
      commands: list.commands.map((command) => linkCommand(command, links)),
      origins: list.origins,
      transferOf: at(matched.transferOf, rank),
      arenaBytes: at(layouts, rank).arenaBytes,
    };
  });
  return {
    kind: "Program",
    ranks,
    buffers: layouts.flatMap(({ buffers }) => buffers),
    kernels,
    transfers: matched.transfers,
    slots: [...pairs.slots, ...peers.slots],
  };
}

/** The id over all ranks of each rank's buffer 0. */
function bufferBases(lists: readonly CommandList[]): readonly number[] {
  let next = 0;
  return lists.map(({ buffers }) => {
    const base = next;
    next += buffers.length;
    return base;
  });
}

/** What the rank combines in collectives of the CUDA idiom: their operands, and so their kernels, are known only here. */
function combinationsOf(
  { rank, commands }: CommandList,
  collectiveOf: readonly (LinkedCollective | undefined)[],
): ReadonlyMap<number, Combination> {
  const combinations = new Map<number, Combination>();
  for (const command of commands) {
    if (command.kind !== "combineRanks") continue;
    const collective = collectiveOf[command.collective];
    invariant(collective !== undefined, "collectives without a partner are refused", command);
    combinations.set(command.collective, memberCombination(collective, collective.team.indexOf(rank)));
  }
  return combinations;
}

/** The buffers that a peer reads (get) or writes (put): those of the half that does not copy. */
function peerVisibleBuffers({ pairs }: CommandList): ReadonlySet<BufferId> {
  const visible = pairs.filter(({ protocol, role }) => (protocol === "get") === (role === "send"));
  return new Set(visible.map(({ view }) => view.buffer));
}

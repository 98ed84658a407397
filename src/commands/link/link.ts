/**
 * Joins the command lists of all ranks into a Program: matches transfers and pairs, numbers buffers, kernels, transfers
 * and slots over all ranks, and lays out memory. It is pure: each process of a run links the same lists to the same
 * Program.
 */
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { makeId, at, invariant } from "../../support/invariant.ts";
import type { BufferId } from "../buffer.ts";
import type { Command, KernelId } from "../command.ts";
import type { CommandList } from "../command-list.ts";
import type { Kernel } from "../kernel.ts";
import type { LinkedFrom, Program, RankProgram } from "../program.ts";
import {
  type PeerCombination,
  combinationOf,
  linkCommand,
  type LinkedCombination,
  type RankLinks,
} from "./link-command.ts";
import { meaningsOf } from "./match/meaning.ts";
import { matchOneSided } from "./match/one-sided.ts";
import { type LinkedCollective, matchPeerCollectives } from "./match/peer-collectives.ts";
import { matchTransfers } from "./match/transfers.ts";
import { layOutRanks } from "./memory/memory-layout.ts";
import { relocateView } from "./relocate.ts";

export interface Linked {
  readonly program: Program;
  /** Transfers by which ranks may mean different tensors: `transfer-unclear`. */
  readonly warnings: readonly Diagnostic[];
}

/**
 * Links one list per rank, in any order. Throws `rank-missing`, or a DiagnosticError with every `transfer-mismatch`
 * between the ranks.
 */
export function link(lists: readonly CommandList[]): Program {
  return linkWithWarnings(lists).program;
}

export function linkWithWarnings(lists: readonly CommandList[]): Linked {
  const ordered = listsByRank(lists);
  const bases = bufferBases(ordered);
  const meanings = meaningsOf(ordered);
  const pairs = matchOneSided(meanings, (rank, view) => relocateView(at(bases, rank), view));
  const peers = matchPeerCollectives(meanings, bases, pairs.slots.length);
  const matched = matchTransfers(meanings, bases);
  const problems = [...matched.problems, ...pairs.problems, ...peers.problems];
  if (problems.length > 0) throw new DiagnosticError(problems);
  const combined = ordered.map((list, rank) => combinationsOf(list, at(peers.collectiveOf, rank)));
  const { kernels, idOf } = mergeKernels(
    ordered.map((list, rank) => [...list.kernels, ...[...at(combined, rank).values()].map(({ kernel }) => kernel)]),
  );
  const visible = ordered.map((list, rank) => new Set([...peerVisibleBuffers(list), ...at(peers.visible, rank)]));
  const layouts = layOutRanks(ordered, bases, visible);
  const linksOf = (rank: number): RankLinks => {
    const kernelOf = at(idOf, rank);
    const own = at(ordered, rank).kernels.length;
    return {
      rank,
      bufferBase: at(bases, rank),
      kernelOf,
      operations: at(matched.operations, rank),
      list: at(ordered, rank),
      pairs: at(pairs.pairsOf, rank),
      collectiveOf: at(peers.collectiveOf, rank),
      combinations: new Map(
        [...at(combined, rank)].map(([collective, combination], i): [number, LinkedCombination] => [
          collective,
          { ...combination, kernel: at(kernelOf, own + i) },
        ]),
      ),
    };
  };
  const links = ordered.map((_, rank) => linksOf(rank));
  const make = (rank: number): readonly Command[] =>
    at(ordered, rank).commands.map((command) => linkCommand(command, at(links, rank)));
  const onDemand = commandsOnDemand(
    ordered.map(({ commands }) => commands.length),
    make,
  );
  const ranks = ordered.map(({ streams, eventCount, origins, commands: unlinked }, rank): RankProgram => {
    const start = { rank, streams, eventCount };
    const rest = { origins, transferOf: at(matched.transferOf, rank), arenaBytes: at(layouts, rank).arenaBytes };
    const own = at(links, rank);
    const { bufferBase, kernelOf } = own;
    const linked = (made: RankProgram, commandAt: LinkedFrom["commandAt"]): RankProgram =>
      Object.defineProperty(made, "linkedFrom", { value: { unlinked, bufferBase, kernelOf, commandAt } });
    if (onDemand === null) {
      const commands = make(rank);
      return linked({ ...start, commands, ...rest }, (index) => at(commands, index));
    }
    return linked(
      {
        ...start,
        get commands() {
          return onDemand(rank);
        },
        ...rest,
      },
      (index) => linkCommand(at(unlinked, index), own),
    );
  });
  const program: Program = {
    kind: "Program",
    ranks,
    buffers: layouts.flatMap(({ buffers }) => buffers),
    kernels,
    transfers: matched.transfers,
    slots: [...pairs.slots, ...peers.slots],
  };
  return { program, warnings: [...matched.warnings, ...pairs.warnings, ...peers.warnings] };
}

/** The lists in rank order. Fails with `rank-missing` unless each of the ranks 0 .. n-1 has one list. */
function listsByRank(lists: readonly CommandList[]): readonly CommandList[] {
  const counts = new Map<number, number>(lists.map((_, rank) => [rank, 0]));
  for (const { rank } of lists) counts.set(rank, (counts.get(rank) ?? 0) + 1);
  const problems = [...counts].flatMap(([rank, count]) => {
    if (rank < 0 || rank >= lists.length || !Number.isInteger(rank)) {
      return [rankProblem(`rank ${rank} is outside the ${lists.length} ranks`, lists)];
    }
    if (count === 0) return [rankProblem(`rank ${rank} has no command list`, lists)];
    return count === 1 ? [] : [rankProblem(`rank ${rank} has ${count} command lists`, lists)];
  });
  if (problems.length > 0) throw new DiagnosticError(problems);
  return lists.toSorted((a, b) => a.rank - b.rank);
}

function rankProblem(message: string, lists: readonly CommandList[]): Diagnostic {
  return {
    code: "rank-missing",
    message,
    place: { kind: "call", text: "link(lists)" },
    found: `lists of ranks ${lists.map(({ rank }) => rank).join(", ")}`,
    expected: `one list for each rank from 0 to ${lists.length - 1}`,
    help: "record the program once for every rank and link all the lists",
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

/**
 * The combinations of a rank in collectives in peer memory. Their operands, and therefore their kernels, are known only
 * now.
 */
function combinationsOf(
  { rank, commands, peerCollectives }: CommandList,
  collectiveOf: readonly (LinkedCollective | undefined)[],
): ReadonlyMap<number, PeerCombination> {
  const combinations = new Map<number, PeerCombination>();
  if (peerCollectives.length === 0) return combinations;
  for (const command of commands) {
    if (command.kind !== "combineRanks") continue;
    const collective = collectiveOf[command.collective];
    invariant(collective !== undefined, "collectives that do not match are refused", command);
    combinations.set(command.collective, combinationOf(collective, collective.team.indexOf(rank)));
  }
  return combinations;
}

/**
 * One table of kernels for all ranks. Equal kernels become one, so that a back end prepares each once. They are
 * compared as JSON, since all ranks record keys in the same order. `idOf[rank]` has the id of each kernel in
 * `kernelsOf[rank]`.
 */
function mergeKernels(kernelsOf: readonly (readonly Kernel[])[]): {
  readonly kernels: readonly Kernel[];
  readonly idOf: readonly (readonly KernelId[])[];
} {
  const kernels: Kernel[] = [];
  const known = new Map<string, KernelId>();
  const texts = new Map<Kernel, string>();
  const idOf = kernelsOf.map((own) =>
    own.map((kernel) => {
      const key = texts.get(kernel) ?? JSON.stringify(kernel);
      texts.set(kernel, key);
      const id = known.get(key) ?? makeId<KernelId>(kernels.length);
      if (id === kernels.length) {
        kernels.push(kernel);
        known.set(key, id);
      }
      return id;
    }),
  );
  return { kernels, idOf };
}

/** The buffers that a peer reads (get) or writes (put): the buffers of the half that does not copy. */
function peerVisibleBuffers({ pairs }: CommandList): ReadonlySet<BufferId> {
  const visible = pairs.filter(({ protocol, role }) => (protocol === "get") === (role === "send"));
  return new Set(visible.map(({ view }) => view.buffer));
}

// The commands of a rank, made when they are asked for. Together, the lists of thousands of ranks take more memory than
// all else: one of them is a millisecond's work, and most of what reads a Program goes through it rank by rank.

/** Programs of at most as many commands have them all: 100 bytes each. */
const mostAtOnce = 2 ** 22;

/** Of longer ones, these are kept: those that were asked for last. */
const mostKept = 2 ** 18;

/** Work that goes from rank to rank and back has made the lists this often. From then on, all are kept. */
const mostRounds = 16;

/**
 * By rank: its commands, of which there are `counts[rank]`; null if they are few enough to be made at once. `make`
 * returns equal commands each time; no reader may depend on their identity.
 */
export function commandsOnDemand(
  counts: readonly number[],
  make: (rank: number) => readonly Command[],
  limits = { mostAtOnce, mostKept },
): ((rank: number) => readonly Command[]) | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= limits.mostAtOnce) return null;
  // In order of the last call.
  const kept = new Map<number, readonly Command[]>();
  let [size, made] = [0, 0];
  return (rank) => {
    const known = kept.get(rank);
    if (known !== undefined) {
      kept.delete(rank);
      kept.set(rank, known);
      return known;
    }
    const commands = make(rank);
    kept.set(rank, commands);
    [size, made] = [size + commands.length, made + 1];
    for (const [oldest, list] of kept) {
      if (size <= limits.mostKept || oldest === rank || made > mostRounds * counts.length) break;
      kept.delete(oldest);
      size -= list.length;
    }
    return commands;
  };
}

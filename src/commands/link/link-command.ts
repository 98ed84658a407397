/**
 * Makes a Program's command from a list's command: numbers ids over all ranks and fills in the peer's half. One row per
 * kind.
 */
import { dispatch, type RuleTable, makeId, at, invariant } from "../../support/invariant.ts";
import type { BufferRef } from "../buffer.ts";
import type { Command, KernelId, SlotId } from "../command.ts";
import { assembliesOf, sliceFrom } from "../collectives.ts";
import type {
  CommandList,
  CopyPeer,
  SignalPeer,
  SignalRank,
  UnlinkedCommand,
  WaitPeer,
  WaitRank,
} from "../command-list.ts";
import type { CombineKernel } from "../kernel.ts";
import { sliceOf } from "../slices.ts";
import { alignViews, operandOf, refOf, sameNumbers, type View } from "../view.ts";
import type { RankPairs } from "./match/one-sided.ts";
import { type LinkedCollective, slotBetween } from "./match/peer-collectives.ts";
import type { MatchedTransfers } from "./match/transfers.ts";
import { relocateBuffer, relocateRef, relocateView } from "./relocate.ts";

/** The tables for linking the commands of one rank. */
export interface RankLinks {
  readonly rank: number;
  /** The id of the rank's buffer 0. */
  readonly bufferBase: number;
  readonly kernelOf: readonly KernelId[];
  readonly operations: MatchedTransfers["operations"][number];
  readonly list: Pick<CommandList, "pairs">;
  readonly pairs: RankPairs;
  readonly collectiveOf: readonly (LinkedCollective | undefined)[];
  /** By collective of the rank's list. */
  readonly combinations: ReadonlyMap<number, LinkedCombination>;
}

/** `kernel` counts over the Program. */
export type LinkedCombination = Omit<PeerCombination, "kernel"> & { readonly kernel: KernelId };

const table: RuleTable<UnlinkedCommand, Command, [RankLinks]> = {
  launch: (command, { bufferBase, kernelOf }) => ({
    ...command,
    kernel: at(kernelOf, command.kernel),
    inputs: command.inputs.map((ref) => relocateRef(bufferBase, ref)),
    outputs: command.outputs.map((ref) => relocateRef(bufferBase, ref)),
  }),
  copy: (command, { bufferBase }) => ({
    ...command,
    source: relocateView(bufferBase, command.source),
    destination: relocateView(bufferBase, command.destination),
  }),
  transfer: (command, { operations }) => {
    const operation = operations.get(command);
    invariant(operation !== undefined, "transfers are matched before commands are linked", command);
    return { ...command, operation };
  },
  recordEvent: (command) => command,
  waitEvent: (command) => command,
  alloc: (command, { bufferBase }) => ({ ...command, buffer: relocateBuffer(bufferBase, command.buffer) }),
  free: (command, { bufferBase }) => ({ ...command, buffer: relocateBuffer(bufferBase, command.buffer) }),
  signalPeer: (command, links) => ({ kind: "signal", stream: command.stream, slot: slotOf(command, links, true) }),
  waitPeer: (command, links) => ({ kind: "waitSignal", stream: command.stream, slot: slotOf(command, links, false) }),
  copyPeer: (command, links) => {
    const { pair, stream } = command;
    requireMatched(command, links);
    if (!isCopier(command, links)) {
      invariant(false, "the receiver of a get and the sender of a put copies", { rank: links.rank, pair });
    }
    const { source, destination } = alignedViews(links.pairs.viewsOf(pair));
    return { kind: "copy", stream, source, destination };
  },
  signalRank: (command, links) => {
    const { collective, other } = otherRank(command, links);
    return { kind: "signal", stream: command.stream, slot: slotBetween(collective, command.slot, links.rank, other) };
  },
  waitRank: (command, links) => {
    const { collective, other } = otherRank(command, links);
    const slot = slotBetween(collective, command.slot, other, links.rank);
    return { kind: "waitSignal", stream: command.stream, slot };
  },
  copyRank: ({ stream, collective: index, position }, links) => {
    const collective = collectiveOf(index, links);
    return { kind: "copy", stream, ...sliceCopy(collective, collective.team.indexOf(links.rank), position) };
  },
  combineRanks: ({ stream, collective }, { combinations }) => {
    const combination = combinations.get(collective);
    invariant(combination !== undefined, "combinations are made before commands are linked", { collective });
    return { kind: "launch", stream, ...combination };
  },
};

export function linkCommand(command: UnlinkedCommand, links: RankLinks): Command {
  return dispatch<UnlinkedCommand, Command, [RankLinks]>(table, command, links);
}

/** The slot of the pair's `ready`. */
function requireMatched({ pair }: SignalPeer | WaitPeer | CopyPeer, { rank, pairs }: RankLinks): number {
  const slot = at(pairs.ready, pair);
  if (slot < 0) invariant(false, "pairs are matched before commands are linked", { rank, pair });
  return slot;
}

function isCopier({ pair }: SignalPeer | WaitPeer | CopyPeer, { list }: RankLinks): boolean {
  const { protocol, role } = at(list.pairs, pair);
  return (protocol === "get") === (role === "recv");
}

function collectiveOf(index: number, { rank, collectiveOf: known }: RankLinks): LinkedCollective {
  const linked = known[index];
  invariant(linked !== undefined, "collectives are matched before commands are linked", { rank, index });
  return linked;
}

function otherRank(
  { collective: index, position }: SignalRank | WaitRank,
  links: RankLinks,
): { readonly collective: LinkedCollective; readonly other: number } {
  const collective = collectiveOf(index, links);
  return { collective, other: at(collective.team, position) };
}

function slotOf(command: SignalPeer | WaitPeer, links: RankLinks, signals: boolean): SlotId {
  const ready = requireMatched(command, links);
  const copierSignals = command.slot === "done";
  const { pair, slot } = command;
  // A rank that exchanges with itself has both roles.
  if ((isCopier(command, links) === copierSignals) !== signals && at(links.list.pairs, pair).peer !== links.rank) {
    invariant(false, "the copier signals done and waits for ready, its peer the reverse", { rank: links.rank, pair });
  }
  return makeId<SlotId>(slot === "ready" ? ready : ready + 1);
}

/** Both views of a pair under one shape. A copy needs equal shapes, while the ranks only agree on the elements. */
function alignedViews(pair: ReturnType<RankPairs["viewsOf"]>): { readonly source: View; readonly destination: View } {
  const { source, destination } = pair;
  if (sameNumbers(source.shape, destination.shape)) return pair;
  const [from, to] = alignViews([source, destination]) ?? [];
  invariant(from !== undefined && to !== undefined, "pairs without a common box are refused", { source, destination });
  return { source: from, destination: to };
}

// The copies and combinations of a rank in a collective in peer memory. The table of collectives determines their
// slices, in the rank's own and its peers' memory.

export interface PeerCombination {
  readonly kernel: CombineKernel;
  readonly inputs: readonly BufferRef[];
  readonly outputs: readonly BufferRef[];
}

/** The copy of the slice that the rank at `from` holds of the result of the rank at `position`. */
function sliceCopy(
  { operations }: LinkedCollective,
  position: number,
  from: number,
): { readonly source: View; readonly destination: View } {
  const slice = sliceFrom(operations, position, from);
  invariant(slice !== null, "a rank copies from those whose data it needs", { position, from });
  const [source, destination] = aligned([slice.source, slice.output]);
  invariant(source !== undefined && destination !== undefined, "alignment keeps the views", { position, from });
  return { source, destination };
}

/** The combination of the rank at `position`: its whole result, or its slice of all inputs into all outputs. */
export function combinationOf({ operations, sharing }: LinkedCollective, position: number): PeerCombination {
  const { reduceOp } = at(operations, position);
  invariant(reduceOp !== null, "only a reduction combines", { position });
  if (sharing === null) {
    const { output, sources } = at(assembliesOf(operations, position), 0);
    const [destination, ...inputs] = aligned([output, ...sources.map(({ view }) => view)]);
    invariant(destination !== undefined && inputs.length > 1, "a reduction combines several inputs", { position });
    return combination(reduceOp, inputs, [destination]);
  }
  const { slices, inputs, outputs } = sharing;
  const sliced = (views: readonly View[]): readonly View[] => views.map((view) => sliceOf(view, slices, position));
  // The rank's own output first, then around the team, so that each rank starts writing at a different one.
  const around = [...outputs.slice(position), ...outputs.slice(0, position)];
  return combination(reduceOp, sliced(inputs), sliced(around));
}

function combination(op: CombineKernel["op"], inputs: readonly View[], outputs: readonly View[]): PeerCombination {
  return {
    kernel: { kind: "combine", op, inputs: inputs.map(operandOf), outputs: outputs.map(operandOf) },
    inputs: inputs.map(refOf),
    outputs: outputs.map(refOf),
  };
}

function aligned(views: readonly View[]): readonly View[] {
  const found = alignViews(views);
  invariant(found !== null, "collectives whose slices share no box are refused", views);
  return found;
}

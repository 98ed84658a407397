/**
 * Whether a permutation of ranks maps a Program to itself: the list of each rank, command by command, to that of its
 * image (README.md has the table). Slots and transfers may go to any others, but one to one; buffers go to the
 * buffer of the same number of the image's rank; slices of buffers are compared by moved-regions.ts.
 */
import type { UnlinkedCommand } from "../../commands/command-list.ts";
import type { Command, Origin } from "../../commands/command.ts";
import type { Operand } from "../../commands/kernel.ts";
import {
  linkedCommandAt,
  commandCount,
  type LinkedTransfer,
  type Program,
  type RankProgram,
} from "../../commands/program.ts";
import { sameNumbers, type View } from "../../commands/view.ts";
import { at, unreachable } from "../../support/invariant.ts";
import { illegalOverlap } from "../check/static-checks.ts";
import { isCount } from "../check/structure/demand.ts";
import { isSynchronization } from "../explain/notes.ts";
import type { Participants } from "../order/slots.ts";
import {
  createMovedRegions,
  createOneToOne,
  type Mapped,
  type Mapping,
  sameBuffer,
  sameForm,
  sameSlot,
} from "./moved-regions.ts";
import type { RankBuffers } from "./rank-buffers.ts";
import type { RankPermutation } from "./rank-group.ts";

/** Commands that may still be compared. */
export interface Budget {
  left: number;
}

export function mapsToItself(mapped: Mapped, to: RankPermutation, budget: Budget): boolean {
  const { program, buffers } = mapped;
  if (!program.ranks.every(({ rank }) => buffers.likeRank[rank] === buffers.likeRank[at(to, rank)])) return false;
  const regions = createMovedRegions(program);
  const slots = createOneToOne(program.slots.length);
  const transfers = createOneToOne(program.transfers.length);
  const mapping: Mapping = { ...mapped, to, regions, slots, transfers, later: [] };
  for (const own of program.ranks) {
    budget.left -= own.origins.length;
    if (budget.left < 0 || !sameList(mapping, own, at(program.ranks, at(to, own.rank)))) return false;
  }
  return (
    sameInMovingBuffers(mapping) &&
    mapping.later.every((compare) => compare()) &&
    regions.keepOverlaps() &&
    program.transfers.every((transfer) => sameTransfer(mapping, transfer))
  );
}

function sameList(mapping: Mapping, a: RankProgram, b: RankProgram): boolean {
  const { origins, streams, transferOf } = a;
  if (commandCount(a) !== origins.length || commandCount(b) !== origins.length || origins.length !== b.origins.length)
    return false;
  if (transferOf.length !== b.transferOf.length || a.eventCount !== b.eventCount) return false;
  if (streams.length !== b.streams.length) return false;
  if (!streams.every(({ id, role }, i) => id === b.streams[i]?.id && role === b.streams[i]?.role)) return false;
  const texts = new Map<string, string>();
  const isShared = sharedCommands(mapping, a, b);
  for (const i of positionsToCompare(mapping, a.rank, b.rank) ?? origins.keys()) {
    if (origins !== b.origins && !sameOrigin(texts, at(origins, i), at(b.origins, i))) return false;
    const [own, image] = [transferOf[i] ?? null, b.transferOf[i] ?? null];
    if ((own === null) !== (image === null)) return false;
    if (own !== null && image !== null && !mapping.transfers.pair(own, image)) return false;
    if (isShared(i)) continue;
    const [one, other] = [linkedCommandAt(a, i), linkedCommandAt(b, i)];
    if (one.stream !== other.stream || !sameCommand(mapping, one, other)) return false;
    if (other.kind === "transfer" && illegalOverlap(mapping.program, b.rank, i, other) !== null) return false;
  }
  return true;
}

/** Where the lists of two ranks may differ, in order; null for everywhere. */
function positionsToCompare({ ownPositions }: Mapping, a: number, b: number): readonly number[] | null {
  const [own, image] = [ownPositions(a), ownPositions(b)];
  if (own === null || image === null || sameNumbers(own, image)) return own === null ? null : image;
  return [...new Set([...own, ...image])].sort((x, y) => x - y);
}

/**
 * By rank: the positions at which its list does not share the command and its origin with that of `likeRank`; null if
 * they share nothing.
 */
export function createOwnPositions({ ranks }: Program, { likeRank, baseOf }: RankBuffers): Mapped["ownPositions"] {
  const known = new Map<number, readonly number[] | null>();
  const find = (rank: number): readonly number[] | null => {
    const [a, b] = [at(ranks, rank), at(ranks, at(likeRank, rank))];
    const [own, first] = [a.linkedFrom, b.linkedFrom];
    if (own === undefined || first === undefined || own.bufferBase !== baseOf[rank]) return null;
    if (own.unlinked.length !== first.unlinked.length || !sameNumbers(own.kernelOf, first.kernelOf)) return null;
    const found: number[] = [];
    for (const [i, command] of own.unlinked.entries()) {
      const isShared = command === first.unlinked[i] && a.origins[i] === b.origins[i] && namesOnlyOwnBuffers(command);
      if (!isShared) found.push(i);
    }
    return found;
  };
  return (rank) => {
    if (!known.has(rank)) known.set(rank, find(rank));
    return known.get(rank) ?? null;
  };
}

/** Whether the two ranks have one command at a position, which only names other buffers, of equal numbers. */
function sharedCommands({ buffers }: Mapping, a: RankProgram, b: RankProgram): (index: number) => boolean {
  const [own, image] = [a.linkedFrom, b.linkedFrom];
  if (own === undefined || image === undefined || !sameNumbers(own.kernelOf, image.kernelOf)) return () => false;
  if (buffers.baseOf[a.rank] !== own.bufferBase || buffers.baseOf[b.rank] !== image.bufferBase) return () => false;
  return (index) => {
    const command = at(own.unlinked, index);
    return command === image.unlinked[index] && namesOnlyOwnBuffers(command);
  };
}

function namesOnlyOwnBuffers({ kind }: UnlinkedCommand): boolean {
  switch (kind) {
    case "recordEvent":
    case "waitEvent":
    case "alloc":
    case "free":
    case "launch":
    case "copy":
      return true;
    case "transfer":
    case "signalPeer":
    case "waitPeer":
    case "copyPeer":
    case "signalRank":
    case "waitRank":
    case "copyRank":
    case "combineRanks":
      return false;
    default:
      return unreachable(kind);
  }
}

/**
 * The regions of shared commands stay where they are. They count where others move regions of the same buffer, so
 * there they are compared as well.
 */
function sameInMovingBuffers(mapping: Mapping): boolean {
  const { program, buffers, regions, to } = mapping;
  const movingOn = new Map<number, Set<number>>();
  for (const buffer of regions.moving()) {
    const { rank } = at(program.buffers, buffer);
    movingOn.set(rank, (movingOn.get(rank) ?? new Set()).add(at(buffers.numberOf, buffer)));
  }
  return [...movingOn].every(([rank, numbers]) => {
    const [a, b] = [at(program.ranks, rank), at(program.ranks, at(to, rank))];
    const isShared = sharedCommands(mapping, a, b);
    return (a.linkedFrom?.unlinked ?? []).every((command, i) => {
      const touches = (
        command.kind === "launch"
          ? [...command.inputs, ...command.outputs]
          : command.kind === "copy"
            ? [command.source, command.destination]
            : []
      ).some(({ buffer }) => numbers.has(buffer));
      return !touches || !isShared(i) || sameCommand(mapping, linkedCommandAt(a, i), linkedCommandAt(b, i));
    });
  });
}

/** Texts may name other teams, but two commands of one rank have one statement exactly if their images do. */
function sameOrigin(texts: Map<string, string>, a: Origin, b: Origin): boolean {
  if (a === b) return true;
  if (!sameNumbers(a.path, b.path) || !sameNumbers(a.iteration, b.iteration)) return false;
  if (a.statement === b.statement) return true;
  const image = texts.get(a.statement);
  texts.set(a.statement, b.statement);
  return (image ?? b.statement) === b.statement && isSynchronization(a) === isSynchronization(b);
}

function sameCommand(mapping: Mapping, a: Command, b: Command): boolean {
  switch (a.kind) {
    case "recordEvent":
    case "waitEvent":
      return b.kind === a.kind && a.event === b.event;
    case "signal":
    case "waitSignal":
      return b.kind === a.kind && sameSlot(mapping, a.slot, b.slot);
    case "alloc":
    case "free":
      return b.kind === a.kind && sameBuffer(mapping, a.buffer, b.buffer);
    case "launch": {
      if (b.kind !== "launch" || a.kernel !== b.kernel || (a.smMargin ?? 0) !== (b.smMargin ?? 0)) return false;
      const kernel = at(mapping.program.kernels, a.kernel);
      const [from, to] = [a.origins ?? [], b.origins ?? []];
      if (from.length !== to.length || !to.every((origin) => isCount(origin))) return false;
      // A sum over devices reads its inputs in team order, which the symmetry turns. What a launch reads has no order.
      const isApart = a.inputs.every(({ buffer }) => a.outputs.every((output) => output.buffer !== buffer));
      const compare = (): boolean => {
        const inputs =
          isApart || kernel.kind === "combine" ? turned(mapping, kernel.inputs, a.inputs, b.inputs) : b.inputs;
        return (
          sameOperands(mapping, kernel.inputs, a.inputs, inputs) &&
          sameOperands(mapping, kernel.outputs, a.outputs, b.outputs) &&
          keepDistances([...a.inputs, ...a.outputs], [...inputs, ...b.outputs], isApart ? a.inputs.length : 0)
        );
      };
      if (!isApart || new Set(a.inputs.map(({ buffer }) => buffer)).size === a.inputs.length) return compare();
      mapping.later.push(compare);
      return true;
    }
    case "copy": {
      if (b.kind !== "copy") return false;
      return (
        sameView(mapping, a.source, b.source) &&
        sameView(mapping, a.destination, b.destination) &&
        keepDistances([a.source, a.destination], [b.source, b.destination])
      );
    }
    case "transfer": {
      if (b.kind !== "transfer" || typeof b.communicator !== "string") return false;
      const [own, image] = [a.operation, b.operation];
      if (own.kind === "group") {
        return (
          image.kind === "group" &&
          own.ops.length === image.ops.length &&
          own.ops.every(({ type, view }, i) => {
            const other = at(image.ops, i);
            return other.type === type && sameView(mapping, view, other.view);
          })
        );
      }
      return (
        image.kind === "collective" &&
        own.type === image.type &&
        sameView(mapping, own.input, image.input) &&
        sameView(mapping, own.output, image.output)
      );
    }
    default:
      return false;
  }
}

/** Both wait for the same, and need the data of the same. */
function sameTransfer({ program, to, transfers, participants, nodeBase }: Mapping, transfer: LinkedTransfer): boolean {
  const image = program.transfers[at(transfers.images, transfer.id)];
  if (image?.kind !== transfer.kind || image.participants.length !== transfer.participants.length) return false;
  const first = at(participants.first, transfer.id);
  const imageOf = transfer.participants.map(({ rank, command }) =>
    participants.of.get(at(nodeBase, at(to, rank)) + 1 + command),
  );
  const sameNeeds = (needs: Participants["peers"]): boolean =>
    imageOf.every((other, position) => {
      if (other === undefined) return false;
      const [own, theirs] = [needs[first + position] ?? null, needs[other] ?? null];
      if (own === null || theirs === null) return own === theirs;
      const mapped = new Set(own.map((participant) => imageOf[participant - first]));
      return own.length === theirs.length && theirs.every((participant) => mapped.has(participant));
    });
  return sameNeeds(participants.peers) && sameNeeds(participants.sources);
}

// Whether operands of a command go to those of its image.

type Refs = readonly { readonly buffer: number; readonly offset: number }[];

/**
 * The images in the order of what they are images of; unchanged if that is not a matter of order. Of slices of one
 * buffer, each goes to where earlier commands moved it.
 */
function turned(mapping: Mapping, operands: readonly Operand[], a: Refs, b: Refs): Refs {
  const left = new Set(b.keys());
  const order = a.map(({ buffer, offset }, i) => {
    const image = mapping.regions.imageOf(buffer, at(operands, i), offset);
    const found = [...left].find(
      (j) =>
        sameBuffer(mapping, buffer, at(b, j).buffer) &&
        sameForm(at(operands, i), at(operands, j)) &&
        (image === undefined || image === at(b, j).offset),
    );
    if (found !== undefined) left.delete(found);
    return found;
  });
  return order.every((j) => j !== undefined) && left.size === 0 ? order.map((j) => at(b, j)) : b;
}

/**
 * Whether operands in one buffer are as far apart as their images, which decides if they may share bytes. Among the
 * first `read` it does not matter.
 */
function keepDistances(a: Refs, b: Refs, read = 0): boolean {
  return a.every(({ buffer, offset }, i) => {
    const moved = at(b, i).offset - offset;
    return (
      i < read || a.every((other, j) => j >= i || other.buffer !== buffer || at(b, j).offset - other.offset === moved)
    );
  });
}

function sameOperands(mapping: Mapping, operands: readonly Operand[], a: Refs, b: Refs): boolean {
  if (a.length !== operands.length || b.length !== operands.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [own, image] = [at(a, i), at(b, i)];
    if (!sameBuffer(mapping, own.buffer, image.buffer)) return false;
    if (!mapping.regions.note(own.buffer, at(operands, i), own.offset, image.offset)) return false;
  }
  return true;
}

function sameView(mapping: Mapping, a: View | null, b: View | null): boolean {
  if (a === null || b === null) return a === b;
  const alike = a.dtype === b.dtype && sameNumbers(a.shape, b.shape) && sameNumbers(a.strides, b.strides);
  return alike && sameBuffer(mapping, a.buffer, b.buffer) && mapping.regions.note(a.buffer, a, a.offset, b.offset);
}

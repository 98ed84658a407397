/**
 * Matches collectives in peer memory as link matches a library's collectives: the k-th of a communicator on every rank.
 * The table of collectives determines the copies and combinations of each rank, so both forms have the same meaning. As
 * with pairs, each collective has separate slots, because its ranks may be at different iterations and must not signal
 * each other's slots.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { dtypes } from "../../../numerics/dtype.ts";
import { makeId, at, invariant } from "../../../support/invariant.ts";
import { counted } from "../../../support/wording.ts";
import type { BufferId } from "../../buffer.ts";
import type { Collective, SlotId } from "../../command.ts";
import { collectives } from "../../collectives.ts";
import type { CommandList, PeerCollective, SlotRole } from "../../command-list.ts";
import type { Slot } from "../../program.ts";
import { cutIntoSlices, positionsWithSlice, type ShareSlices, viewsToCut } from "../../slices.ts";
import { sameNumbers, type View } from "../../view.ts";
import { relocateCollective } from "../relocate.ts";
import { type CollectiveUse, mismatch } from "./problems.ts";
import { matchCollectives, type Posted } from "./collectives.ts";
import type { Meanings } from "./meaning.ts";

export interface LinkedCollective {
  /** In team order, with buffers numbered over all ranks. */
  readonly operations: readonly Collective[];
  readonly team: readonly number[];
  /** The slices that ranks combine for each other; null if each rank makes its whole result. */
  readonly sharing: Sharing | null;
  readonly slots: Map<string, SlotId>;
}

export interface MatchedPeerCollectives {
  /** collectiveOf[rank][collective of that rank's list]; undefined if it has a problem. */
  readonly collectiveOf: readonly (readonly (LinkedCollective | undefined)[])[];
  readonly slots: readonly Slot[];
  /** visible[rank]: buffers of that rank's list that peers read or write. */
  readonly visible: readonly ReadonlySet<BufferId>[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

interface PeerUse extends Posted<Collective>, SharingUse {
  readonly collective: number;
}

/** `bufferBases[rank]` is the id of the rank's buffer 0, `firstSlot` the id of the first slot. */
export function matchPeerCollectives(
  meanings: Meanings,
  bufferBases: readonly number[],
  firstSlot: number,
): MatchedPeerCollectives {
  const { lists } = meanings;
  const { matched, problems, warnings } = matchCollectives(meanings, usesOf(lists, bufferBases));
  const collectiveOf = lists.map(({ peerCollectives }): (LinkedCollective | undefined)[] =>
    peerCollectives.map(() => undefined),
  );
  const visible = lists.map(() => new Set<BufferId>());
  const found: Diagnostic[] = [...problems];
  for (const { participants } of matched) {
    const sharing = sharingOf(participants);
    const problem = sharingMismatch(lists, participants, sharing);
    if (problem !== null) {
      found.push(problem);
      continue;
    }
    const operations = participants.map(({ operation }) => operation);
    const { team } = at(operations, 0);
    const linked: LinkedCollective = { operations, team, sharing, slots: new Map() };
    for (const { rank, collective } of participants) {
      at(collectiveOf, rank)[collective] = linked;
      const own = at(at(lists, rank).peerCollectives, collective).operation;
      for (const view of usedByPeers(own, sharing !== null)) at(visible, rank).add(view.buffer);
    }
  }
  return { collectiveOf, slots: addSlots(lists, collectiveOf, firstSlot), visible, problems: found, warnings };
}

/** The slot of a signal from one rank to another. */
export function slotBetween({ slots }: LinkedCollective, role: SlotRole, from: number, to: number): SlotId {
  const id = slots.get(slotKey(role, from, to));
  invariant(id !== undefined, "every signal and wait of a collective has a slot", { role, from, to });
  return id;
}

function usesOf(lists: readonly CommandList[], bufferBases: readonly number[]): readonly PeerUse[] {
  return lists.flatMap((list) => {
    const { rank, commands, peerCollectives } = list;
    if (peerCollectives.length === 0) return [];
    const first = new Map<number, number>();
    for (const [index, command] of commands.entries()) {
      if ("collective" in command && !first.has(command.collective)) first.set(command.collective, index);
    }
    return peerCollectives.map(({ communicator, operation, combining }, collective): PeerUse => {
      const command = first.get(collective);
      invariant(command !== undefined, "a collective in peer memory has commands", { rank, collective });
      const relocated = relocateCollective(at(bufferBases, rank), operation);
      return { rank, command, communicator, operation: relocated, collective, combining };
    });
  });
}

/** The views of one rank that peers may read or write. No peer reads the input of the only rank that writes. */
function usedByPeers({ type, input, output }: Collective, shares: boolean): readonly View[] {
  const isOnlyWriter = collectives[type].writes === "root" && output !== null;
  return [...(input === null || isOnlyWriter ? [] : [input]), ...(output === null || !shares ? [] : [output])];
}

/** A slot for every signal and wait, in order of ranks and their lists. */
function addSlots(
  lists: readonly CommandList[],
  collectiveOf: MatchedPeerCollectives["collectiveOf"],
  firstSlot: number,
): readonly Slot[] {
  const slots: Slot[] = [];
  for (const { rank, commands, peerCollectives } of lists) {
    if (peerCollectives.length === 0) continue;
    for (const command of commands) {
      if (command.kind !== "signalRank" && command.kind !== "waitRank") continue;
      const linked = at(collectiveOf, rank)[command.collective];
      if (linked === undefined) continue;
      const other = at(linked.team, command.position);
      const [signaller, waiter] = command.kind === "signalRank" ? [rank, other] : [other, rank];
      const key = slotKey(command.slot, signaller, waiter);
      if (linked.slots.has(key)) continue;
      const id = makeId<SlotId>(firstSlot + slots.length);
      linked.slots.set(key, id);
      slots.push({ id, signaller, waiter });
    }
  }
  return slots;
}

function slotKey(role: SlotRole, from: number, to: number): string {
  return `${role} ${from} ${to}`;
}

// Divides the work of an Allreduce in peer memory: all tensors as views under one box, and a slice of it for each rank.
// `record` sees only one rank's views, and decides from them which ranks have a slice and therefore signal. Here these
// decisions are compared.

interface Sharing {
  readonly slices: ShareSlices;
  /** In team order, under one box. */
  readonly inputs: readonly View[];
  readonly outputs: readonly View[];
}

type SharingUse = CollectiveUse & Pick<PeerCollective, "combining">;

/**
 * `participants` is the whole team in team order. Null if the tensors have no common box, or a rank makes its whole
 * result.
 */
function sharingOf(participants: readonly SharingUse[]): Sharing | null {
  if (participants.some(({ combining }) => combining === null)) return null;
  const inputs = participants.flatMap(({ operation: { input } }) => input ?? []);
  const outputs = participants.flatMap(({ operation: { output } }) => output ?? []);
  const views = viewsToCut([...inputs, ...outputs]);
  if (views === null) return null;
  const { shape, dtype } = at(views, 0);
  return {
    slices: cutIntoSlices(shape, dtypes[dtype].bytes, participants.length),
    inputs: views.slice(0, inputs.length),
    outputs: views.slice(inputs.length),
  };
}

/**
 * Ranks that divide the work differently would wait for signals that no rank sends. Null if all of them follow
 * `sharing`.
 */
function sharingMismatch(
  lists: readonly CommandList[],
  participants: readonly SharingUse[],
  sharing: Sharing | null,
): Diagnostic | null {
  const expected = sharing === null ? null : positionsWithSlice(sharing.slices);
  const use = participants.find(({ combining }) => !samePositions(combining, expected));
  if (use === undefined) return null;
  const first = at(participants, 0);
  const text = ({ rank, combining }: SharingUse): string =>
    `${combining === null ? "whole results" : counted(combining.length, "slice")} on rank ${rank}`;
  return mismatch(lists, {
    message: "the ranks of a collective divide its work differently",
    at: use,
    against: use === first ? null : first,
    found: use === first ? text(use) : `${text(use)}, ${text(first)}`,
    expected:
      expected === null
        ? "tensors that one common shape can index"
        : `${counted(expected.length, "slice")}, from the strides of all ranks' tensors`,
    help: "give the input and the output the same strides on every rank",
  });
}

function samePositions(a: readonly number[] | null, b: readonly number[] | null): boolean {
  return a === null || b === null ? a === b : sameNumbers(a, b);
}

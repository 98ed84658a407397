/**
 * Pairs one-sided sends and recvs: the k-th send from s to d with the k-th recv on d from s. Each pair gets two
 * separate slots, so that pairs in flight at the same time never take each other's signals.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { makeId } from "../../../support/ids.ts";
import { at } from "../../../support/invariant.ts";
import type { SlotId } from "../../command.ts";
import type { CommandList, OneSided } from "../../command-list.ts";
import type { Slot } from "../../program.ts";
import type { View } from "../../view.ts";
import { type Meanings, swappedSends } from "./meaning.ts";
import { unmatched, viewMismatch } from "./point-to-point-problems.ts";
import { type CommandRef, mismatch } from "./problems.ts";

/** Both halves of a pair, with buffers numbered over all ranks. */
export interface LinkedPair {
  readonly protocol: OneSided["protocol"];
  readonly sender: number;
  readonly receiver: number;
  readonly source: View;
  readonly destination: View;
  /** get: signalled by the sender, waited for by the receiver. put: the reverse. */
  readonly ready: SlotId;
  /** Signalled by the rank that copies, waited for by its peer. */
  readonly done: SlotId;
}

export interface MatchedPairs {
  /** pairOf[rank][pair of that rank's list]; undefined if the pair has a problem. */
  readonly pairOf: readonly (readonly (LinkedPair | undefined)[])[];
  readonly slots: readonly Slot[];
  readonly problems: readonly Diagnostic[];
  readonly warnings: readonly Diagnostic[];
}

interface Half extends CommandRef {
  readonly pair: number;
  readonly protocol: OneSided["protocol"];
  readonly view: View;
}

interface Channel {
  readonly from: number;
  readonly to: number;
  readonly sends: readonly Half[];
  readonly recvs: readonly Half[];
}

/** `relocate` numbers the buffers of a rank's view over all ranks. */
export function matchOneSided(meanings: Meanings, relocate: (rank: number, view: View) => View): MatchedPairs {
  const { lists } = meanings;
  const pairOf = lists.map(({ pairs }): (LinkedPair | undefined)[] => pairs.map(() => undefined));
  const slots: Slot[] = [];
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const addSlot = (signaller: number, waiter: number): SlotId => {
    const id = makeId<SlotId>(slots.length);
    slots.push({ id, signaller, waiter });
    return id;
  };
  for (const { from, to, sends, recvs } of channelsOf(lists, relocate)) {
    for (const [k, send] of sends.entries()) {
      const recv = recvs[k];
      if (recv === undefined) break;
      const problem = protocolMismatch(lists, send, recv) ?? viewMismatch(lists, send, recv);
      if (problem !== null) {
        problems.push(problem);
        continue;
      }
      const [copier, other] = send.protocol === "get" ? [to, from] : [from, to];
      const pair: LinkedPair = {
        protocol: send.protocol,
        sender: from,
        receiver: to,
        source: send.view,
        destination: recv.view,
        ready: addSlot(other, copier),
        done: addSlot(copier, other),
      };
      at(pairOf, from)[send.pair] = pair;
      at(pairOf, to)[recv.pair] = pair;
    }
    if (sends.length !== recvs.length) {
      problems.push(unmatched(lists, { from, to, sends, recvs, channel: "peer memory" }));
    }
    warnings.push(...swappedSends(meanings, sends, recvs));
  }
  return { pairOf, slots, problems, warnings };
}

/**
 * The channels in order of their first half, each with its halves in sequence. Halves are numbered over all ranks and
 * chained in typed arrays: there are as many channels as pairs of ranks.
 */
function* channelsOf(
  lists: readonly CommandList[],
  relocate: (rank: number, view: View) => View,
): Generator<Channel, void> {
  const halfOf = halvesOf(lists, relocate);
  const count = lists.reduce((sum, { pairs }) => sum + pairs.length, 0);
  const next = new Int32Array(count).fill(none);
  const first = { send: new Int32Array(count).fill(none), recv: new Int32Array(count).fill(none) };
  const last = { send: new Int32Array(count), recv: new Int32Array(count) };
  const ends: Pick<Channel, "from" | "to">[] = [];
  const known = lists.map(() => new Map<number, number>());
  let base = 0;
  for (const { rank, pairs } of lists) {
    for (const index of inSequence(pairs)) {
      const { role, peer } = at(pairs, index);
      const [from, to] = role === "send" ? [rank, peer] : [peer, rank];
      const others = (known[from] ??= new Map<number, number>());
      const channel = others.get(to) ?? ends.push({ from, to }) - 1;
      others.set(to, channel);
      if (first[role][channel] === none) first[role][channel] = base + index;
      else next[at(last[role], channel)] = base + index;
      last[role][channel] = base + index;
    }
    base += pairs.length;
  }
  for (const [channel, { from, to }] of ends.entries()) {
    const chain = (role: OneSided["role"], rank: number): readonly Half[] => {
      const halves: Half[] = [];
      for (let half = at(first[role], channel); half !== none; half = at(next, half)) halves.push(halfOf(rank, half));
      return halves;
    };
    yield { from, to, sends: chain("send", from), recvs: chain("recv", to) };
  }
}

const none = -1;

/** The positions of a rank's pairs, in sequence. Most are. */
function inSequence(pairs: readonly OneSided[]): Iterable<number> {
  const ordered = pairs.every(({ sequence }, i) => i === 0 || at(pairs, i - 1).sequence <= sequence);
  return ordered ? pairs.keys() : [...pairs.keys()].sort((a, b) => at(pairs, a).sequence - at(pairs, b).sequence);
}

/** By rank and number over all ranks: a half. A rank's equal views stay one object. */
function halvesOf(
  lists: readonly CommandList[],
  relocate: (rank: number, view: View) => View,
): (rank: number, half: number) => Half {
  const firstOf = lists.map(firstUses);
  const relocated = lists.map(() => new Map<View, View>());
  const bases: number[] = [];
  let base = 0;
  for (const { pairs } of lists) {
    bases.push(base);
    base += pairs.length;
  }
  return (rank, half) => {
    const pair = half - at(bases, rank);
    const { protocol, view } = at(at(lists, rank).pairs, pair);
    const views = at(relocated, rank);
    const placed = views.get(view) ?? relocate(rank, view);
    views.set(view, placed);
    return { rank, command: at(at(firstOf, rank), pair), pair, protocol, view: placed };
  };
}

/** The first command of every pair of a list, which messages name. */
function firstUses({ pairs, commands }: CommandList): Int32Array {
  const first = new Int32Array(pairs.length);
  for (let index = commands.length - 1; index >= 0; index--) {
    const command = at(commands, index);
    if ("pair" in command) first[command.pair] = index;
  }
  return first;
}

function protocolMismatch(lists: readonly CommandList[], send: Half, recv: Half): Diagnostic | null {
  if (send.protocol === recv.protocol) return null;
  return mismatch(lists, {
    message: `rank ${send.rank} sends to rank ${recv.rank} with a protocol that the receiver does not use`,
    at: recv,
    against: send,
    found: `${recv.protocol} on rank ${recv.rank}`,
    expected: `${send.protocol}, as on rank ${send.rank}`,
    help: "lower the programs of all ranks with one point-to-point protocol",
  });
}

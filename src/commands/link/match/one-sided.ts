/**
 * Pairs one-sided sends and recvs: the k-th send from s to d with the k-th recv on d from s. Each pair gets two
 * separate slots, so that pairs in flight at the same time never take each other's signals.
 */
import type { Diagnostic } from "../../../diagnostics/diagnostic.ts";
import { makeId, at, getOrMake } from "../../../support/invariant.ts";
import type { CommandList, OneSided } from "../../command-list.ts";
import type { CommandRef, SlotId } from "../../command.ts";
import type { Slot } from "../../program.ts";
import type { View } from "../../view.ts";
import { type Meanings, swappedSends } from "./meaning.ts";
import { mismatch, unmatched, viewMismatch } from "./problems.ts";

/** The pairs of one rank, by their numbers in its list. */
export interface RankPairs {
  /**
   * The slot of `ready`; -1 if the pair has a problem. get: signalled by the sender, waited for by the receiver. put:
   * the reverse. The next slot is that of `done`: signalled by the rank that copies, waited for by its peer.
   */
  readonly ready: Int32Array;
  /** Both views, with buffers numbered over all ranks. */
  readonly viewsOf: (pair: number) => { readonly source: View; readonly destination: View };
}

export interface MatchedPairs {
  /** By rank. */
  readonly pairsOf: readonly RankPairs[];
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
  const viewOf = relocatedViews(lists, relocate);
  const ready = lists.map(({ pairs }) => new Int32Array(pairs.length).fill(none));
  /** By pair: the number of the peer's half in its list. */
  const mates = lists.map(({ pairs }) => new Int32Array(pairs.length).fill(none));
  const slots: Slot[] = [];
  const problems: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const addSlot = (signaller: number, waiter: number): SlotId => {
    const id = makeId<SlotId>(slots.length);
    slots.push({ id, signaller, waiter });
    return id;
  };
  for (const { from, to, sends, recvs } of channelsOf(lists, viewOf)) {
    for (const [k, send] of sends.entries()) {
      const recv = recvs[k];
      if (recv === undefined) break;
      const problem = protocolMismatch(lists, send, recv) ?? viewMismatch(lists, send, recv);
      if (problem !== null) {
        problems.push(problem);
        continue;
      }
      const [copier, other] = send.protocol === "get" ? [to, from] : [from, to];
      const slot = addSlot(other, copier);
      addSlot(copier, other);
      at(ready, from)[send.pair] = slot;
      at(ready, to)[recv.pair] = slot;
      at(mates, from)[send.pair] = recv.pair;
      at(mates, to)[recv.pair] = send.pair;
    }
    if (sends.length !== recvs.length) {
      problems.push(unmatched(lists, { from, to, sends, recvs, channel: "peer memory" }));
    }
    // Of one send, the order cannot be wrong.
    if (sends.length > 1) warnings.push(...swappedSends(meanings, sends, recvs));
  }
  const pairsOf = lists.map(({ rank, pairs }): RankPairs => ({
    ready: at(ready, rank),
    viewsOf: (pair) => {
      const { role, peer } = at(pairs, pair);
      const [own, other] = [viewOf(rank, pair), viewOf(peer, at(at(mates, rank), pair))];
      return role === "send" ? { source: own, destination: other } : { source: other, destination: own };
    },
  }));
  return { pairsOf, slots, problems, warnings };
}

/** By rank and pair: the view, with buffers numbered over all ranks. A rank's equal views stay one object. */
type ViewOf = (rank: number, pair: number) => View;

function relocatedViews(lists: readonly CommandList[], relocate: (rank: number, view: View) => View): ViewOf {
  const relocated = lists.map(() => new Map<View, View>());
  return (rank, pair) => {
    const { view } = at(at(lists, rank).pairs, pair);
    const views = at(relocated, rank);
    return getOrMake(views, view, () => relocate(rank, view));
  };
}

/**
 * The channels in order of their first half, each with its halves in sequence. Halves are numbered over all ranks and
 * chained in typed arrays: there are as many channels as pairs of ranks.
 */
function* channelsOf(lists: readonly CommandList[], viewOf: ViewOf): Generator<Channel, void> {
  const count = lists.reduce((sum, { pairs }) => sum + pairs.length, 0);
  const next = new Int32Array(count).fill(none);
  const first = { send: new Int32Array(count).fill(none), recv: new Int32Array(count).fill(none) };
  const last = { send: new Int32Array(count), recv: new Int32Array(count) };
  const ends = { from: new Int32Array(count), to: new Int32Array(count) };
  const bases: number[] = [];
  const numbers = createNumbers(lists.length);
  let base = 0;
  for (const { rank, pairs } of lists) {
    bases.push(base);
    for (const index of inSequence(pairs)) {
      const { role, peer } = at(pairs, index);
      const [from, to] = role === "send" ? [rank, peer] : [peer, rank];
      const channel = numbers.of(from, to);
      [ends.from[channel], ends.to[channel]] = [from, to];
      if (first[role][channel] === none) first[role][channel] = base + index;
      else next[at(last[role], channel)] = base + index;
      last[role][channel] = base + index;
    }
    base += pairs.length;
  }
  const firstUse = lists.map(firstUses);
  const halvesOf = (start: number, rank: number): readonly Half[] => {
    if (start === none) return [];
    const { pairs } = at(lists, rank);
    const halves: Half[] = [];
    for (let half = start; half !== none; half = at(next, half)) {
      const pair = half - at(bases, rank);
      const { protocol } = at(pairs, pair);
      halves.push({ rank, command: at(at(firstUse, rank), pair), pair, protocol, view: viewOf(rank, pair) });
    }
    return halves;
  };
  for (let channel = 0; channel < numbers.count(); channel++) {
    const [from, to] = [at(ends.from, channel), at(ends.to, channel)];
    const sends = halvesOf(at(first.send, channel), from);
    const recvs = halvesOf(at(first.recv, channel), to);
    yield { from, to, sends, recvs };
  }
}

const none = -1;

/** Numbers ordered pairs of ranks from 0, in the order in which they are asked for. */
function createNumbers(rankCount: number) {
  const known = new Int32Array(rankCount * rankCount).fill(none);
  /** Of ranks that the run does not have. */
  const others = new Map<string, number>();
  let count = 0;
  return {
    count: () => count,
    of: (from: number, to: number): number => {
      if (from < rankCount && to < rankCount) {
        const place = from * rankCount + to;
        if (at(known, place) === none) known[place] = count++;
        return at(known, place);
      }
      const key = `${from} ${to}`;
      return getOrMake(others, key, () => count++);
    },
  };
}

/** The positions of a rank's pairs, in sequence. Most are. */
function inSequence(pairs: readonly OneSided[]): Iterable<number> {
  const ordered = pairs.every(({ sequence }, i) => i === 0 || at(pairs, i - 1).sequence <= sequence);
  return ordered ? pairs.keys() : [...pairs.keys()].sort((a, b) => at(pairs, a).sequence - at(pairs, b).sequence);
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

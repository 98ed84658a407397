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
  readonly sends: Half[];
  readonly recvs: Half[];
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

function channelsOf(lists: readonly CommandList[], relocate: (rank: number, view: View) => View): readonly Channel[] {
  const channels: Channel[] = [];
  const known = new Map<number, Map<number, Channel>>();
  const channelOf = (from: number, to: number): Channel => {
    const others = known.get(from) ?? new Map<number, Channel>();
    known.set(from, others);
    const channel = others.get(to);
    if (channel !== undefined) return channel;
    const added = { from, to, sends: [], recvs: [] };
    others.set(to, added);
    channels.push(added);
    return added;
  };
  for (const list of lists) {
    const firstUse = firstUses(list);
    const inSequence = [...list.pairs.entries()].sort(([, a], [, b]) => a.sequence - b.sequence);
    for (const [pair, { protocol, role, peer, view }] of inSequence) {
      const [from, to] = role === "send" ? [list.rank, peer] : [peer, list.rank];
      const channel = channelOf(from, to);
      (role === "send" ? channel.sends : channel.recvs).push({
        rank: list.rank,
        command: at(firstUse, pair),
        pair,
        protocol,
        view: relocate(list.rank, view),
      });
    }
  }
  return channels;
}

/** The first command of every pair of a list, which messages name. */
function firstUses({ pairs, commands }: CommandList): readonly number[] {
  const first = pairs.map(() => 0);
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

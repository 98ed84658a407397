/**
 * Signals and the waits that take them. The n-th wait on a slot takes the n-th signal. For this, every signal and every
 * wait must happen after the previous wait, or two waits could take each other's signal. If this holds, and signals
 * follow the order of their list, the pairs are the same in every execution. Otherwise it is a slot overrun.
 */
import { dependsOn, dependsOnAll } from "../../commands/collectives.ts";
import type { LinkedTransfer, Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import type { Clocks, Snapshot } from "./known.ts";

/** A signal or wait that may come before an earlier one on its slot. */
export interface SlotMisuse {
  readonly slot: number;
  readonly kind: "signal" | "wait";
  /** Its visit. */
  readonly next: number;
  /**
   * The visit of the wait that must come first; for a signal out of its list's order, the visit of the other signal.
   */
  readonly before: number;
}

export interface Slots {
  /** Returns the chains that were waiting for it. */
  signal(slot: number, chain: number, position: number, visit: number): readonly number[];
  /** Takes the next signal. Returns false if there is none; `signal` will then return the chain. */
  take(slot: number, chain: number, position: number, visit: number): boolean;
  readonly misuses: readonly SlotMisuse[];
}

interface SlotState {
  /** Signals that no wait has taken. */
  readonly pending: Snapshot[];
  readonly waiting: number[];
  /** Every wait so far, in order. */
  readonly taken: Taken[];
  readonly signalled: number[];
  /** Signals that came before the wait that must precede them, by that wait's position in `taken`. */
  readonly early: Map<number, number>;
}

interface Taken {
  readonly visit: number;
  readonly chain: number;
  readonly position: number;
}

const none: readonly number[] = [];

export function createSlots(clocks: Clocks): Slots {
  const states = new Map<number, SlotState>();
  const misuses: SlotMisuse[] = [];
  const stateOf = (slot: number): SlotState => {
    const known = states.get(slot);
    if (known !== undefined) return known;
    const state = { pending: [], waiting: [], taken: [], signalled: [], early: new Map<number, number>() };
    states.set(slot, state);
    return state;
  };
  const mustFollow = (
    slot: number,
    wait: Taken | undefined,
    chain: number,
    next: number,
    kind: SlotMisuse["kind"],
  ): void => {
    if (wait === undefined || clocks.knows(chain, wait.chain, wait.position)) return;
    misuses.push({ slot, kind, next, before: wait.visit });
  };
  return {
    misuses,
    signal: (slot, chain, position, visit) => {
      const state = stateOf(slot);
      const turn = state.signalled.length;
      if (turn > state.taken.length) state.early.set(turn - 1, visit);
      else mustFollow(slot, state.taken[turn - 1], chain, visit, "signal");
      const last = state.signalled.at(-1);
      if (last !== undefined && last > visit) misuses.push({ slot, kind: "signal", next: last, before: visit });
      state.signalled.push(visit);
      state.pending.push(clocks.snapshot(chain, position, 1));
      return state.waiting.length === 0 ? none : state.waiting.splice(0);
    },
    take: (slot, chain, position, visit) => {
      const state = stateOf(slot);
      const snapshot = state.pending.shift();
      if (snapshot === undefined) {
        state.waiting.push(chain);
        return false;
      }
      const last = state.taken.at(-1);
      mustFollow(slot, last, chain, visit, "wait");
      if (last !== undefined && last.visit > visit)
        misuses.push({ slot, kind: "wait", next: last.visit, before: visit });
      clocks.join(chain, snapshot);
      const early = state.early.get(state.taken.length);
      if (early !== undefined) misuses.push({ slot, kind: "signal", next: early, before: visit });
      state.taken.push({ visit, chain, position });
      return true;
    },
  };
}

// The participants of all transfers, numbered. For progress, a participant waits for its `peers`: all ranks of a
// collective, or its direct peers in a group. For order, its completion follows only the start of its `sources`, the
// participants whose data its result needs, because a library may let it continue before the others arrive
// (docs/commands.md, "Transfers").

export interface Participants {
  readonly count: number;
  /** By node. */
  readonly of: ReadonlyMap<number, number>;
  readonly node: Int32Array;
  readonly transfer: Int32Array;
  /** Per transfer, the number of its first participant, and one more entry at the end. */
  readonly first: Int32Array;
  /**
   * By participant: numbers of participants. Null stands for all participants of the transfer, and then all of them
   * have null.
   */
  readonly peers: readonly (readonly number[] | null)[];
  readonly sources: readonly (readonly number[] | null)[];
}

/** `nodeBase` gives the node before each rank's command 0. */
export function createParticipants({ transfers }: Program, nodeBase: Int32Array): Participants {
  const first = new Int32Array(transfers.length + 1);
  for (const [id, { participants }] of transfers.entries()) first[id + 1] = at(first, id) + participants.length;
  const count = at(first, transfers.length);
  const node = new Int32Array(count);
  const transferOf = new Int32Array(count);
  const of = new Map<number, number>();
  const peers: (readonly number[] | null)[] = [];
  const sources: (readonly number[] | null)[] = [];
  for (const [id, transfer] of transfers.entries()) {
    const base = at(first, id);
    for (const [position, { rank, command }] of transfer.participants.entries()) {
      node[base + position] = at(nodeBase, rank) + 1 + command;
      transferOf[base + position] = id;
      of.set(at(node, base + position), base + position);
    }
    if (transfer.kind === "collective") collectiveNeeds(transfer, base, peers, sources);
    else groupNeeds(transfer, base, peers, sources);
  }
  return { count, of, node, transfer: transferOf, first, peers, sources };
}

type Needs = (readonly number[] | null)[];

function collectiveNeeds(
  { participants }: Extract<LinkedTransfer, { kind: "collective" }>,
  base: number,
  peers: Needs,
  sources: Needs,
): void {
  for (const [position, { operation }] of participants.entries()) {
    peers.push(null);
    if (operation.kind !== "collective") sources.push([]);
    else if (dependsOnAll(operation.type)) sources.push(null);
    else {
      const needed = dependsOn(operation.type, participants.length, operation.root, position);
      sources.push(needed.map((other) => base + other));
    }
  }
}

function groupNeeds(
  { participants, edges }: Extract<LinkedTransfer, { kind: "group" }>,
  base: number,
  peers: Needs,
  sources: Needs,
): void {
  const peersOf = participants.map(() => new Set<number>());
  const needs = participants.map(() => new Set<number>());
  for (const { from, to } of edges) {
    at(peersOf, from).add(base + to);
    at(peersOf, to).add(base + from);
    at(needs, to).add(base + from);
  }
  for (const position of participants.keys()) {
    peers.push([...at(peersOf, position)]);
    sources.push([...at(needs, position)]);
  }
}

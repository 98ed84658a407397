/**
 * A run in progress: the tables, the mutable state, and callbacks. The state has no pointers, so several threads may
 * step different queues of one Program over one SharedArrayBuffer. Every word is read and written atomically.
 */
import type { Launch } from "../commands/command.ts";
import type { View } from "../commands/view.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";
import { at, invariant } from "../support/invariant.ts";
import type { Random } from "../support/random.ts";
import type { MachineTables } from "./tables.ts";
import type { MovePhase } from "./transfers/moves.ts";

export interface Observer {
  /** A command begins; its effect comes after this call. For a transfer, its rank has arrived. */
  start(rank: number, command: number): void;
  /**
   * All data that the rank sends and receives in a transfer has moved. A later step ends the command and lets its
   * stream continue.
   */
  moved?(rank: number, command: number): void;
  /** A command has completed: its stream continues. */
  end(rank: number, command: number): void;
}

/** Divides large work among threads. If it returns false, the caller does the work alone. */
export interface Sharing {
  /** The launch or copy at a position of a rank's list. */
  command(rank: number, command: number): boolean;
  phase(phase: MovePhase): boolean;
}

/** The state of a run and the layout of its words. */
export interface RunProgress {
  readonly tables: MachineTables;
  readonly state: Int32Array;
}

/** What a thread needs to run commands that only synchronise: waits, signals and the recording of events. */
export interface Synchronisation extends RunProgress {
  readonly observer: Observer | null;
  /** Called with a queue that may be able to continue. The queue may also be running, or wait for something else. */
  readonly wake: (queue: number) => void;
}

export interface Execution<Saved> extends Synchronisation {
  readonly compute: Compute<Saved>;
  /** Null: the thread that reaches a command does all of it. */
  readonly sharing: Sharing | null;
  /** Null: transfers are synchronous. Eager transfers need a single thread. */
  readonly eager: Eager<Saved> | null;
}

/**
 * The data of eager transfers between the arrival of a rank and the end of its transfer (step.ts).
 */
export interface Eager<Saved> {
  /** Whether the participant that arrives now lets its rank continue as early as its own result allows. */
  readonly coin: () => boolean;
  /** Participants of collectives that may continue. */
  readonly released: Set<number>;
  /** The inputs that were saved, by participant. */
  readonly inputs: Map<number, Saved>;
  /** The data that was sent and not yet received, by the rendezvous of its edge. */
  readonly sends: Map<number, Saved>;
}

/** The state before the first run, all zero; `words` is `tables.layout.words`. */
export function createState({ layout }: MachineTables): Int32Array {
  return new Int32Array(layout.words);
}

/** The number of the run in progress, from 1. Counters over all runs are compared with multiples of it, modulo 2^32. */
export function runNumber(state: Int32Array): number {
  return Atomics.load(state, 0);
}

/** Gives a participant one of the credits that complete it, and wakes its queue. */
export function credit<Saved>({ tables, state, observer, wake }: Execution<Saved>, participant: number): void {
  const { rank, command, queue, credits } = at(tables.participants, participant);
  const word = tables.layout.credits + participant;
  const full = Math.imul(runNumber(state), credits);
  // Observed before the last credit, because the queue may continue at once. Of two concurrent credits, the later one
  // counts.
  const last = ((Atomics.load(state, word) + 1) | 0) === full;
  if (last) observer?.moved?.(rank, command);
  const count = (Atomics.add(state, word, 1) + 1) | 0;
  if (!last && count === full) observer?.moved?.(rank, command);
  wake(queue);
}

/** Adds `ends` to the count of a rendezvous. Returns true for the one call that makes it `full` in this run. */
export function countArrivals({ tables, state }: RunProgress, rendezvous: number, ends: number, full: number): boolean {
  const before = Atomics.add(state, tables.layout.rendezvous + rendezvous, ends);
  return ((before + ends) | 0) === Math.imul(runNumber(state), full);
}

export function hasArrived({ tables, state }: RunProgress, participant: number): boolean {
  return Atomics.load(state, tables.layout.arrivals + participant) === runNumber(state);
}

/** Whether a participant has all the credits that complete it in this run. */
export function isComplete({ tables, state }: RunProgress, participant: number): boolean {
  const { credits } = at(tables.participants, participant);
  return Atomics.load(state, tables.layout.credits + participant) === Math.imul(runNumber(state), credits);
}

/** Begins a run: cursors return to the start; events, arrivals and credits of earlier runs no longer count. */
export function beginRun({ layout, queues }: MachineTables, state: Int32Array): void {
  Atomics.add(state, 0, 1);
  state.fill(0, layout.cursors, layout.cursors + queues.length);
}

/** Resets everything after a run that did not finish. */
export function resetState(state: Int32Array): void {
  state.fill(0);
}

/** A view to read, of live memory or of the bytes that `save` kept. */
export interface SavedSource<Saved> {
  readonly view: View;
  readonly saved: Saved | null;
}

/**
 * What the machine needs from a back end: memory and arithmetic. All views of one call have equal shapes and dtypes.
 * Buffers may be of any rank.
 */
export interface Compute<Saved> {
  launch(rank: number, command: Launch): void;
  copy(source: SavedSource<Saved>, destination: View): void;
  /**
   * Reduces the sources in order, in float32 with one rounding for half and bfloat16. `destination` may be exactly one
   * of the sources; otherwise it overlaps none.
   */
  combine(op: ReductionOpType, sources: readonly SavedSource<Saved>[], destination: View): void;
  /** Keeps the bytes in the range of a view, including gaps, so that any view inside it can be read from them later. */
  save(view: View): Saved;
}

// The set of queues that may be able to take a step. It supports changes in constant time, and choice in order or at
// random.

export interface ReadyQueues {
  add(queue: number): void;
  remove(queue: number): void;
  isEmpty(): boolean;
  /** The first ready queue from `queue` on, wrapping around. */
  from(queue: number): number;
  random(random: Random): number;
}

/** All of the queues 0 .. count-1 are ready. */
export function createReadyQueues(count: number): ReadyQueues {
  const list = Array.from({ length: count }, (_, queue) => queue);
  /** The index of each queue in `list`; -1 if it is not ready. */
  const positions = Int32Array.from(list);
  return {
    add: (queue) => {
      if (positions[queue] !== -1) return;
      positions[queue] = list.length;
      list.push(queue);
    },
    remove: (queue) => {
      const position = at(positions, queue);
      if (position === -1) return;
      const last = list.pop() ?? queue;
      if (last !== queue) {
        list[position] = last;
        positions[last] = position;
      }
      positions[queue] = -1;
    },
    isEmpty: () => list.length === 0,
    from: (queue) => {
      invariant(list.length > 0, "a queue is ready");
      let candidate = queue;
      while (positions[candidate] === -1) candidate = (candidate + 1) % count;
      return candidate;
    },
    random: (random) => at(list, random.integer(list.length)),
  };
}

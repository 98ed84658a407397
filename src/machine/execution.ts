/**
 * A run in progress: the tables, the state that changes, and callbacks. The state holds no pointers, so several threads
 * may step different queues of one Program over one SharedArrayBuffer. Every word is read and written atomically.
 */
import { at } from "../support/invariant.ts";
import type { Phase } from "./transfers/moves.ts";
import type { Tables } from "./tables.ts";
import type { Launch } from "../commands/command.ts";
import type { View } from "../commands/view.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";

export interface Observer {
  /** A command begins; its effect comes after this call. For a transfer, its rank has arrived. */
  start(rank: number, command: number): void;
  /**
   * All that the rank sends and receives in a transfer has moved. Its stream continues in a later step, which ends the
   * command.
   */
  moved?(rank: number, command: number): void;
  /** A command has completed: its stream continues. */
  end(rank: number, command: number): void;
}

/** Large work that several threads do together. If it returns false, the caller does the work alone. */
export interface Sharing {
  /** The launch or copy at a position of a rank's list. */
  command(rank: number, command: number): boolean;
  phase(phase: Phase): boolean;
}

/** The state of a run, with what its words mean. */
export interface Progress {
  readonly tables: Tables;
  readonly state: Int32Array;
}

export interface Execution<Saved> extends Progress {
  readonly compute: Compute<Saved>;
  readonly observer: Observer | null;
  /** Null: the thread that reaches a command does all of it. */
  readonly sharing: Sharing | null;
  /** Null: transfers are synchronous. Eager transfers need a single thread. */
  readonly eager: Eager<Saved> | null;
  /** Called with a queue that may be able to continue; it may also be running, or wait for something else. */
  readonly wake: (queue: number) => void;
}

/** What eager transfers keep between the arrival of a rank and the end of its transfer (transfers/eager-arrival.ts). */
export interface Eager<Saved> {
  /** Whether the member that arrives now lets its rank continue as early as its own result allows. */
  readonly coin: () => boolean;
  /** Members of collectives that may continue. */
  readonly released: Set<number>;
  /** The inputs that were saved, by member. */
  readonly inputs: Map<number, Saved>;
  /** What was sent and not yet received, by the meeting of its edge. */
  readonly sends: Map<number, Saved>;
}

/** The state before the first run, all zero; `words` is `tables.layout.words`. */
export function createState({ layout }: Tables): Int32Array {
  return new Int32Array(layout.words);
}

/** The number of the run in progress, from 1. Counters over all runs are compared with multiples of it, modulo 2^32. */
export function runNumber(state: Int32Array): number {
  return Atomics.load(state, 0);
}

/** Gives a member one of the credits that complete it, and wakes its queue. */
export function credit<Saved>({ tables, state, observer, wake }: Execution<Saved>, member: number): void {
  const { rank, command, queue, credits } = at(tables.members, member);
  const word = tables.layout.credits + member;
  const full = Math.imul(runNumber(state), credits);
  // Observed before the last credit, because the queue may continue at once; of two concurrent credits, after the later
  // one.
  const last = ((Atomics.load(state, word) + 1) | 0) === full;
  if (last) observer?.moved?.(rank, command);
  const count = (Atomics.add(state, word, 1) + 1) | 0;
  if (!last && count === full) observer?.moved?.(rank, command);
  wake(queue);
}

/** Adds `ends` to a meeting's count. Returns true for the one call that makes it `full` in this run. */
export function meet({ tables, state }: Progress, meeting: number, ends: number, full: number): boolean {
  const before = Atomics.add(state, tables.layout.meetings + meeting, ends);
  return ((before + ends) | 0) === Math.imul(runNumber(state), full);
}

/** Whether a member has arrived in this run. */
export function hasArrived({ tables, state }: Progress, member: number): boolean {
  return Atomics.load(state, tables.layout.arrivals + member) === runNumber(state);
}

/** Whether a member has all the credits that complete it in this run. */
export function isComplete({ tables, state }: Progress, member: number): boolean {
  const { credits } = at(tables.members, member);
  return Atomics.load(state, tables.layout.credits + member) === Math.imul(runNumber(state), credits);
}

/** Begins a run: cursors return to the start; events, arrivals and credits of earlier runs no longer count. */
export function beginRun({ layout, queues }: Tables, state: Int32Array): void {
  Atomics.add(state, 0, 1);
  state.fill(0, layout.cursors, layout.cursors + queues.length);
}

/** Resets everything after a run that did not finish. */
export function resetState(state: Int32Array): void {
  state.fill(0);
}

/** What is read: a view of live memory, or of the bytes that `save` kept of the view around it. */
export interface Source<Saved> {
  readonly view: View;
  readonly saved: Saved | null;
}

/**
 * What the machine needs from a back end: memory and arithmetic. All views of one call have equal shapes and dtypes.
 * Buffers may be of any rank.
 */
export interface Compute<Saved> {
  launch(rank: number, command: Launch): void;
  copy(source: Source<Saved>, destination: View): void;
  /**
   * The sources combined in order, in float32 for half and bfloat16 with one rounding. `destination` may be one of the
   * sources exactly, and overlaps none otherwise.
   */
  combine(op: ReductionOpType, sources: readonly Source<Saved>[], destination: View): void;
  /** Keeps the bytes that lie under a view, gaps included, so that any view inside it can be read from them later. */
  save(view: View): Saved;
}

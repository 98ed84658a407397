/**
 * Tracks which queues (streams) are ready, over one shared Int32Array and without locks. A queue is parked, ready,
 * running or done. Workers take ready queues from one FIFO ring. No thread ever waits for a queue: a blocked queue
 * parks, and whichever worker unblocks it makes it ready.
 *
 * The ring is Dmitry Vyukov's bounded MPMC queue: a sequence number per cell says whose turn it is. It never overflows,
 * because a queue is in it at most once.
 */
import { at } from "../../../support/invariant.ts";

const words = {
  /** 1: workers leave as soon as they can. */
  abort: 0,
  /** 1: no queue is ready or running any more. */
  ended: 1,
  /** Queues that are ready or running. */
  active: 2,
  /** Queues that have run all their commands. */
  done: 3,
  head: 4,
  tail: 5,
  /** Changes whenever a sleeping worker should look again. */
  alarm: 6,
  sleepers: 7,
  /** Workers that have not joined the run yet or found nothing to do, asleep or not. */
  idle: 8,
} as const;
const wordCount = 9;

const states = { parked: 0, ready: 1, running: 2, notified: 3, done: 4 } as const;

export interface Scheduler {
  readonly shared: Int32Array;
  readonly queueCount: number;
  /** The number of cells of the ring minus 1: a mask, because that number is a power of two. */
  readonly mask: number;
}

function ringSize(queueCount: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(2, queueCount)));
}

export function schedulerWords(queueCount: number): number {
  return wordCount + queueCount + 2 * ringSize(queueCount);
}

/** `shared` has `schedulerWords(queueCount)` elements. */
export function createScheduler(shared: Int32Array, queueCount: number): Scheduler {
  return { shared, queueCount, mask: ringSize(queueCount) - 1 };
}

/**
 * Called before workers start: all queues that have commands become ready, in order. A run that is `held` does not end
 * before `releaseRun`, even if all queues are parked.
 */
export function beginSchedule(
  { shared, queueCount, mask }: Scheduler,
  lengths: readonly number[],
  workers: number,
  held = false,
): void {
  shared.fill(0);
  const ready = lengths.flatMap((length, queue) => (length > 0 ? [queue] : []));
  for (let queue = 0; queue < queueCount; queue++)
    shared[wordCount + queue] = at(lengths, queue) > 0 ? states.ready : states.done;
  for (let cell = 0; cell <= mask; cell++) shared[sequenceWord(queueCount, cell)] = cell;
  ready.forEach((queue, cell) => {
    shared[sequenceWord(queueCount, cell)] = cell + 1;
    shared[valueWord(queueCount, mask, cell)] = queue;
  });
  shared[words.tail] = ready.length;
  const active = ready.length + (held ? 1 : 0);
  shared[words.active] = active;
  shared[words.done] = queueCount - ready.length;
  shared[words.ended] = active === 0 ? 1 : 0;
  shared[words.idle] = workers;
}

/** A worker joins the run. */
export function enterRun({ shared }: Scheduler): void {
  Atomics.sub(shared, words.idle, 1);
}

/** Takes the next ready queue and marks it as running; null if none is ready now. */
export function takeQueue({ shared, queueCount, mask }: Scheduler): number | null {
  for (;;) {
    const position = Atomics.load(shared, words.head);
    const cell = position & mask;
    const turn = (Atomics.load(shared, sequenceWord(queueCount, cell)) - (position + 1)) | 0;
    if (turn < 0) return null;
    if (turn > 0 || Atomics.compareExchange(shared, words.head, position, (position + 1) | 0) !== position) continue;
    const queue = Atomics.load(shared, valueWord(queueCount, mask, cell));
    Atomics.store(shared, sequenceWord(queueCount, cell), (position + mask + 1) | 0);
    Atomics.store(shared, wordCount + queue, states.running);
    return queue;
  }
}

/** Call when the queue may be able to continue. */
export function wakeQueue(scheduler: Scheduler, queue: number): void {
  if (unpark(scheduler, queue, states.ready)) enqueue(scheduler, queue);
}

/**
 * As `wakeQueue`, for a caller that runs the queue itself: marks it as running. False if it was not parked; a worker that
 * runs it then looks again.
 */
export function takeParked(scheduler: Scheduler, queue: number): boolean {
  return unpark(scheduler, queue, states.running);
}

/** Puts a running queue that can continue at the end of the ring. */
export function requeue(scheduler: Scheduler, queue: number): void {
  Atomics.store(scheduler.shared, wordCount + queue, states.ready);
  enqueue(scheduler, queue);
}

/**
 * Parks a running queue that is blocked. Returns false if something woke it after it was found blocked; the caller then
 * tries again.
 */
export function parkQueue(scheduler: Scheduler, queue: number): boolean {
  const { shared } = scheduler;
  const word = wordCount + queue;
  if (Atomics.compareExchange(shared, word, states.running, states.parked) !== states.running) {
    Atomics.store(shared, word, states.running);
    return false;
  }
  deactivate(scheduler);
  return true;
}

export function finishQueue(scheduler: Scheduler, queue: number): void {
  Atomics.store(scheduler.shared, wordCount + queue, states.done);
  Atomics.add(scheduler.shared, words.done, 1);
  deactivate(scheduler);
}

export function allDone({ shared, queueCount }: Scheduler): boolean {
  return Atomics.load(shared, words.done) === queueCount;
}

/** Whether a held run has nothing to do until something outside happens. */
export function onlyHeld({ shared }: Scheduler): boolean {
  return Atomics.load(shared, words.active) === 1;
}

/** Ends the hold of a run that began as held. */
export function releaseRun(scheduler: Scheduler): void {
  deactivate(scheduler);
}

/** Whether workers should leave: nothing can run any more, or the run is aborted. */
export function isOver({ shared }: Scheduler): boolean {
  return Atomics.load(shared, words.ended) === 1 || Atomics.load(shared, words.abort) === 1;
}

/** Aborts the run. */
export function abortSchedule(scheduler: Scheduler): void {
  Atomics.store(scheduler.shared, words.abort, 1);
  alarm(scheduler, Infinity);
}

/**
 * For a worker with nothing to do: checks about `spins` times for a ready queue or for work that `hasWork` knows, then
 * sleeps until there may be some, at most 100 ms.
 */
export function awaitWork(scheduler: Scheduler, spins: number, hasWork: () => boolean): void {
  const { shared } = scheduler;
  const mayStop = (): boolean => hasReady(scheduler) || isOver(scheduler) || hasWork();
  Atomics.add(shared, words.idle, 1);
  let looks = 0;
  while (looks < spins && !mayStop()) looks++;
  if (looks === spins) {
    const seen = Atomics.load(shared, words.alarm);
    Atomics.add(shared, words.sleepers, 1);
    // A worker that creates work after this check sees the sleeper and raises the alarm.
    if (!mayStop()) Atomics.wait(shared, words.alarm, seen, longestSleep);
    Atomics.sub(shared, words.sleepers, 1);
  }
  Atomics.sub(shared, words.idle, 1);
}

/** Whether some worker is idle. */
export function hasIdleWorker({ shared }: Scheduler): boolean {
  return Atomics.load(shared, words.idle) > 0;
}

/** Wakes that many sleeping workers. */
export function callWorkers(scheduler: Scheduler, count: number): void {
  if (Atomics.load(scheduler.shared, words.sleepers) > 0) alarm(scheduler, count);
}

/** Milliseconds: bounds the cost of a lost alarm. */
const longestSleep = 100;

function hasReady({ shared, queueCount, mask }: Scheduler): boolean {
  const position = Atomics.load(shared, words.head);
  return Atomics.load(shared, sequenceWord(queueCount, position & mask)) === ((position + 1) | 0);
}

/** Gives a parked queue its next state; false if it was not parked. A running queue is notified. */
function unpark({ shared }: Scheduler, queue: number, next: number): boolean {
  const word = wordCount + queue;
  for (;;) {
    const state = Atomics.load(shared, word);
    if (state === states.parked) {
      if (Atomics.compareExchange(shared, word, states.parked, next) !== states.parked) continue;
      Atomics.add(shared, words.active, 1);
      return true;
    }
    if (state !== states.running) return false;
    if (Atomics.compareExchange(shared, word, states.running, states.notified) === states.running) return false;
  }
}

function deactivate(scheduler: Scheduler): void {
  if (Atomics.sub(scheduler.shared, words.active, 1) !== 1) return;
  Atomics.store(scheduler.shared, words.ended, 1);
  alarm(scheduler, Infinity);
}

function enqueue(scheduler: Scheduler, queue: number): void {
  const { shared, queueCount, mask } = scheduler;
  for (;;) {
    const position = Atomics.load(shared, words.tail);
    const cell = position & mask;
    if (Atomics.load(shared, sequenceWord(queueCount, cell)) !== position) continue;
    if (Atomics.compareExchange(shared, words.tail, position, (position + 1) | 0) !== position) continue;
    Atomics.store(shared, valueWord(queueCount, mask, cell), queue);
    Atomics.store(shared, sequenceWord(queueCount, cell), (position + 1) | 0);
    break;
  }
  if (Atomics.load(shared, words.sleepers) > 0) alarm(scheduler, 1);
}

function alarm({ shared }: Scheduler, count: number): void {
  Atomics.add(shared, words.alarm, 1);
  Atomics.notify(shared, words.alarm, count);
}

function sequenceWord(queueCount: number, cell: number): number {
  return wordCount + queueCount + cell;
}

function valueWord(queueCount: number, mask: number, cell: number): number {
  return wordCount + queueCount + mask + 1 + cell;
}

/**
 * Which queues (streams) are ready, over one shared Int32Array and without locks. A queue is parked, ready, running or done; workers
 * take ready ones from one FIFO ring. No thread ever waits for a queue: one that cannot go on parks, and whoever makes it able to go
 * on makes it ready.
 *
 * The ring is Dmitry Vyukov's bounded MPMC queue: a sequence number per cell says whose turn it is. It never overflows, because a queue
 * is in it at most once.
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
  /** Workers that have not come to the run yet, or found nothing to do, asleep or not. */
  idle: 8,
} as const;
const wordCount = 9;

const states = { parked: 0, ready: 1, running: 2, notified: 3, done: 4 } as const;

export interface Scheduler {
  readonly shared: Int32Array;
  readonly queueCount: number;
  /** Cells of the ring minus 1: a mask, as their number is a power of two. */
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

/** Before workers start: all queues that have commands are ready, in order. */
export function beginSchedule(
  { shared, queueCount, mask }: Scheduler,
  lengths: readonly number[],
  workers: number,
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
  shared[words.active] = ready.length;
  shared[words.done] = queueCount - ready.length;
  shared[words.ended] = ready.length === 0 ? 1 : 0;
  shared[words.idle] = workers;
}

/** A worker takes up the run. */
export function enterRun({ shared }: Scheduler): void {
  Atomics.sub(shared, words.idle, 1);
}

/** The next ready queue, now running; null when there is none at the moment. */
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

/** The queue may be able to go on now. */
export function wakeQueue(scheduler: Scheduler, queue: number): void {
  const { shared } = scheduler;
  const word = wordCount + queue;
  for (;;) {
    const state = Atomics.load(shared, word);
    if (state === states.parked) {
      if (Atomics.compareExchange(shared, word, states.parked, states.ready) !== states.parked) continue;
      Atomics.add(shared, words.active, 1);
      enqueue(scheduler, queue);
      return;
    }
    if (state !== states.running) return;
    if (Atomics.compareExchange(shared, word, states.running, states.notified) === states.running) return;
  }
}

/** Puts a running queue that can go on behind the others. */
export function requeue(scheduler: Scheduler, queue: number): void {
  Atomics.store(scheduler.shared, wordCount + queue, states.ready);
  enqueue(scheduler, queue);
}

/** Parks a running queue that is blocked. False if something has woken it since it was found blocked: it is to be tried again. */
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

/** Whether workers are to leave: nothing is left that could run, or the run is to be given up. */
export function isOver({ shared }: Scheduler): boolean {
  return Atomics.load(shared, words.ended) === 1 || Atomics.load(shared, words.abort) === 1;
}

/** Gives the run up. */
export function abortSchedule(scheduler: Scheduler): void {
  Atomics.store(scheduler.shared, words.abort, 1);
  alarm(scheduler, Infinity);
}

/**
 * For a worker that finds nothing to do: looks about `spins` times for a ready queue or for what `hasWork` knows, then sleeps until there
 * may be something (or 100 ms).
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
    // Whoever makes work after this look sees the sleeper and raises the alarm.
    if (!mayStop()) Atomics.wait(shared, words.alarm, seen, longestSleep);
    Atomics.sub(shared, words.sleepers, 1);
  }
  Atomics.sub(shared, words.idle, 1);
}

/** Whether some worker has nothing to do. */
export function hasIdleWorker({ shared }: Scheduler): boolean {
  return Atomics.load(shared, words.idle) > 0;
}

/** Calls as many sleeping workers to look again. */
export function callWorkers(scheduler: Scheduler, count: number): void {
  if (Atomics.load(scheduler.shared, words.sleepers) > 0) alarm(scheduler, count);
}

/** Milliseconds: bounds what a lost alarm could cost. */
const longestSleep = 100;

function hasReady({ shared, queueCount, mask }: Scheduler): boolean {
  const position = Atomics.load(shared, words.head);
  return Atomics.load(shared, sequenceWord(queueCount, position & mask)) === ((position + 1) | 0);
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

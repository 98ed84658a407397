/**
 * The set of queues that may be able to take a step. It supports changes in constant time, and choice in order or at
 * random.
 */
import type { Random } from "../support/random.ts";
import { at, invariant } from "../support/invariant.ts";

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

/**
 * One run of a World as far as it goes, while at most one command is held: it starts, and does not complete. What has
 * started then does not depend on the order of the steps, unless a slot is signalled twice, which is told.
 */
import { at } from "../../../src/support/invariant.ts";
import type { World } from "./world.ts";

export interface Outcome {
  /** 1 for every node that has started. */
  readonly started: Uint8Array;
  /** Nodes that have completed, in that order. */
  readonly completed: readonly number[];
  /** A signal found its slot's last signal not taken, or a signal or wait came before one that its list has first. */
  readonly overrun: boolean;
  /** Every queue is at its end. */
  readonly finished: boolean;
}

/** `held`: a node, or -1 for none. */
export function runWorld(world: World, mode: "eager" | "synchronous", held: number): Outcome {
  const { nodes, queues, slotCount, eventCount } = world;
  const started = new Uint8Array(nodes.length);
  const completed: number[] = [];
  const cursors = new Int32Array(queues.length);
  const events = new Uint8Array(eventCount);
  const slots = new Uint8Array(slotCount);
  const turns = { signal: new Int32Array(slotCount), take: new Int32Array(slotCount) };
  let overrun = false;

  /** Whether the node completes now; it may start only. */
  const attempt = (id: number): boolean => {
    const { work } = at(nodes, id);
    switch (work.kind) {
      case "memory":
        started[id] = 1;
        return id !== held;
      case "record":
        started[id] = 1;
        events[work.event] = 1;
        return true;
      case "wait":
        if (events[work.event] !== 1) return false;
        started[id] = 1;
        return true;
      case "signal":
        if (slots[work.slot] === 1 || turns.signal[work.slot] !== work.turn) {
          overrun = true;
          return false;
        }
        started[id] = 1;
        slots[work.slot] = 1;
        turns.signal[work.slot] = work.turn + 1;
        return true;
      case "take":
        if (slots[work.slot] !== 1) return false;
        if (turns.take[work.slot] !== work.turn) {
          overrun = true;
          return false;
        }
        started[id] = 1;
        if (id === held) return false;
        slots[work.slot] = 0;
        turns.take[work.slot] = work.turn + 1;
        return true;
      case "transfer":
        started[id] = 1;
        return id !== held && work[mode].every((other) => started[other] === 1);
    }
  };

  for (let moved = true; moved;) {
    moved = false;
    for (let q = 0; q < queues.length; q++) {
      const queue = at(queues, q);
      for (let next = at(cursors, q); next < queue.length; next++) {
        const id = at(queue, next);
        const before = started[id];
        const done = attempt(id);
        if (done || started[id] !== before) moved = true;
        if (!done) break;
        completed.push(id);
        cursors[q] = next + 1;
      }
    }
  }
  return { started, completed, overrun, finished: queues.every((queue, q) => cursors[q] === queue.length) };
}

/** Queues of nodes that run until they block, in turn, until all have ended or none can go on. */
import { at } from "../../support/invariant.ts";

/**
 * Whether all queues end. `step` runs a node of a queue, at `index` of `length`; false if it has to wait. `stops` ends
 * the run early.
 */
export function advanceAll(
  queues: readonly Int32Array[],
  step: (node: number, index: number, length: number) => boolean,
  stops: () => boolean = () => false,
): boolean {
  const done = new Int32Array(queues.length);
  for (let progress = true; progress && !stops();) {
    progress = false;
    for (const [queue, nodes] of queues.entries()) {
      let index = at(done, queue);
      const before = index;
      while (index < nodes.length && step(at(nodes, index), index, nodes.length)) index++;
      done[queue] = index;
      if (index > before) progress = true;
    }
  }
  return queues.every((nodes, queue) => done[queue] === nodes.length);
}

/**
 * Whether the ranks can run the next case together: no rank has given up, and the last case ended in the same way on
 * all ranks.
 */
import type { World } from "../../src/launch/join-world.ts";

/** `done`: whether this rank finished the case. */
export async function goesOn(world: World, done = true): Promise<boolean> {
  const state = world.signal.aborted ? 2 : done ? 1 : 0;
  const states = await world.allGather(Uint8Array.of(state));
  return states.every(([each]) => each === state && each !== 2);
}

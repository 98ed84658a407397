/** Waits without blocking the process, so that messages of other ranks still arrive. */
import { setImmediate, setTimeout } from "node:timers/promises";

/** Waits at least `milliseconds`; 0 only runs what is due. */
export async function pause(milliseconds: number): Promise<void> {
  if (milliseconds === 0) await setImmediate();
  else await setTimeout(milliseconds);
}

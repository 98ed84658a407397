/** Waiting without blocking the process: messages of other ranks are heard meanwhile. */
import { setImmediate, setTimeout } from "node:timers/promises";

/** At least `milliseconds`; 0 lets only what is due run. */
export async function pause(milliseconds: number): Promise<void> {
  if (milliseconds === 0) await setImmediate();
  else await setTimeout(milliseconds);
}

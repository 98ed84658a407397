/** The time of a command by its bytes, and what is assumed where the profile has too few of them. */
import { type Assume, assumedErrors, doublings } from "./assumption.ts";
import type { CommandClass } from "./command-class.ts";
import { timeOf } from "./interpolate.ts";
import type { Timing } from "./machine-profile.ts";

/**
 * Microseconds for the bytes. Above the largest that were timed, the time is an assumption, unless the profile gives a
 * line by its one or two points.
 */
export function timed(timings: readonly Timing[], bytes: number, of: CommandClass, assume: Assume): number {
  const most = timings.at(-1)?.bytes ?? 0;
  if (timings.length > 2 && bytes > most) {
    const text = `${commandsOf[of]} of more than ${most} bytes are timed at the rate of the largest that were measured`;
    assume({ text, of, error: assumedErrors.moreBytes * doublings(bytes, most) });
  }
  return timeOf(timings, bytes);
}

/** The commands of a class, in a sentence. */
export const commandsOf: { readonly [C in CommandClass]: string } = {
  gemms: "GEMMs",
  kernels: "kernels",
  copies: "copies",
  transfers: "transfers",
  reductionsInPeers: "kernels in peers' memory",
  host: "commands",
};

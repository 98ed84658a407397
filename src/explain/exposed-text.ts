/** Exposed time in words. */
import { timeText } from "../support/quantities.ts";

/** Milliseconds. Below 0, chunks on several streams fill gaps that the kernels of the serial form leave. */
export function exposedText(exposed: number): string {
  if (exposed >= 0) return `${timeText(exposed)} exposed`;
  return `nothing exposed, ${timeText(-exposed)} shorter than the serial form's kernels alone`;
}

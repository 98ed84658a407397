/**
 * The critical path of a run: from the command that ended last, back to the one that it waited for last, and so on. A
 * command waits for others' results, for the link that another copy holds, or for its rank's kernels that run.
 */
import type { Program } from "../../commands/program.ts";
import { createKernelHolders } from "../../explain/idle/kernel-holders.ts";
import { createLinkHolders } from "../../explain/idle/links.ts";
import type { Timing } from "../../explain/idle/timing.ts";
import { at } from "../../support/invariant.ts";

/** The numbers of its launches, copies and transfers, in order of time. */
export function criticalPath(program: Program, timing: Timing): readonly number[] {
  const { end, isWork, after } = timing;
  const holderBefore = createLinkHolders(program, timing);
  const kernelBefore = createKernelHolders(program, timing);
  let last = -1;
  for (const [number, works] of isWork.entries()) {
    if (works === 1 && (last < 0 || at(end, number) > at(end, last))) last = number;
  }
  const path: number[] = [];
  // Commands that take no time can hold a link for each other.
  const seen = new Set<number>();
  while (last >= 0 && !seen.has(last)) {
    seen.add(last);
    path.push(last);
    const holders = [holderBefore(last), kernelBefore(last)];
    last = holders.find((holder) => holder >= 0) ?? at(after, last);
  }
  return path.toReversed();
}

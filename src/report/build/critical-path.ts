/**
 * The critical path of a run: from the command that ended last, back to the one that it waited for last, and so on. A
 * command waits for others' results, for the link that another copy holds, or for its rank's kernels that run.
 */
import { touchesPeers } from "../../commands/barriers.ts";
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { createLinkHolders } from "../../explain/links.ts";
import type { Timing } from "../../explain/timing.ts";
import { at } from "../../support/invariant.ts";

/** Starts and ends of one moment may differ by rounding: a picosecond. */
const epsilon = 1e-9;

/** The numbers of its launches, copies and transfers, in order of time. */
export function criticalPath(program: Program, timing: Timing): readonly number[] {
  const { start, end, isWork, after, ready } = timing;
  const holderBefore = createLinkHolders(program, timing);
  const kernelBefore = createKernelsBefore(program, timing);
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
    const waited = at(start, last) > at(ready, last) + epsilon;
    const holders = waited ? [holderBefore(last), kernelBefore(last)] : [];
    last = holders.find((holder) => holder >= 0) ?? at(after, last);
  }
  return path.toReversed();
}

/**
 * The kernel that ended last before a command began, after the command was ready, on its rank or those of its peers;
 * -1 without one. Copy engines do not wait for kernels.
 */
function createKernelsBefore(program: Program, timing: Timing): (number: number) => number {
  const { dependences, start, end, ready } = timing;
  const { rankOf, indexOf, first, peers } = dependences;
  const commandOf = (number: number): Command => at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const byRank = program.ranks.map((): readonly number[] | null => null);
  const kernelsOf = (rank: number): readonly number[] => {
    const known = byRank[rank] ?? null;
    if (known !== null) return known;
    const own: number[] = [];
    for (let number = at(first, rank); number < at(first, rank + 1); number++) {
      const command = commandOf(number);
      if (command.kind === "launch" && !touchesPeers(program, rank, command)) own.push(number);
    }
    own.sort((a, b) => at(end, a) - at(end, b));
    byRank[rank] = own;
    return own;
  };
  const lastOn = (rank: number, number: number): number => {
    const own = kernelsOf(rank);
    let [low, high] = [0, own.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(end, at(own, middle)) <= at(start, number) + epsilon) low = middle + 1;
      else high = middle;
    }
    const before = own[low - 1] ?? -1;
    return before >= 0 && before !== number && at(end, before) > at(ready, number) ? before : -1;
  };
  return (number) => {
    const command = commandOf(number);
    if (command.kind === "copy" && command.engine !== "kernel") return -1;
    return [number, ...peers(number)]
      .map((each) => lastOn(rankOf(each), number))
      .reduce((latest, each) => (each >= 0 && (latest < 0 || at(end, each) > at(end, latest)) ? each : latest), -1);
  };
}

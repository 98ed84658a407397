/** Which kernel held a device, or its SMs, while a command waited for them. */
import { touchesPeers } from "../../commands/barriers.ts";
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { lastEnded, type Timing } from "./timing.ts";

/** Starts and ends of one moment may differ by rounding: a picosecond. */
const epsilon = 1e-9;

/** Whether a command is a kernel on the rank's own memory: work that hides communication. */
export function isKernel(program: Program, rank: number, command: Command): boolean {
  return command.kind === "launch" && !touchesPeers(program, rank, command);
}

/**
 * The kernel that ended last before a command began, after the command was ready, on its rank or those of its peers;
 * -1 without one. Copy engines do not wait for kernels.
 */
export function createKernelHolders(program: Program, timing: Timing): (number: number) => number {
  const { dependences, start, end, ready } = timing;
  const { rankOf, indexOf, first, peers } = dependences;
  const commandOf = (number: number): Command => at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const byRank = program.ranks.map((): readonly number[] | null => null);
  const kernelsOf = (rank: number): readonly number[] => {
    const known = byRank[rank] ?? null;
    if (known !== null) return known;
    const own: number[] = [];
    for (let number = at(first, rank); number < at(first, rank + 1); number++) {
      if (isKernel(program, rank, commandOf(number))) own.push(number);
    }
    own.sort((a, b) => at(end, a) - at(end, b));
    byRank[rank] = own;
    return own;
  };
  const lastOn = (rank: number, number: number): number => {
    const before = lastEnded(kernelsOf(rank), end, at(start, number) + epsilon, number);
    return before >= 0 && at(end, before) > at(ready, number) ? before : -1;
  };
  return (number) => {
    if (at(start, number) <= at(ready, number) + epsilon) return -1;
    if (commandOf(number).kind === "copy") return -1;
    return [number, ...peers(number)]
      .map((each) => lastOn(rankOf(each), number))
      .reduce((latest, each) => (each >= 0 && (latest < 0 || at(end, each) > at(end, latest)) ? each : latest), -1);
  };
}

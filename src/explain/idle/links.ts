/** Which copies use which direction of a rank's link, and which of them another copy had to wait for. */
import { touchesPeers } from "../../commands/barriers.ts";
import type { Command } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { commandPeer } from "../../trace/command-work.ts";
import { lastEnded, type CommandTiming, workByEnd } from "./timing.ts";

/** `out 0`: what rank 0 sends. */
export type LinkDirection = `${"out" | "in"} ${number}`;

/** The directions that the command at `index` of `rank`'s list moves data over; none for a library's transfers. */
export function linksOf(program: Program, rank: number, index: number): readonly LinkDirection[] {
  const command = at(at(program.ranks, rank).commands, index);
  if (touchesPeers(program, rank, command)) return [`out ${rank}`, `in ${rank}`];
  const peer = commandPeer(program, rank, command);
  if (peer === null) return [];
  const [from, to] = peer.direction === "from" ? [peer.rank, rank] : [rank, peer.rank];
  return [`out ${from}`, `in ${to}`];
}

/**
 * The command that left a link just before `number` started on it; -1 if all its links were free when it was ready.
 */
export function createLinkHolders(program: Program, timing: CommandTiming): (number: number) => number {
  const { dependences, start, end, ready } = timing;
  const { rankOf, indexOf } = dependences;
  let users: ReadonlyMap<LinkDirection, readonly number[]> | null = null;

  return (number) => {
    const begin = at(start, number) + 1e-9;
    if (begin - at(ready, number) < 2e-9) return -1;
    users ??= workByEnd(timing, (other) =>
      linksOf(program, rankOf(other), indexOf(other)).map((link) => [link, other]),
    );
    let holder = -1;
    for (const link of linksOf(program, rankOf(number), indexOf(number))) {
      const last = lastEnded(users.get(link) ?? [], end, begin, number);
      if (last >= 0 && (holder < 0 || at(end, last) > at(end, holder))) holder = last;
    }
    return holder >= 0 && at(end, holder) > at(ready, number) ? holder : -1;
  };
}

// Which kernel held a device, or its SMs, while a command waited for them.

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
export function createKernelHolders(program: Program, timing: CommandTiming): (number: number) => number {
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

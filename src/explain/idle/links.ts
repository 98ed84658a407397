/** Which copies use which direction of a rank's link, and which of them another copy had to wait for. */
import { touchesPeers } from "../../commands/barriers.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { peerOf } from "../../trace/command-work.ts";
import { lastEnded, type Timing, workByEnd } from "./timing.ts";

/** `out 0`: what rank 0 sends. */
export type Link = `${"out" | "in"} ${number}`;

/** The directions that the command at `index` of `rank`'s list moves data over; none for a library's transfers. */
export function linksOf(program: Program, rank: number, index: number): readonly Link[] {
  const command = at(at(program.ranks, rank).commands, index);
  if (touchesPeers(program, rank, command)) return [`out ${rank}`, `in ${rank}`];
  const peer = peerOf(program, rank, command);
  if (peer === null) return [];
  const [from, to] = peer.direction === "from" ? [peer.rank, rank] : [rank, peer.rank];
  return [`out ${from}`, `in ${to}`];
}

/**
 * The command that left a link just before `number` started on it; -1 if all its links were free when it was ready.
 */
export function createLinkHolders(program: Program, timing: Timing): (number: number) => number {
  const { dependences, start, end, ready } = timing;
  const { rankOf, indexOf } = dependences;
  let users: ReadonlyMap<Link, readonly number[]> | null = null;

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

/**
 * The waits at the end of a rank's list, behind all that it tells others: whenever they end, no other rank is held up. Where the same
 * commands need all of them, such as the one sum of everything that arrives, or nothing but frees does, they might as well be one.
 *
 *     signal, signal, wait 1, wait 2, sum        wait 1 and wait 2
 *     signal, signal, wait 1, sum, wait 2, sum   neither: the first sum needs one alone
 */
import { at } from "../support/invariant.ts";
import { dependencesOf, dependentsOf } from "./dependences.ts";
import { type Draft, isSignalling } from "./draft.ts";
import type { Memory } from "./memory.ts";
import { inMeetings } from "./node-groups.ts";

/** Positions, ascending; none where different commands need them. */
export function lateWaits(draft: Draft, memory: Memory): readonly number[] {
  const { nodes } = draft;
  const last = nodes.findLastIndex(({ command }) => isSignalling(command));
  const isMet = inMeetings(draft, memory);
  const waits = nodes.flatMap(({ command }, position) =>
    command.kind === "waitSignal" && position > last && !at(isMet, position) ? [position] : [],
  );
  const after = dependentsOf(dependencesOf(nodes, memory));
  const needs = waits.map((position) =>
    at(after, position).filter((other) => at(nodes, other).command.kind !== "free"),
  );
  return needs.every((others) => others.join() === at(needs, 0).join()) ? waits : [];
}

/**
 * The moments of a rank in which none of its kernels run, each with its cause. From the kernel that ends such a gap, the
 * walk goes back through the commands that ended last among those waited for, and gives each the part of the gap in
 * which it ran:
 *
 *     kernels   [ GEMM 0 ]............[ GEMM 1 ]      the gap: 1 us of latency before GEMM 1,
 *     copies           [   chunk 1   ]                the rest while chunk 1 moves
 *
 * The parts of a gap tile it, so causes add up to the rank's idle time.
 */
import { touchesPeers } from "../commands/barriers.ts";
import type { Command } from "../commands/command.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { peerOf } from "../trace/command-work.ts";
import type { Cause } from "./causes.ts";
import { createDataReady } from "./data-ready.ts";
import { createLinkHolders } from "./links.ts";
import type { RegionOf } from "./regions.ts";
import type { Timing } from "./timing.ts";

/** Part of a gap, in milliseconds. */
export interface IdlePart {
  readonly cause: Cause;
  readonly start: number;
  readonly end: number;
  /** The command that the rank waited for; -1 for the host. */
  readonly command: number;
}

export interface IdleTime {
  readonly rank: number;
  /** From the first command of the run to the last command of the rank. */
  readonly end: number;
  /** Milliseconds in which a kernel of the rank runs. */
  readonly kernels: number;
  /** In order of time. */
  readonly parts: readonly IdlePart[];
}

/** Shorter differences are rounding: a picosecond. */
const epsilon = 1e-9;

/** `issued`: when the host has issued a command, if it issues one after the other. */
export function idleTimeOf(
  program: Program,
  timing: Timing,
  regionOf: RegionOf,
  rank: number,
  issued: ((index: number) => number) | null = null,
): IdleTime {
  const { dependences, start, end, after, ready } = timing;
  const { first, rankOf, indexOf } = dependences;
  const commandOf = (number: number): Command => at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const isKernel = (number: number): boolean => {
    const command = commandOf(number);
    return command.kind === "launch" && !touchesPeers(program, rankOf(number), command);
  };
  const own = Array.from({ length: at(first, rank + 1) - at(first, rank) }, (_, i) => at(first, rank) + i);
  const kernels = own.filter(isKernel).sort((a, b) => at(start, a) - at(start, b));
  const spans = spansOf(kernels, timing, regionOf);
  const dataReady = createDataReady(program, timing);
  const holderBefore = createLinkHolders(program, timing);
  const parts: IdlePart[] = [];

  const communication = (number: number, from: number, to: number): Cause => {
    const region = regionOf(rankOf(number), indexOf(number));
    const span = spans.get(region.id);
    if (!region.isLoop || span === undefined) return "notInLoop";
    if (to <= span.start + epsilon) return "firstChunk";
    return from >= span.end - epsilon ? "lastChunk" : "linkBound";
  };

  /** The part of a communication that is exposed only because it started late; null if it started when it could. */
  const delayOf = (number: number): { readonly cause: Cause; readonly time: number } | null => {
    const waited = at(start, number) - at(ready, number);
    if (waited > epsilon && needsSms(commandOf(number))) return { cause: "sms", time: waited };
    const before = at(after, number);
    if (before < 0 || !isKernel(before)) return null;
    const time = at(ready, number) - dataReady(number);
    return time > epsilon ? { cause: "reuse", time } : null;
  };

  /** Why a command did not start as soon as it was ready. */
  const startOf = (number: number): Cause =>
    issued !== null && issued(indexOf(number)) > at(ready, number) + epsilon ? "host" : "latency";

  /** Adds the parts of [from, to], in which the rank waits for the start of `number`; -1 for the end of the run. */
  const walk = (number: number, last: number, from: number, to: number): void => {
    let time = to;
    const add = (cause: Cause, until: number, command: number): void => {
      const begin = Math.max(from, until);
      if (begin < time) parts.push({ cause, start: begin, end: time, command });
      time = Math.min(time, begin);
    };
    let next = last;
    if (number >= 0) {
      add(startOf(number), at(after, number) < 0 ? from : at(ready, number), number);
      next = at(after, number);
    } else add("latency", next < 0 ? from : at(end, next), next);
    // Commands that take no time can hold a link for each other.
    const seen = new Set<number>();
    while (time > from && next >= 0 && !seen.has(next)) {
      const running = next;
      seen.add(running);
      if (isKernel(running)) {
        if (rankOf(running) === rank) break;
        add("latePeer", at(start, running), running);
      } else addCommunication(running, from, time, add);
      const holder = holderBefore(running);
      if (holder < 0) add(startOf(running), at(after, running) < 0 ? from : at(ready, running), running);
      next = holder < 0 ? at(after, running) : holder;
    }
    add("latency", from, next);
  };

  const addCommunication = (
    number: number,
    from: number,
    to: number,
    add: (cause: Cause, until: number, command: number) => void,
  ): void => {
    const command = commandOf(number);
    if (command.kind === "copy" && peerOf(program, rankOf(number), command) === null) {
      return add("localCopy", at(start, number), number);
    }
    const begin = Math.max(from, at(start, number));
    const delay = delayOf(number);
    // Without the delay it would have ended that much earlier.
    if (delay !== null) add(delay.cause, Math.max(begin, to - delay.time), number);
    add(communication(number, from, to), at(start, number), number);
  };

  let busy = 0;
  let now = 0;
  for (const kernel of kernels) {
    if (at(start, kernel) > now + epsilon) walk(kernel, -1, now, at(start, kernel));
    busy += Math.max(0, at(end, kernel) - Math.max(now, at(start, kernel)));
    now = Math.max(now, at(end, kernel));
  }
  const last = own.reduce((latest, number) => (at(end, number) >= at(end, latest) ? number : latest), own[0] ?? -1);
  const finish = last < 0 ? 0 : at(end, last);
  if (finish > now + epsilon) walk(-1, timing.isWork[last] === 1 ? last : at(after, last), now, finish);
  parts.sort((a, b) => a.start - b.start);
  return { rank, end: Math.max(now, finish), kernels: busy, parts };
}

function needsSms(command: Command): boolean {
  return command.kind !== "copy" || command.engine === "kernel";
}

/** When the kernels of each region run on the rank, from the first to the last. */
function spansOf(
  kernels: readonly number[],
  { dependences, start, end }: Timing,
  regionOf: RegionOf,
): ReadonlyMap<number, { readonly start: number; readonly end: number }> {
  const spans = new Map<number, { readonly start: number; readonly end: number }>();
  for (const kernel of kernels) {
    const { id } = regionOf(dependences.rankOf(kernel), dependences.indexOf(kernel));
    const span = spans.get(id);
    spans.set(id, {
      start: Math.min(span?.start ?? Infinity, at(start, kernel)),
      end: Math.max(span?.end ?? 0, at(end, kernel)),
    });
  }
  return spans;
}

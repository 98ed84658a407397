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
import { type Command, isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at, countWhile } from "../../support/invariant.ts";
import { isLocalCopy } from "../../trace/command-work.ts";
import type { Cause } from "../causes.ts";
import type { RegionKey, RegionOf } from "../regions.ts";
import { createKernelHolders, createLinkHolders, isKernel, isKernel as isKernelOf } from "./links.ts";
import { createNeeds, type Needed } from "./needs.ts";
import { regionLoads } from "./region-loads.ts";
import type { CommandTiming } from "./timing.ts";

/** Part of a gap, in milliseconds. */
export interface IdlePart {
  readonly cause: Cause;
  /** A second cause that holds the command as long: without the first alone, it would start no earlier. */
  readonly also?: Cause;
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
  timing: CommandTiming,
  regionOf: RegionOf,
  rank: number,
  issued: ((index: number) => number) | null = null,
): IdleTime {
  const { dependences, start, end, after, ready } = timing;
  const { first, rankOf, indexOf } = dependences;
  const commandOf = (number: number): Command => at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const isKernel = (number: number): boolean => isKernelOf(program, rankOf(number), commandOf(number));
  const own = Array.from({ length: at(first, rank + 1) - at(first, rank) }, (_, i) => at(first, rank) + i);
  const kernels = own.filter(isKernel).sort((a, b) => at(start, a) - at(start, b));
  const loads = regionLoads(program, timing, regionOf, rank);
  const needs = createNeeds(program, timing);
  const queues = createQueues(program, timing);
  const linkHolder = createLinkHolders(program, timing);
  const kernelHolder = createKernelHolders(program, timing);
  const parts: IdlePart[] = [];

  const regionIn = (number: number): RegionKey => regionOf(rankOf(number), indexOf(number));
  const chunkOf = (number: number): number =>
    at(at(program.ranks, rankOf(number)).origins, indexOf(number)).iteration[0] ?? 0;
  const isOfOtherChunk = (a: number, b: number): boolean =>
    regionIn(a).id !== regionIn(b).id || chunkOf(a) !== chunkOf(b);
  const spans = chunkSpans(kernels, timing, (number) => ({ region: regionIn(number).id, chunk: chunkOf(number) }));

  /** Why a communication that moved as soon as it could is in a gap. `behind`: it waited for others that moved. */
  const movingCause = (number: number, from: number, to: number, behind: boolean): Cause => {
    const { id, isLoop } = regionIn(number);
    const [chunks, load] = [spans.get(id) ?? [], loads.get(id)];
    if (!isLoop || chunks.length === 0 || load === undefined) return "notInLoop";
    const isLinkBound = load.link > load.kernels;
    if (behind) return isLinkBound ? "linkBound" : "queued";
    const others = chunks.filter(({ chunk }) => chunk !== chunkOf(number));
    if (!others.some(({ firstEnd }) => firstEnd <= from + epsilon)) return "firstChunk";
    if (!others.some(({ lastStart }) => lastStart >= to - epsilon)) return "lastChunk";
    const { data } = needs.of(number);
    return isLinkBound && (data.command < 0 || !isKernel(data.command)) ? "linkBound" : "dependent";
  };

  /** Whether the command before it on its stream ended when it was ready, and made none of its data. */
  const isHeldByStream = (number: number): boolean => {
    let before = at(dependences.previous, number);
    while (before >= 0 && timing.isWork[before] !== 1) before = at(dependences.previous, before);
    const isData = needs.of(number).data.command === before;
    return before >= 0 && !isData && at(end, before) >= at(ready, number) - epsilon;
  };

  /** A wait that ended when the command was ready, and that its data does not need; null if there is none. */
  const needlessWait = (number: number): (Needed & { readonly cause: Cause; readonly also?: Cause }) | null => {
    const before = at(after, number);
    const { data, buffer } = needs.of(number);
    if (before < 0 || at(ready, number) - data.time <= epsilon) return null;
    if (buffer.time >= at(ready, number) - epsilon) {
      return { ...data, cause: "reuse", ...(isHeldByStream(number) ? { also: "order" } : {}) };
    }
    return isKernel(number) || isKernel(before) ? { ...data, cause: "order" } : null;
  };

  /** When a command could have run, but for the order of its stream. */
  const couldRun = (number: number): number => {
    const { data, buffer } = needs.of(number);
    return Math.max(data.time, buffer.time, issued === null ? 0 : issued(indexOf(number)));
  };

  /** Whether what a communication waited for last is one before it on its stream, or on that of a participant. */
  const isInQueue = (number: number): boolean => {
    const before = at(after, number);
    if (before < 0 || isKernel(before) || needlessWait(number) !== null) return false;
    const isSameStream = (other: number): boolean =>
      rankOf(other) === rankOf(before) && commandOf(other).stream === commandOf(before).stream;
    return isSameStream(number) || dependences.peers(number).some(isSameStream);
  };

  /** When a command was ready, and its link free. */
  const linkFree = (number: number): number => {
    const holder = linkHolder(number);
    return holder < 0 ? at(ready, number) : at(end, holder);
  };

  /** Milliseconds before `from` in which the queue of a communication moved data of others ahead of it. */
  const busyAhead = (number: number, from: number, isOther: (ahead: number) => boolean): number => {
    const holder = linkHolder(number);
    const isHeld = holder >= 0 && isOther(holder);
    const held = isHeld ? Math.max(0, Math.min(from, at(end, holder)) - at(ready, number)) : 0;
    if (!isInQueue(number)) return held;
    const until = Math.min(from, at(ready, number));
    return held + queues.busy(at(after, number), couldRun(number), until, isOther);
  };

  /**
   * Milliseconds in which the queue of a communication was blocked while it, or the first of others behind it, could
   * have moved.
   */
  const blockedAhead = (number: number, isOther: (behind: number) => boolean): number => {
    const before = at(after, number);
    const own = !isInQueue(number) ? 0 : queues.blocked(before, couldRun(number), at(ready, number));
    const behind = queues.firstAfter(number, isOther);
    const since = behind < 0 ? Infinity : couldRun(behind);
    return Math.max(own, queues.blocked(number, since, at(start, number)));
  };

  const isIssuedLate = (number: number): boolean =>
    issued !== null && issued(indexOf(number)) > at(ready, number) + epsilon;

  /** By position: when the first of the kernels from there on could have run. */
  let couldRunFrom: readonly number[] | null = null;
  /** Milliseconds of kernels that could have run in earlier gaps: each fills its own time once. */
  const filled = new Map<number, number>();

  /**
   * The end of a gap that kernels from a position on could have filled but for their order; null if none was ready. The
   * command is the one that the first of them waited for.
   */
  const outOfOrder = (position: number, gapStart: number, gapEnd: number): Needed | null => {
    let time = gapEnd;
    let command: number | null = null;
    couldRunFrom ??= leastFrom(kernels.map(couldRun));
    for (let i = position; i < kernels.length && time > gapStart; i++) {
      if (at(couldRunFrom, i) >= time - epsilon) break;
      const kernel = at(kernels, i);
      if (at(ready, kernel) < gapEnd - epsilon) continue;
      const used = filled.get(kernel) ?? 0;
      const part = Math.min(at(end, kernel) - at(start, kernel) - used, time - Math.max(gapStart, couldRun(kernel)));
      if (part <= epsilon) continue;
      filled.set(kernel, used + part);
      time -= part;
      command ??= at(after, kernel);
    }
    return command === null ? null : { time, command };
  };

  /** Adds the parts of [from, to], in which the rank waits for the start of `number`; -1 for the end of the run. */
  const walk = (number: number, last: number, from: number, to: number, position: number): void => {
    let time = to;
    const add = (cause: Cause, until: number, command: number, also?: Cause): void => {
      const begin = Math.max(from, until);
      if (begin < time) {
        parts.push({ cause, ...(also === undefined ? {} : { also }), start: begin, end: time, command });
      }
      time = Math.min(time, begin);
    };
    /** Of a delay until `until`, what is not idle time already: without the delay, what follows would end earlier. */
    const rest = (since: number, until: number): number =>
      Math.max(0, until - since - Math.max(0, until - Math.max(since, from)));

    /** Adds the wait of a command before it starts, and returns the command that it waited for. */
    const addWait = (waiting: number): number => {
      const holder = linkHolder(waiting);
      const since = linkFree(waiting);
      const kernel = isIssuedLate(waiting) ? -1 : kernelHolder(waiting);
      // In a gap the rank's own kernels hold nothing.
      if (kernel >= 0 && rankOf(kernel) !== rank && at(end, kernel) > since) {
        add("latency", at(end, kernel), waiting);
        if (isKernel(waiting)) add("latePeer", since, kernel);
        else add("sms", since, waiting);
      } else add(isIssuedLate(waiting) ? "host" : "latency", since, waiting);
      if (holder >= 0) return holder;
      const needless = needlessWait(waiting);
      if (needless === null) return at(after, waiting);
      add(needless.cause, needless.time, at(after, waiting), needless.also);
      return needless.command;
    };

    let needed: ReadonlySet<number> | null = null;
    /** Whether what ends the gap needs a transfer: it waits for all of those, in whatever order they move. */
    const isNeeded = (transfer: number): boolean => number < 0 || (needed ??= needs.since(number, from)).has(transfer);

    const addCommunication = (moving: number): void => {
      const [begin, until] = [at(start, moving), time];
      const kernel = isIssuedLate(moving) ? -1 : kernelHolder(moving);
      const since = linkFree(moving);
      if (kernel >= 0 && at(end, kernel) > since) {
        add("sms", Math.max(begin, time - rest(since, at(end, kernel))), moving);
      }
      const needless = needlessWait(moving);
      if (needless !== null) {
        const since = time - rest(needless.time, at(ready, moving));
        add(needless.cause, Math.max(begin, since), moving, needless.also);
      }
      const isOther = (other: number): boolean =>
        isOfOtherChunk(other, moving) && !(isNeeded(other) && isNeeded(moving));
      add("queued", Math.max(begin, time - blockedAhead(moving, isOther)), moving);
      const busy = busyAhead(moving, from, isOther);
      add(movingCause(moving, from, until, true), Math.max(begin, time - busy), moving);
      add(movingCause(moving, from, until, false), begin, moving);
    };

    let next = last;
    if (number >= 0) {
      next = addWait(number);
      const other = outOfOrder(position + 1, from, time);
      if (other !== null) add("order", other.time, other.command);
    } else add("latency", next < 0 ? from : at(end, next), next);
    // Commands that take no time can hold a link for each other.
    const seen = new Set<number>();
    while (time > from && next >= 0 && !seen.has(next)) {
      const running = next;
      seen.add(running);
      const isLocal = isLocalCopy(program, rankOf(running), commandOf(running));
      if (isKernel(running) || isLocal) {
        if (rankOf(running) === rank && !isLocal) break;
        add(rankOf(running) === rank ? "localCopy" : "latePeer", at(start, running), running);
      } else addCommunication(running);
      next = addWait(running);
    }
    add("latency", from, next);
  };

  let busy = 0;
  let now = 0;
  for (const [position, kernel] of kernels.entries()) {
    if (at(start, kernel) > now + epsilon) walk(kernel, -1, now, at(start, kernel), position);
    busy += Math.max(0, at(end, kernel) - Math.max(now, at(start, kernel)));
    now = Math.max(now, at(end, kernel));
  }
  const last = own.reduce((latest, number) => (at(end, number) >= at(end, latest) ? number : latest), own[0] ?? -1);
  const finish = last < 0 ? 0 : at(end, last);
  if (finish > now + epsilon) walk(-1, timing.isWork[last] === 1 ? last : at(after, last), now, finish, kernels.length);
  parts.sort((a, b) => a.start - b.start);
  return { rank, end: Math.max(now, finish), kernels: busy, parts };
}

/** By position: the least number from there on. */
function leastFrom(numbers: readonly number[]): readonly number[] {
  const least = [...numbers];
  for (let i = least.length - 2; i >= 0; i--) least[i] = Math.min(at(least, i), at(least, i + 1));
  return least;
}

interface ChunkSpan {
  readonly chunk: number;
  readonly firstEnd: number;
  readonly lastStart: number;
}

/** By region: when the first kernel of each chunk ends, and when its last one starts. */
function chunkSpans(
  kernels: readonly number[],
  { start, end }: CommandTiming,
  placeOf: (number: number) => { readonly region: number; readonly chunk: number },
): ReadonlyMap<number, readonly ChunkSpan[]> {
  const regions = new Map<number, Map<number, ChunkSpan>>();
  for (const kernel of kernels) {
    const { region, chunk } = placeOf(kernel);
    const spans = regions.get(region) ?? new Map<number, ChunkSpan>();
    regions.set(region, spans);
    const span = spans.get(chunk);
    spans.set(chunk, {
      chunk,
      firstEnd: Math.min(span?.firstEnd ?? Infinity, at(end, kernel)),
      lastStart: Math.max(span?.lastStart ?? 0, at(start, kernel)),
    });
  }
  return new Map([...regions].map(([region, spans]) => [region, [...spans.values()]]));
}

// What a transfer waited for at the end of a queue: the transfers before it on its communicator, or the copies before
// it on its stream. While none of them moves data, the queue is blocked: its first one waits for something else.
//
//     kernels        [       GEMM 0       ]                    gather 1 has its data at 0 and waits
//     communicator   [gather 0]    blocked [scatter 0][gather 1]

/** `last`: a command of the queue, the last of those that count. Times are milliseconds. */
interface Queues {
  /** For how long, between two times, those moved data for which `counts` holds. */
  readonly busy: (last: number, since: number, until: number, counts: (number: number) => boolean) => number;
  /** For how long the queue was blocked. */
  readonly blocked: (last: number, since: number, until: number) => number;
  /** The first after a command for which `is` holds; -1 for none. */
  readonly firstAfter: (number: number, is: (other: number) => boolean) => number;
}

/** Commands of a queue are in order. -1 for a command that is not in it. */
function placeIn(queue: readonly number[], number: number): number {
  const place = countWhile(queue, (other) => other < number);
  return queue[place] === number ? place : -1;
}

function createQueues(program: Program, { dependences, start, end, ready }: CommandTiming): Queues {
  const { first, rankOf, indexOf } = dependences;
  const queues = new Map<string, readonly number[]>();
  const queueOf = (number: number): readonly number[] => {
    const rank = rankOf(number);
    const { commands } = at(program.ranks, rank);
    const { stream } = at(commands, indexOf(number));
    const key = `${rank} ${stream}`;
    const known = queues.get(key);
    if (known !== undefined) return known;
    const own = commands.flatMap((command, index) =>
      command.stream === stream && isWork(command.kind) && !isKernel(program, rank, command)
        ? [at(first, rank) + index]
        : [],
    );
    queues.set(key, own);
    return own;
  };
  /** The sum over `last` and those before it that ended after `since`. */
  const sumOver = (last: number, since: number, timeOf: (number: number, previous: number) => number): number => {
    const queue = queueOf(last);
    let sum = 0;
    for (let i = placeIn(queue, last); i >= 0 && at(end, at(queue, i)) > since; i--) {
      sum += Math.max(0, timeOf(at(queue, i), queue[i - 1] ?? -1));
    }
    return sum;
  };
  return {
    busy: (last, since, until, counts) =>
      sumOver(last, since, (number) =>
        counts(number) ? Math.min(until, at(end, number)) - Math.max(since, at(start, number)) : 0,
      ),
    blocked: (last, since, until) =>
      sumOver(last, since, (number, previous) => {
        const free = previous < 0 ? 0 : at(end, previous);
        return Math.min(until, at(ready, number)) - Math.max(since, free);
      }),
    firstAfter: (number, is) => {
      const queue = queueOf(number);
      for (let i = placeIn(queue, number) + 1; i < queue.length; i++) if (is(at(queue, i))) return at(queue, i);
      return -1;
    },
  };
}

/**
 * What a transfer waited for at the end of a queue: the transfers before it on its communicator, or the copies before
 * it on its stream. While none of them moves data, the queue is blocked: its first one waits for something else.
 *
 *     kernels        [       GEMM 0       ]                    gather 1 has its data at 0 and waits
 *     communicator   [gather 0]    blocked [scatter 0][gather 1]
 */
import { isWork } from "../../commands/command.ts";
import type { Program } from "../../commands/program.ts";
import { at } from "../../support/invariant.ts";
import { isKernel } from "./kernel-holders.ts";
import type { Timing } from "./timing.ts";

/** `last`: a command of the queue, the last of those that count. Times are milliseconds. */
export interface Queues {
  /** For how long, between two times, those moved data for which `counts` holds. */
  readonly busy: (last: number, since: number, until: number, counts: (number: number) => boolean) => number;
  /** For how long the queue was blocked. */
  readonly blocked: (last: number, since: number, until: number) => number;
  /** Those after a command. */
  readonly following: (number: number) => readonly number[];
}

export function createQueues(program: Program, { dependences, start, end, ready }: Timing): Queues {
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
    for (let i = queue.indexOf(last); i >= 0 && at(end, at(queue, i)) > since; i--) {
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
    following: (number) => {
      const queue = queueOf(number);
      return queue.slice(queue.indexOf(number) + 1);
    },
  };
}

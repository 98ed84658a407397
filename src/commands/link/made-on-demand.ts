/**
 * The commands of a rank, made when they are asked for. Together, the lists of thousands of ranks take more memory than
 * all else: one of them is a millisecond's work, and most of what reads a Program goes through it rank by rank.
 */
import type { Command } from "../command.ts";

/** Programs of at most as many commands have them all: 100 bytes each. */
const mostAtOnce = 2 ** 22;

/** Of longer ones, these are kept: those that were asked for last. */
const mostKept = 2 ** 18;

/** Work that goes from rank to rank and back has made the lists this often. From then on, all are kept. */
const mostRounds = 16;

/**
 * By rank: its commands, of which there are `counts[rank]`; null if they are few enough to be made at once. `make`
 * returns equal commands each time; no reader may depend on their identity.
 */
export function commandsOnDemand(
  counts: readonly number[],
  make: (rank: number) => readonly Command[],
  limits = { mostAtOnce, mostKept },
): ((rank: number) => readonly Command[]) | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= limits.mostAtOnce) return null;
  // In order of the last call.
  const kept = new Map<number, readonly Command[]>();
  let [size, made] = [0, 0];
  return (rank) => {
    const known = kept.get(rank);
    if (known !== undefined) {
      kept.delete(rank);
      kept.set(rank, known);
      return known;
    }
    const commands = make(rank);
    kept.set(rank, commands);
    [size, made] = [size + commands.length, made + 1];
    for (const [oldest, list] of kept) {
      if (size <= limits.mostKept || oldest === rank || made > mostRounds * counts.length) break;
      kept.delete(oldest);
      size -= list.length;
    }
    return commands;
  };
}

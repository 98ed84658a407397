/** Numbers the commands of all ranks of a Program consecutively, so that threads can name one by a single word. */
import type { Program } from "../../../commands/program.ts";
import { at } from "../../../support/invariant.ts";

export interface CommandNumbers {
  readonly count: number;
  readonly numberOf: (rank: number, command: number) => number;
  readonly placeOf: (number: number) => { readonly rank: number; readonly command: number };
}

export function numberCommands({ ranks }: Program): CommandNumbers {
  const bases: number[] = [];
  let count = 0;
  for (const { commands } of ranks) {
    bases.push(count);
    count += commands.length;
  }
  return {
    count,
    numberOf: (rank, command) => at(bases, rank) + command,
    placeOf: (number) => {
      const rank = bases.findLastIndex((base) => base <= number);
      return { rank, command: number - at(bases, rank) };
    },
  };
}

/** When the data that a command reads was there: the end of the last command that wrote any of it. */
import { accesses } from "../commands/accesses.ts";
import type { BufferId } from "../commands/buffer.ts";
import type { Region } from "../commands/region.ts";
import type { Program } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { sharedBytes } from "../verify/check/shared-bytes.ts";
import { type Timing, workByEnd } from "./timing.ts";

interface Write {
  readonly number: number;
  readonly region: Region;
}

/** In milliseconds; 0 for data that is an input of the run. */
export function createDataReady(program: Program, timing: Timing): (number: number) => number {
  const { dependences, start, end } = timing;
  const { rankOf, indexOf } = dependences;
  /** By buffer. */
  let writes: ReadonlyMap<BufferId, readonly Write[]> | null = null;

  const lastWriteOf = (read: Region, before: number): number => {
    const all = writes?.get(read.buffer) ?? [];
    const last = all.findLast(
      ({ number, region }) =>
        at(end, number) <= before &&
        sharedBytes({ start: read.offset, ...read }, { start: region.offset, ...region }) > 0,
    );
    return last === undefined ? 0 : at(end, last.number);
  };

  return (number) => {
    writes ??= workByEnd(timing, (other) =>
      accesses(program, rankOf(other), indexOf(other)).writes.map((region) => [
        region.buffer,
        { number: other, region },
      ]),
    );
    const { reads } = accesses(program, rankOf(number), indexOf(number));
    // Ends and starts of one moment may differ by rounding.
    const before = at(start, number) + 1e-9;
    return reads.reduce((latest, read) => Math.max(latest, lastWriteOf(read, before)), 0);
  };
}

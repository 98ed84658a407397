/**
 * Why one command of a run stands before another that waited for it: what they have in common, the most telling first.
 * A wait is for a whole stream up to an event or signal, so the commands before it on that stream are looked at, too.
 */
import { type Accesses, accesses } from "../../commands/accesses.ts";
import type { Program } from "../../commands/program.ts";
import type { Region } from "../../commands/region.ts";
import type { Waits } from "../../explain/dependences.ts";
import { at } from "../../support/invariant.ts";
import { sharedBytes, spanOf } from "../../verify/check/shared-bytes.ts";
import { type OrderReason, orderReasons } from "../data/timeline-data.ts";

/** An index into `orderReasons`, for the numbers of two commands. */
export type ReasonOf = (earlier: number, later: number) => number;

/** Commands before the earlier one, on its stream, that are looked at. */
const farthest = 32;

export function createOrderReasons(program: Program, { rankOf, indexOf, previous, peers }: Waits): ReasonOf {
  const known = new Map<number, Accesses>();
  const accessesOf = (number: number): Accesses => {
    const found = known.get(number) ?? accesses(program, rankOf(number), indexOf(number));
    known.set(number, found);
    return found;
  };
  const commandOf = (number: number): Program["ranks"][number]["commands"][number] =>
    at(at(program.ranks, rankOf(number)).commands, indexOf(number));
  const shareMemory = (some: readonly Region[], others: readonly Region[]): boolean =>
    some.some((region) => others.some((other) => sharesBytes(program, region, other)));

  const needed = (earlier: number, later: number): OrderReason | null => {
    const [before, after] = [accessesOf(earlier), accessesOf(later)];
    if (shareMemory(before.writes, after.reads)) return "data";
    return shareMemory(before.reads, after.writes) || shareMemory(before.writes, after.writes) ? "memory reuse" : null;
  };

  const reasonOf = (earlier: number, later: number): OrderReason => {
    const [before, after] = [commandOf(earlier), commandOf(later)];
    if (peers(later).includes(earlier)) return "peer";
    let number = earlier;
    for (let i = 0; i < farthest && number >= 0; i++, number = at(previous, number)) {
      const own = needed(number, later);
      if (own !== null) return own;
    }
    if (before.kind === "transfer" && after.kind === "transfer" && before.communicator === after.communicator)
      return "communicator";
    return rankOf(earlier) === rankOf(later) && before.stream === after.stream ? "stream" : "event or signal";
  };
  return (earlier, later) => orderReasons.indexOf(reasonOf(earlier, later));
}

/** Exact in one buffer. Of two buffers, whether their places overlap. */
function sharesBytes({ buffers }: Program, a: Region, b: Region): boolean {
  if (a.buffer === b.buffer) return sharedBytes({ ...a, start: a.offset }, { ...b, start: b.offset }) > 0;
  const [one, other] = [at(buffers, a.buffer), at(buffers, b.buffer)];
  if (one.rank !== other.rank || one.arena !== other.arena) return false;
  const [start, otherStart] = [one.offset + a.offset, other.offset + b.offset];
  return start < otherStart + spanOf(b) && otherStart < start + spanOf(a);
}

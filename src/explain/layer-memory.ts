/**
 * The memory of a program of many equal layers, by programs with few of them. Tensors that the forward pass saves add up
 * over its layers, so that the whole needs most where the backward pass begins, and programs of few layers elsewhere.
 */
import { type Program, reservedBytes } from "../commands/program.ts";
import { at } from "../support/invariant.ts";
import { further } from "../tune/regions/fewer-layers.ts";

/** Bytes of the rank that needs the most, of a program with so many layers more than `more`. */
export function furtherPeakBytes(few: Program, more: Program, missing: number): number {
  const ofRanks = more.ranks.map((ofMore) => {
    const { rank, arenaBytes } = ofMore;
    const ofFew = at(few.ranks, rank);
    const own = reservedBytes(ofMore);
    const changes = changesOf(more, rank);
    const saved = savedBytes(changesOf(few, rank), changes);
    if (saved === null) return further(reservedBytes(ofFew), own, missing);
    const { bytes, from, to } = saved;
    const live = liveAfter(changes);
    const ofAll = live.map((each, position) => each + (from <= position && position < to ? missing * bytes : 0));
    const bound = arenaBytes.input + arenaBytes.output - ofFew.arenaBytes.input - ofFew.arenaBytes.output;
    // Gaps between allocations stay as they are.
    return own + missing * bound + Math.max(0, ...ofAll) - Math.max(0, ...live);
  });
  return Math.max(...ofRanks);
}

/** By alloc and free of a rank, in order: bytes that are taken, or given back. */
function changesOf({ ranks, buffers }: Program, rank: number): readonly number[] {
  return at(ranks, rank).commands.flatMap((command) => {
    if (command.kind !== "alloc" && command.kind !== "free") return [];
    const { bytes } = at(buffers, command.buffer);
    return [command.kind === "alloc" ? bytes : -bytes];
  });
}

function liveAfter(changes: readonly number[]): readonly number[] {
  let live = 0;
  return changes.map((change) => (live += change));
}

/**
 * What one layer leaves allocated, and the positions in `more` between which it is: where a layer stands that `few`
 * lacks, in the forward and in the backward pass, or in one of them alone. Null if the lists do not differ in layers.
 *
 *     few:  A C D     more:  A F C B D
 *
 * Without anything between the passes, F is what repeats the changes before it.
 */
function savedBytes(
  few: readonly number[],
  more: readonly number[],
): { readonly bytes: number; readonly from: number; readonly to: number } | null {
  const sameFrom = (start: number, offset: number): number => {
    let end = start;
    while (end < few.length && few[end] === more[end + offset]) end++;
    return end;
  };
  const extra = more.length - few.length;
  const from = sameFrom(0, 0);
  for (let added = 0; added <= extra; added++) {
    const end = sameFrom(from, added);
    const rest = sameFrom(end, extra);
    if (rest < few.length) continue;
    const forward = end > from ? added : repeated(more, from, extra);
    const bytes = more.slice(from, from + forward).reduce((sum, change) => sum + change, 0);
    return { bytes, from, to: end + extra };
  }
  return null;
}

/** The most changes, but no more than `most`, that stand before `position` and again from there on. */
function repeated(changes: readonly number[], position: number, most: number): number {
  for (let count = Math.min(most, position); count > 0; count--) {
    const isAgain = changes
      .slice(position, position + count)
      .every((each, i) => each === changes[position - count + i]);
    if (isAgain) return count;
  }
  return 0;
}

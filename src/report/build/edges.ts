/** The arrows of a timeline: which drawn command of another stream each drawn command waited for. */
import type { Waits } from "../../explain/dependences.ts";
import { at } from "../../support/invariant.ts";

/** The commands, by number, that a command waited for besides the one before it on its stream. */
export type EdgesOf = (number: number) => readonly number[];

/** A command that is not drawn, such as a wait without a slice, hands what it waited for on to the next one. */
const most = 8;

const none: readonly number[] = [];

/**
 * `isDrawn`: whether a command has a slice of its own. `arrived`: when a command's stream reached it; of the peers of a
 * transfer, the last one to arrive is the one that was waited for.
 */
export function createEdges(
  { order, previous, source, peers }: Waits & { readonly order: Iterable<number> },
  isDrawn: (number: number) => boolean,
  arrived: (number: number) => number,
): EdgesOf {
  const found: (readonly number[])[] = [];
  /** The last drawn command up to each one, on its stream; -1 without one. */
  const drawn = new Int32Array(previous.length).fill(-1);
  const union = (a: readonly number[], b: readonly number[]): readonly number[] => {
    if (a.length === 0 || b.length === 0) return a.length === 0 ? b : a;
    return [...new Set([...a, ...b])].slice(-most);
  };
  const throughTo = (number: number): readonly number[] => {
    if (number < 0) return none;
    if (isDrawn(number)) return [number];
    const last = at(drawn, number);
    return last < 0 ? (found[number] ?? none) : union([last], found[number] ?? none);
  };
  for (const number of order) {
    const before = at(previous, number);
    const carried = before < 0 || isDrawn(before) ? none : (found[before] ?? none);
    drawn[number] = isDrawn(number) ? number : before < 0 ? -1 : at(drawn, before);
    found[number] = union(union(carried, throughTo(at(source, number))), lastPeer(number));
  }
  return (number) => found[number] ?? none;

  function lastPeer(number: number): readonly number[] {
    const needed = peers(number);
    if (needed.length < 2) return none;
    const last = needed.reduce((latest, peer) => (arrived(peer) > arrived(latest) ? peer : latest));
    return last === number ? none : [last];
  }
}

/**
 * Sets of commands that come before other commands of a list, each as a difference from an earlier set. Written out,
 * the sets of all signals would take memory quadratic in the length of the list.
 *
 *     copy 1, signal a, copy 2, signal b     ->     before a: {copy 1}, before b: {copy 2} and what is before a
 */
import { at } from "../../../support/invariant.ts";
import type { ListOrder } from "./list-order.ts";

export interface Past<T = number> {
  /** An earlier set, all of which is in this one. */
  readonly base: Past<T> | null;
  /** The others, in list order. */
  readonly items: readonly T[];
}

/** Collects the items of one list, in list order. */
export interface Pasts<T> {
  readonly add: (position: number, item: T) => void;
  /** The items that streams and events order before the command at `position`; null for none. */
  readonly before: (position: number) => Past<T> | null;
}

/** Items of a stream, or sets that were asked for there, in list order. */
interface Track<T> {
  /** How many commands of the stream have completed with it. */
  readonly places: number[];
  readonly entries: { readonly position: number; readonly value: T }[];
}

interface Known<T> {
  readonly past: Past<T> | null;
  /** By stream: how many of its items the set has. */
  readonly counts: ReadonlyMap<number, number>;
}

export function createPasts<T>(order: ListOrder): Pasts<T> {
  const items = new Map<number, Track<T>>();
  const asked = new Map<number, Track<Known<T>>>();
  const put = <V>(tracks: Map<number, Track<V>>, position: number, value: V): void => {
    const stream = order.streamOf(position);
    const track = tracks.get(stream) ?? { places: [], entries: [] };
    tracks.set(stream, track);
    track.places.push(order.placeOf(position));
    track.entries.push({ position, value });
  };
  return {
    add: (position, item) => {
      put(items, position, item);
    },
    before: (position) => {
      const counts = new Map<number, number>();
      for (const [stream, { places }] of items) {
        const count = atMost(places, order.completed(position, stream));
        if (count > 0) counts.set(stream, count);
      }
      let base: { readonly position: number; readonly value: Known<T> } | null = null;
      for (const [stream, { places, entries }] of asked) {
        const last = entries[atMost(places, order.completed(position, stream)) - 1];
        if (last !== undefined && (base === null || last.position > base.position)) base = last;
      }
      const known: Known<T> = base?.value ?? { past: null, counts: new Map() };
      const news = [...counts].flatMap(
        ([stream, count]) => items.get(stream)?.entries.slice(known.counts.get(stream) ?? 0, count) ?? [],
      );
      news.sort((a, b) => a.position - b.position);
      const past = news.length === 0 ? known.past : { base: known.past, items: news.map(({ value }) => value) };
      put(asked, position, { past, counts });
      return past;
    },
  };
}

/** How many of the ascending numbers are at most `limit`. */
function atMost(ascending: readonly number[], limit: number): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(ascending, middle) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The set and its bases that `known` lacks, bases first. */
export function unknownOf<T>(past: Past<T> | null, known: ReadonlyMap<Past<T>, unknown>): readonly Past<T>[] {
  const unknown: Past<T>[] = [];
  for (let each = past; each !== null && !known.has(each); each = each.base) unknown.push(each);
  return unknown.reverse();
}

/** Whether a set has an id. Ids ascend along the list, so that only sets that reach so far are looked at. */
export function idFinder(): (past: Past, id: number) => boolean {
  const largest = new Map<Past, number>();
  return (past, id) => {
    for (const each of unknownOf(past, largest)) {
      const ofBase = each.base === null ? -1 : (largest.get(each.base) ?? -1);
      largest.set(
        each,
        each.items.reduce((most, item) => Math.max(most, item), ofBase),
      );
    }
    for (let each: Past | null = past; each !== null && (largest.get(each) ?? -1) >= id; each = each.base) {
      if (each.items.includes(id)) return true;
    }
    return false;
  };
}

/** Replaces the ids in sets. The same set becomes the same set. */
export function pastMapper(map: (ids: readonly number[]) => readonly number[]): (past: Past) => Past | null {
  const mapped = new Map<Past, Past | null>();
  return (past) => {
    for (const each of unknownOf(past, mapped)) {
      const base = each.base === null ? null : (mapped.get(each.base) ?? null);
      const items = map(each.items);
      const isSame = items === each.items && base === each.base;
      mapped.set(each, isSame ? each : items.length === 0 ? base : { base, items });
    }
    return mapped.get(past) ?? null;
  };
}

/** A node, as far as it names others. */
interface Relying {
  readonly sync: readonly number[];
  readonly pasts: readonly Past[];
}

/** The ids of the nodes that one of these relies on. */
export function idsRelied(nodes: readonly Relying[]): ReadonlySet<number> {
  const ids = new Set(nodes.flatMap(({ sync }) => sync));
  const known = new Map<Past, true>();
  for (const past of nodes.flatMap(({ pasts }) => pasts)) {
    for (const each of unknownOf(past, known)) {
      known.set(each, true);
      for (const id of each.items) ids.add(id);
    }
  }
  return ids;
}

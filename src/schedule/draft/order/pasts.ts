/**
 * Sets of commands that come before other commands of a list, each as a difference from an earlier set. Written out,
 * the sets of all signals would take memory quadratic in the length of the list.
 *
 *     copy 1, signal a, copy 2, signal b     ->     before a: {copy 1}, before b: {copy 2} and what is before a
 */
import { at, countWhile } from "../../../support/invariant.ts";
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
  readonly stream: number;
  /** How many commands of the stream have completed with it. */
  readonly places: number[];
  readonly positions: number[];
  readonly values: T[];
}

interface Known<T> {
  readonly past: Past<T> | null;
  /** By track of items, in the order of their first item: how many of them the set has. */
  readonly counts: Int32Array;
}

export function createPasts<T>(order: ListOrder): Pasts<T> {
  const items = createTracks<T>(order);
  const asked = createTracks<Known<T>>(order);
  return {
    add: items.put,
    before: (position) => {
      let base: Known<T> | null = null;
      let basePosition = -1;
      for (const { stream, places, positions, values } of asked.tracks) {
        const completed = order.completed(position, stream);
        const last = countWhile(places, (place) => place <= completed) - 1;
        if (last < 0 || at(positions, last) <= basePosition) continue;
        basePosition = at(positions, last);
        base = at(values, last);
      }
      const counts = new Int32Array(items.tracks.length);
      const news: { readonly position: number; readonly value: T }[] = [];
      for (const [track, { stream, places, positions, values }] of items.tracks.entries()) {
        const completed = order.completed(position, stream);
        const count = countWhile(places, (place) => place <= completed);
        counts[track] = count;
        for (let i = base?.counts[track] ?? 0; i < count; i++) {
          news.push({ position: at(positions, i), value: at(values, i) });
        }
      }
      news.sort((a, b) => a.position - b.position);
      const known = base?.past ?? null;
      const past = news.length === 0 ? known : { base: known, items: news.map(({ value }) => value) };
      asked.put(position, { past, counts });
      return past;
    },
  };
}

interface Tracks<T> {
  readonly tracks: readonly Track<T>[];
  readonly put: (position: number, value: T) => void;
}

function createTracks<T>(order: ListOrder): Tracks<T> {
  const tracks: Track<T>[] = [];
  const ofStream = new Map<number, Track<T>>();
  return {
    tracks,
    put: (position, value) => {
      const stream = order.streamOf(position);
      let track = ofStream.get(stream);
      if (track === undefined) {
        track = { stream, places: [], positions: [], values: [] };
        ofStream.set(stream, track);
        tracks.push(track);
      }
      track.places.push(order.placeOf(position));
      track.positions.push(position);
      track.values.push(value);
    },
  };
}

/** The set and its bases that `known` lacks, bases first. */
export function unknownOf<T>(past: Past<T> | null, known: ReadonlyMap<Past<T>, unknown>): readonly Past<T>[] {
  const unknown: Past<T>[] = [];
  for (let each = past; each !== null && !known.has(each); each = each.base) unknown.push(each);
  return unknown.reverse();
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

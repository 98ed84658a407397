/** The arrows at a slice: what it waited for, and what waited for it. */
import { at } from "../../support/invariant.ts";
import type { Slices } from "../data/timeline-data.ts";

export type Arrow = readonly [from: number, to: number];

/** More arrows at one slice would hide the picture. */
const most = 64;

/** What waited for each slice is sorted when it is first asked for. */
export function createArrows({ edgeStart, edges }: Slices): (slice: number) => readonly Arrow[] {
  let reverse: { readonly start: Int32Array; readonly to: Int32Array } | null = null;
  return (slice) => {
    reverse ??= reversed(edgeStart, edges);
    const into = [...edges.subarray(at(edgeStart, slice), at(edgeStart, slice + 1))];
    const out = [...reverse.to.subarray(at(reverse.start, slice), at(reverse.start, slice + 1))];
    return [...into.map((from): Arrow => [from, slice]), ...out.map((to): Arrow => [slice, to])].slice(0, most);
  };
}

function reversed(edgeStart: Int32Array, edges: Int32Array): { readonly start: Int32Array; readonly to: Int32Array } {
  const start = new Int32Array(edgeStart.length + 1);
  for (const from of edges) start[from + 2] = at(start, from + 2) + 1;
  for (let i = 2; i < start.length; i++) start[i] = at(start, i) + at(start, i - 1);
  const to = new Int32Array(edges.length);
  for (let slice = 0; slice + 1 < edgeStart.length; slice++) {
    for (let k = at(edgeStart, slice); k < at(edgeStart, slice + 1); k++) {
      const from = at(edges, k);
      to[at(start, from + 1)] = slice;
      start[from + 1] = at(start, from + 1) + 1;
    }
  }
  return { start, to };
}

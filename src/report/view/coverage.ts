/**
 * How much of a stretch of time the slices of each kind fill, without a look at every slice: sums over blocks of slices
 * are kept, so a stretch costs two blocks however many slices it has.
 */
import { at } from "../../support/invariant.ts";
import type { SliceKind, Slices, Work } from "../data/timeline-data.ts";

export const sliceKinds = [
  "gemm",
  "kernel",
  "copy",
  "transfer",
  "localCopy",
  "wait",
  "order",
  "mark",
] as const satisfies readonly SliceKind[];

const block = 16;
const waits = sliceKinds.indexOf("wait");

export interface Coverage {
  /** The kind that fills most of slices `from` to before `to`, and the time that all but waits fill. */
  readonly between: (from: number, to: number) => Covered;
}

export interface Covered {
  readonly kind: SliceKind;
  readonly busy: number;
}

export function createCoverage({ duration, work }: Slices, works: readonly Work[]): Coverage {
  const kindOf = Uint8Array.from(works, ({ kind }) => sliceKinds.indexOf(kind));
  const kinds = sliceKinds.length;
  const blocks = Math.floor(duration.length / block);
  /** Before each block, by kind. */
  const before = new Float64Array((blocks + 1) * kinds);
  for (let b = 0; b < blocks; b++) {
    const [own, next] = [b * kinds, (b + 1) * kinds];
    for (let kind = 0; kind < kinds; kind++) before[next + kind] = at(before, own + kind);
    for (let i = b * block; i < (b + 1) * block; i++) {
      const place = next + at(kindOf, at(work, i));
      before[place] = at(before, place) + at(duration, i);
    }
  }
  const sums = new Float64Array(kinds);
  // A view asks for thousands of stretches, so these loops make no objects.
  const add = (from: number, to: number): void => {
    for (let i = from; i < to; i++) {
      const kind = kindOf[work[i] ?? 0] ?? 0;
      sums[kind] = (sums[kind] ?? 0) + (duration[i] ?? 0);
    }
  };
  return {
    between: (from, to) => {
      sums.fill(0);
      const [first, last] = [Math.ceil(from / block), Math.floor(to / block)];
      if (first >= last) add(from, to);
      else {
        add(from, first * block);
        for (let kind = 0; kind < kinds; kind++) {
          sums[kind] = (sums[kind] ?? 0) + (before[last * kinds + kind] ?? 0) - (before[first * kinds + kind] ?? 0);
        }
        add(last * block, to);
      }
      let [best, busy] = [at(kindOf, at(work, from)), 0];
      for (let kind = 0; kind < kinds; kind++) {
        const sum = sums[kind] ?? 0;
        if (sum > (sums[best] ?? 0)) best = kind;
        if (kind !== waits) busy += sum;
      }
      return { kind: at(sliceKinds, best), busy };
    },
  };
}

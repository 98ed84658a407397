/** Runs of held indices, against a model that follows every index of an axis through the splits. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  countBelow,
  countIn,
  difference,
  heldRuns,
  intersection,
  onPositions,
  partIndexAt,
  type Runs,
} from "../../src/ir/axis-runs.ts";
import {
  type IterDomain,
  type IterDomainId,
  plainDomain,
  type TensorDomain,
  type Transform,
} from "../../src/ir/domain.ts";
import { constant } from "../../src/ir/scalar/scalar.ts";
import { makeId } from "../../src/support/ids.ts";

const id = (number: number): IterDomainId => makeId<IterDomainId>(number);
const axis: IterDomain = { id: id(0), extent: constant(1), iterType: "iteration", parallelType: "Serial" };

interface Split {
  readonly of: number;
  readonly factor: number;
  readonly innerSplit: boolean;
}

/** Split k cuts part `of` of those that exist by then, and makes parts 2k + 1 and 2k + 2. */
function domainOf(splits: readonly Split[]): { readonly domain: TensorDomain; readonly leaves: readonly number[] } {
  const leaves = [0];
  const transforms = splits.map(({ of, factor, innerSplit }, k): Transform => {
    const place = of % leaves.length;
    const [input = 0] = leaves.splice(place, 1, 2 * k + 1, 2 * k + 2);
    return { kind: "split", input: id(input), outer: id(2 * k + 1), inner: id(2 * k + 2), factor, innerSplit };
  });
  return { domain: { ...plainDomain([axis]), transforms }, leaves };
}

/** The index of every part in which index `j` of an axis of `size` elements lies. */
function partIndices({ transforms }: TensorDomain, size: number, j: number): ReadonlyMap<number, number> {
  const [lengths, places] = [new Map([[0, size]]), new Map([[0, j]])];
  for (const split of transforms) {
    if (split.kind !== "split") continue;
    const [length = 0, place = 0] = [lengths.get(split.input), places.get(split.input)];
    const [outer, inner] = split.innerSplit
      ? [Math.ceil(length / split.factor), split.factor]
      : [split.factor, Math.ceil(length / split.factor)];
    lengths.set(split.outer, outer).set(split.inner, inner);
    places.set(split.outer, Math.floor(place / inner)).set(split.inner, place % inner);
  }
  return places;
}

const listed = (runs: Runs): readonly number[] =>
  runs.flatMap(({ start, stop }) => Array.from({ length: stop - start }, (_, i) => start + i));

const splits = fc.array(
  fc.record({ of: fc.nat(5), factor: fc.integer({ min: 1, max: 5 }), innerSplit: fc.boolean() }),
  { maxLength: 3 },
);

it("every index is held by exactly the devices with its coordinates", () => {
  fc.assert(
    fc.property(splits, fc.nat(40), fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }), (given, size, chosen) => {
      const { domain, leaves } = domainOf(given);
      const cut = leaves.filter((_, i) => chosen[i] === true);
      const owners = new Map<string, number[]>();
      for (let j = 0; j < size; j++) {
        const places = partIndices(domain, size, j);
        const key = cut.map((part) => places.get(part)).join(",");
        owners.set(key, [...(owners.get(key) ?? []), j]);
      }
      for (const [key, indices] of owners) {
        const coordinates = key === "" ? [] : key.split(",").map(Number);
        const runs = heldRuns(domain, axis, size, (part) => coordinates[cut.indexOf(part.id)] ?? null);
        expect(listed(runs)).toEqual(indices);
        expect(runs.every(({ stop }, i) => stop < (runs[i + 1]?.start ?? Infinity))).toBe(true);
      }
      const none = heldRuns(domain, axis, size, ({ id: part }) => (part === cut[0] ? size + 1 : null));
      if (cut.length > 0) expect(none).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

it("the part that holds an index follows from the splits, and so does where it may end", () => {
  fc.assert(
    fc.property(splits, fc.integer({ min: 1, max: 40 }), fc.nat(5), (given, size, chosen) => {
      const { domain, leaves } = domainOf(given);
      const part = leaves[chosen % leaves.length] ?? 0;
      for (let j = 0; j < size;) {
        const found = partIndexAt(domain, axis, size, id(part), j);
        if (found === null) throw new Error("the axis has the part");
        expect(found.end).toBeGreaterThan(j);
        for (; j < Math.min(found.end, size); j++) expect(partIndices(domain, size, j).get(part)).toBe(found.held);
      }
    }),
    { numRuns: 300 },
  );
  expect(partIndexAt(domainOf([]).domain, axis, 4, id(7), 0)).toBeNull();
});

describe("runs as sets", () => {
  const sets = fc.uniqueArray(fc.nat(20), { maxLength: 12 });
  const runsOf = (indices: readonly number[]): Runs => {
    const runs: { start: number; stop: number }[] = [];
    for (const index of indices.toSorted((a, b) => a - b)) {
      const last = runs.at(-1);
      if (last?.stop === index) last.stop++;
      else runs.push({ start: index, stop: index + 1 });
    }
    return runs;
  };

  it("intersect, differ and count as sets of numbers do", () => {
    fc.assert(
      fc.property(sets, sets, fc.nat(21), fc.nat(21), (a, b, from, to) => {
        const sorted = a.toSorted((x, y) => x - y);
        const [one, other] = [runsOf(a), runsOf(b)];
        expect(listed(intersection(one, other))).toEqual(sorted.filter((index) => b.includes(index)));
        expect(listed(difference(one, other))).toEqual(sorted.filter((index) => !b.includes(index)));
        expect(countIn(one)).toBe(a.length);
        expect(countBelow(one, from)).toBe(a.filter((index) => index < from).length);
        expect(listed(onPositions(one, from, to))).toEqual(sorted.slice(from, to));
      }),
    );
  });
});

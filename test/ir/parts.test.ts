/**
 * Parts of axes and the runs of indices that devices hold, against a model that follows every index of an axis through
 * the splits.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type CutAxis,
  cutOf,
  heldRuns,
  indexInPart,
  numbersOf,
  overlay,
  rescaled,
  sizedCut,
  withTypes,
} from "../../src/ir/parts.ts";
import { countBelow, countIn, difference, intersection, onPositions, type Runs } from "../../src/ir/runs.ts";
import {
  type IterDomain,
  type IterDomainId,
  type DIDType,
  didTypes,
  isDID,
  plainDomain,
  type TensorDomain,
  type Transform,
} from "../../src/ir/domain.ts";
import { splitLike } from "../../src/passes/edit/tensor-edit.ts";
import { constant } from "../../src/ir/scalar/scalar.ts";
import { makeId } from "../../src/support/invariant.ts";

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

/** The domain with DID types on some of the leaves, in order. */
function typed({ domain, leaves }: ReturnType<typeof domainOf>, chosen: readonly boolean[]): TensorDomain {
  const cut = leaves.filter((_, i) => chosen[i] === true);
  const loop = leaves.map((leaf): IterDomain => {
    const type = didTypes[cut.indexOf(leaf)] ?? "Serial";
    return { ...axis, id: id(leaf), parallelType: type };
  });
  const [whole] = domain.transforms.length === 0 ? loop : [axis];
  return { ...domain, logical: [whole ?? axis], loop };
}

const booleans = fc.array(fc.boolean(), { minLength: 4, maxLength: 4 });

it("every index is held by exactly the devices with its coordinates", () => {
  fc.assert(
    fc.property(splits, fc.nat(40), booleans, (given, size, chosen) => {
      const { domain, leaves } = domainOf(given);
      const cut = leaves.filter((_, i) => chosen[i] === true);
      const own = typed({ domain, leaves }, chosen);
      const parts = sizedCut(own, own.logical[0] ?? axis, size);
      const owners = new Map<string, number[]>();
      for (let j = 0; j < size; j++) {
        const places = partIndices(domain, size, j);
        const key = cut.map((part) => places.get(part)).join(",");
        owners.set(key, [...(owners.get(key) ?? []), j]);
      }
      for (const [key, indices] of owners) {
        const coordinates = key === "" ? [] : key.split(",").map(Number);
        const runs = heldRuns(parts, (type) => (isDID(type) ? (coordinates[didTypes.indexOf(type)] ?? null) : null));
        expect(listed(runs)).toEqual(indices);
        expect(runs.every(({ stop }, i) => stop < (runs[i + 1]?.start ?? Infinity))).toBe(true);
      }
      const none = heldRuns(parts, (type) => (type === "DIDx" ? size + 1 : null));
      if (cut.length > 0) expect(none).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

it("the part that holds an index follows from the splits, and so does where it may end", () => {
  fc.assert(
    fc.property(splits, fc.integer({ min: 1, max: 40 }), fc.nat(5), (given, size, choice) => {
      const made = domainOf(given);
      const leaf = choice % made.leaves.length;
      const own = typed(
        made,
        made.leaves.map((_, i) => i === leaf),
      );
      const parts = sizedCut(own, own.logical[0] ?? axis, size);
      const position = parts.parts.findIndex(({ type }) => type === "DIDx");
      for (let j = 0; j < size;) {
        const found = indexInPart(parts, position, j);
        expect(found.end).toBeGreaterThan(j);
        for (; j < Math.min(found.end, size); j++)
          expect(partIndices(made.domain, size, j).get(made.leaves[leaf] ?? 0)).toBe(found.held);
      }
    }),
    { numRuns: 300 },
  );
});

const runsOn = (cut: CutAxis<number>, at: ReadonlyMap<DIDType, number>): readonly number[] =>
  listed(heldRuns(cut, (type) => (isDID(type) ? (at.get(type) ?? null) : null)));

/** The parts of an axis with the given size, as symbols. */
function cutWith(given: readonly Split[], chosen: readonly boolean[], size: number): CutAxis {
  const own = typed(domainOf(given), chosen);
  return cutOf(own, { ...(own.logical[0] ?? axis), extent: constant(size) });
}

it("parts of two types laid over each other give each type what it had alone", () => {
  fc.assert(
    fc.property(splits, splits, fc.integer({ min: 1, max: 40 }), booleans, (one, other, size, chosen) => {
      const a = withTypes(cutWith(one, chosen, size), (type) => type === "DIDx");
      const b = withTypes(cutWith(other, [true, true, true, true], size), (type) => type === "DIDy");
      const both = overlay(a, b);
      if (both === null) return;
      for (let x = 0; x < 5; x++) {
        const alone = runsOn(numbersOf(a), new Map([["DIDx", x]]));
        expect(runsOn(numbersOf(both), new Map([["DIDx", x]]))).toEqual(alone);
        const others = runsOn(numbersOf(b), new Map([["DIDy", x]]));
        expect(runsOn(numbersOf(both), new Map([["DIDy", x]]))).toEqual(others);
      }
    }),
    { numRuns: 300 },
  );
});

it("splits of a copy make the parts of the original", () => {
  fc.assert(
    fc.property(splits, fc.integer({ min: 1, max: 40 }), booleans, (given, size, chosen) => {
      const cut = cutWith(given, chosen, size);
      const copy: IterDomain = { ...axis, id: id(100), extent: constant(size) };
      const edit = { tensors: [], iterDomainCount: 101 };
      const domain = splitLike(edit, [{ axis: copy, model: cut }]);
      const made = cutOf(domain, domain.logical[0] ?? copy);
      expect(made.parts.filter(({ type }) => type !== "Serial")).toEqual(
        cut.parts.filter(({ type }) => type !== "Serial"),
      );
    }),
    { numRuns: 300 },
  );
});

it("a whole axis has one part, and extents of parts follow another extent", () => {
  const cut = cutWith([{ of: 0, factor: 2, innerSplit: false }], [true], 8);
  expect(cut.parts).toEqual([
    { extent: constant(2), stride: constant(4), type: "DIDx" },
    { extent: constant(4), stride: constant(1), type: "Serial" },
  ]);
  expect(rescaled(cut, constant(12)).parts).toEqual([
    { extent: constant(2), stride: constant(6), type: "DIDx" },
    { extent: constant(6), stride: constant(1), type: "Serial" },
  ]);
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

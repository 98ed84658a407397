/** The verifier's rows of numbers against plain arrays, and how much of them is shared in programs of many ranks. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { at } from "../../src/support/invariant.ts";
import { createKnownRows } from "../../src/verify/order/known.ts";
import { draws } from "../support/suite.ts";

const step = fc.record({
  kind: fc.constantFrom("copy", "set", "raise", "drop"),
  row: fc.nat(7),
  other: fc.nat(7),
  chain: fc.nat(299),
  value: fc.integer({ min: 1, max: 9 }),
});

it("are as plain arrays", () => {
  const chains = 300;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const rows = createKnownRows(chains);
      const real = Array.from({ length: 8 }, () => rows.take());
      const plain = Array.from({ length: 8 }, () => new Int32Array(chains));
      for (const { kind, row, other, chain, value } of steps) {
        const [own, model] = [at(real, row), at(plain, row)];
        if (kind === "set") {
          rows.set(own, chain, value);
          model[chain] = value;
        } else if (kind === "raise") {
          rows.raise(own, at(real, other));
          plain[row] = model.map((number, i) => Math.max(number, at(at(plain, other), i)));
        } else {
          const next = kind === "copy" ? rows.copy(at(real, other)) : rows.take();
          plain[row] = kind === "copy" ? at(plain, other).slice() : new Int32Array(chains);
          rows.drop(own);
          real[row] = next;
        }
      }
      for (const [i, row] of real.entries()) expect(row.all()).toEqual(at(plain, i));
      const [a, b] = [at(real, 0), at(real, 1)];
      const seen: number[] = [];
      a.differs(b, (chain) => seen.push(chain) < 0);
      expect(seen).toEqual(Array.from(at(plain, 0).keys()).filter((i) => plain[0]?.[i] !== plain[1]?.[i]));
    }),
    draws({ quick: 25, long: 120 }),
  );
});

it("share all pages but one between chains that have joined the same and gone on alone", () => {
  const chains = 10_000;
  const rows = createKnownRows(chains);
  const joined = rows.take();
  for (let chain = 0; chain < chains; chain++) rows.set(joined, chain, 1);
  const alone = Array.from({ length: chains }, (_, chain) => {
    const row = rows.copy(joined);
    rows.set(row, chain, 2);
    return row;
  });
  const own = alone.map(({ pages }) => pages.filter((page, place) => page !== joined.pages[place]).length);
  expect(new Set(own)).toEqual(new Set([1]));
  // Joining one of them costs its page, or nothing where it has the larger numbers.
  const [first, last] = [at(alone, 0), at(alone, chains - 1)];
  rows.raise(first, last);
  expect(first.pages.at(-1)).toBe(last.pages.at(-1));
  expect(first.pages.subarray(1, -1)).toEqual(joined.pages.subarray(1, -1));
});

/** The verifier against the order of all commands as an explicit relation, on random mutants of linked Programs. */
import { expect, it } from "vitest";
import { compareWithClosure } from "./compare-mutants.ts";

const count = 5000;

it(`the same verdict and kinds of findings on ${count} mutants`, async () => {
  const { counts, disagreements } = await compareWithClosure(count, 7);
  expect(disagreements).toEqual([]);
  // Every kind of verdict is among them.
  expect([...counts.keys()].toSorted()).toEqual([
    "deadlock",
    "lateEvent",
    "lifetime",
    "needsConcurrency",
    "ok",
    "operands",
    "overrun",
    "races",
    "unbalanced",
    "uninitialised",
    "unknownEvent",
  ]);
  for (const [kind, found] of counts) expect(found, kind).toBeGreaterThan(20);
});

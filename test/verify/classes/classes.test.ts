/**
 * The proof by class holds of Programs whose ranks are alike, and never of a Program that is wrong: with one change on
 * all ranks, which keeps the symmetry, or on one.
 */
import { expect, it } from "vitest";
import { link } from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import { proveByClasses } from "../../../src/verify/classes/prove-classes.ts";
import { verify } from "../../../src/verify/verify.ts";
import { alikePrograms } from "./alike-programs.ts";
import { compareMutants, compareProofs } from "./compare-proofs.ts";

const programs = alikePrograms(4);

it.each(programs)("$name: $classes classes", ({ lists, classes }) => {
  const program = link(lists);
  expect(proveByClasses(program, false)?.classes ?? null).toBe(classes);
  expect(compareProofs(program)).toBe(classes === null ? "ranks" : "classes");
});

it("a change of all ranks, or of one, is found by both proofs", () => {
  const counts = compareMutants(programs, 2);
  expect(counts.wrong).toBeGreaterThan(20);
  expect(counts.classes).toBeGreaterThan(2);
});

it("with 16 ranks, verify reports what the proof of every rank reports", () => {
  const program = link(at(alikePrograms(16, "allreduce"), 1).lists);
  expect(proveByClasses(program, true)?.classes).toBe(1);
  expect(verify(program)).toEqual(verify(program, { full: true }));
});

/**
 * The proof by class never holds of a Program that is wrong: small programs of every form of communication, random
 * programs, and both with changes on all ranks, on one, and in the linked Program.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DiagnosticError, link } from "@braid-compiler/braid";
import { createRandom } from "../../../src/support/random.ts";
import { exampleLists } from "../example-lists.ts";
import { changes, mutateProgram } from "../mutants/mutate-program.ts";
import { smallPrograms } from "../mutants/programs.ts";
import { recordSetting, settings } from "../random/random-setting.ts";
import { alikePrograms } from "./alike-programs.ts";
import { compareMutants, compareProofs } from "./compare-proofs.ts";

describe.each([2, 3, 4])("%i ranks", (devices) => {
  it("small programs and their changes", async () => {
    const programs = await smallPrograms(devices, 2);
    for (const { lists } of programs) compareProofs(link(lists));
    const counts = compareMutants(programs, 2, devices);
    expect(counts.wrong).toBeGreaterThan(100);
    expect(counts.classes).toBeGreaterThan(10);
  });
});

it("changes of programs whose ranks are alike", () => {
  const counts = compareMutants([...alikePrograms(4), ...alikePrograms(6)], 30, 3);
  expect(counts.wrong).toBeGreaterThan(500);
  expect(counts.classes).toBeGreaterThan(100);
});

it("examples of findings, as command lists", () => {
  for (const build of Object.values(exampleLists)) compareProofs(build());
});

it("random programs", () => {
  let proven = 0;
  fc.assert(
    fc.property(settings, (setting) => {
      const lists = recordSetting(setting);
      fc.pre(lists !== null);
      try {
        if (compareProofs(link(lists)) === "classes") proven++;
      } catch (error) {
        if (!(error instanceof DiagnosticError)) throw error;
      }
    }),
    { numRuns: 150, seed: 5, maxSkipsPerRun: 50 },
  );
  expect(proven).toBeGreaterThan(30);
});

it("changes of one command of a linked Program", () => {
  const random = createRandom(11);
  for (const { lists } of alikePrograms(4)) {
    const program = link(lists);
    for (const change of changes) {
      for (let i = 0; i < 5; i++) {
        const mutant = mutateProgram(program, change, random);
        if (mutant !== null) compareProofs(mutant.program);
      }
    }
  }
});

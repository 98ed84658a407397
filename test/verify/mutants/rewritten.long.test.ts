/**
 * Programs under every rewrite of docs/schedules.md, and what a rewrite with a bug might make of them: the verifier
 * passes the former, and of the latter its verdict is the judge's. Drawn at random, from seeds that the test names.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { link, type Program } from "@braid-compiler/braid";
import { memoryModels } from "../../../src/compile/memory-models.ts";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { compareProgram } from "./compare.ts";
import { changes, mutateProgram } from "./mutate-program.ts";
import { smallPrograms } from "./programs.ts";
import { rewritten } from "./rewritten.ts";

/** The judge's time grows with the cube of the commands. */
const mostCommands = 160;
const [programCount, mutantsOfEach] = [40, 10];
/** The judge does not look at operands that overlap. */
const judged = changes.filter((change) => change !== "buffer" && change !== "strides");

let programs: readonly { readonly name: string; readonly program: Program }[];
beforeAll(async () => {
  const nvfuser = await smallPrograms(3, 2, memoryModels.nvfuser);
  const small = [...(await smallPrograms(2, 2)), ...(await smallPrograms(3, 2)), ...nvfuser];
  programs = small.map(({ name, lists }) => ({ name, program: link(lists) }));
});

describe.each([1, 2])("seed %d", (seed) => {
  it("the same verdict on rewritten programs and on their mutants", () => {
    const random = createRandom(seed);
    const counts = { rewritten: 0, right: 0, wrong: 0 };
    const disagreements: string[] = [];
    for (let i = 0; i < programCount; i++) {
      const { name, program } = at(programs, random.integer(programs.length));
      const next = rewritten(program, random);
      if (next.ranks.reduce((sum, { commands }) => sum + commands.length, 0) > mostCommands) continue;
      if (next !== program) counts.rewritten++;
      expect([name, compareProgram(next)]).toEqual([name, { outcome: "right", disagreement: null }]);
      for (let k = 0; k < mutantsOfEach; k++) {
        const mutant = mutateProgram(next, at(judged, k % judged.length), random);
        if (mutant === null) continue;
        const { outcome, disagreement } = compareProgram(mutant.program);
        counts[outcome === "right" ? "right" : "wrong"]++;
        if (disagreement !== null) disagreements.push(`${name}; ${mutant.what}: ${disagreement}`);
      }
    }
    expect(disagreements).toEqual([]);
    expect(counts.rewritten).toBeGreaterThan(10);
    expect(counts.right).toBeGreaterThan(15);
    expect(counts.wrong).toBeGreaterThan(60);
  }, 60_000);
});

/**
 * One more alloc or free, anywhere and on any stream, in Programs whose buffers share bytes: what the verifier passes is
 * right by the judge and by the explicit order of all commands.
 */
import { expect, it } from "vitest";
import { link } from "@braid-compiler/braid";
import { at } from "../../../src/support/invariant.ts";
import { createRandom } from "../../../src/support/random.ts";
import { verify } from "../../../src/verify/verify.ts";
import { buildLists } from "../../machine/list-builder.ts";
import { runs } from "../../support/suite.ts";
import { decideByClosure } from "../closure/closure.ts";
import { judge } from "../judge/judge.ts";
import { mutateProgram } from "./mutate-program.ts";
import { tenancies } from "./tenancies.ts";

const count = runs({ quick: 120, long: 2000 });

it(`the same verdict on ${count} mutants`, () => {
  const random = createRandom(count);
  const counts = { right: 0, wrong: 0 };
  const disagreements: string[] = [];
  for (let n = 0; n < count; n++) {
    const program = tenancies(random, 2 + random.integer(3));
    const mutant = mutateProgram(program, n % 2 === 0 ? "free" : "alloc", random);
    if (mutant === null) throw new Error("every rank has temporaries");
    const { ok } = verify(mutant.program, { counterexamples: false });
    counts[ok ? "right" : "wrong"]++;
    if (ok !== judge(mutant.program).ok || ok !== decideByClosure(mutant.program).ok) disagreements.push(mutant.what);
  }
  expect(disagreements).toEqual([]);
  expect(counts.right).toBeGreaterThan(0);
  expect(counts.wrong).toBeGreaterThan(count / 2);
});

it("a free of a buffer that is not allocated, beside a copy into another one at the same bytes", () => {
  const linked = link(
    buildLists(1, (list) => {
      const [x, y] = [list.input([4]), list.output([4])];
      const [first, second] = [list.temporary([4]), list.temporary([4])];
      const worker = list.stream("worker");
      list.synchronize(worker, 0);
      list.free(0, second);
      list.alloc(worker, first);
      list.copy(worker, x, first);
      list.copy(worker, first, y);
      list.free(worker, first);
      list.synchronize(0, worker);
      list.alloc(0, second);
      list.free(0, second);
    }),
  );
  const { offset } = at(linked.buffers, 2);
  const program = {
    ...linked,
    buffers: linked.buffers.map((buffer) => (buffer.id === 3 ? { ...buffer, offset } : buffer)),
  };
  expect(verify(program).findings.map(({ code }) => code)).toEqual(["freed-twice"]);
});

/**
 * Random host programs of GEMMs into the parts of pairs, copies, and sums of a pair, on one device: with sums in GEMMs,
 * and results in place, they verify, with the same integers.
 */
import { type Program, type TensorView, verify } from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { applySchedule } from "../../src/schedule/schedule.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { runs } from "../support/suite.ts";
import { hosted, pair, summed } from "./exchanges.ts";
import { outputsOf } from "./programs.ts";

function randomProgram(seed: number): Program {
  const random = createRandom(seed);
  return hosted(({ h, input, output, temporary }) => {
    const oneOf = <T>(items: readonly T[]): T => at(items, random.integer(items.length));
    const temporaries: TensorView[] = [];
    const make = (shape: Parameters<typeof output>[0]): TensorView => {
      if (random.integer(4) === 0) return output(shape);
      const tensor = temporary(shape);
      temporaries.push(tensor);
      return tensor;
    };
    const inputs = [input(), input()];
    const [pairs, sums, plain] = [
      [make(pair), make(pair)],
      [make(summed), output(summed)],
      [make([6, 6]), make([6, 6])],
    ];
    const parts = pairs.flatMap((each) => [h.select(each, 0, 0), h.select(each, 0, 1)]);
    // Everything is written before it is read.
    for (const part of parts) h.matmul(oneOf(inputs), oneOf(inputs), { out: part });
    for (const each of sums) h.sum(oneOf(pairs), [0], { out: each });
    for (const each of plain) h.set(oneOf(inputs), { out: each });
    const all = [...inputs, ...sums, ...plain, ...parts];
    for (let i = 4 + random.integer(8); i > 0; i--) {
      const kind = random.integer(8);
      if (kind < 3) h.matmul(oneOf(all), oneOf(all), { out: oneOf(parts), accumulate: random.integer(4) === 0 });
      else if (kind < 5) h.sum(oneOf(pairs), [0], { out: oneOf(sums) });
      else if (kind < 7) h.set(oneOf(all), { out: oneOf(plain) });
      else h.add(oneOf(all), oneOf(all), { out: oneOf(plain) });
    }
    for (const tensor of temporaries) h.deallocate(tensor);
  });
}

const count = runs({ quick: 20, long: 3000 });

it(`${count} programs verify, and have the same results`, async () => {
  const counts = { right: 0, adding: 0, inPlace: 0 };
  for (let seed = 0; seed < count; seed++) {
    const program = randomProgram(seed);
    if (!verify(program, { notes: false, counterexamples: false }).ok) continue;
    counts.right++;
    const expected = await outputsOf(program, "seed:1");
    for (const schedule of [{ gemmSums: true }, { inPlace: true }, { inPlace: true, gemmSums: true }]) {
      const after = applySchedule(program, schedule);
      if (after === program) continue;
      if (after.kernels.some((kernel) => "addend" in kernel)) counts.adding++;
      else counts.inPlace++;
      const what = `seed ${seed}, ${JSON.stringify(schedule)}`;
      expect(
        verify(after, { notes: false }).findings.map(({ code, message }) => `${code}: ${message}`),
        what,
      ).toEqual([]);
      expect(await outputsOf(after, "seed:2"), what).toBe(expected);
    }
  }
  expect(counts.right).toBeGreaterThan(count / 3);
  expect(counts.adding).toBeGreaterThan(count / 20);
  expect(counts.inPlace).toBeGreaterThan(count / 20);
});

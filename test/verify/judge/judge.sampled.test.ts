/** The judge against a search through every order of small random programs. */
import { describe, expect, it } from "vitest";
import { createRandom } from "../../../src/support/random.ts";
import { searchAll } from "./exhaustive.ts";
import { judge } from "./judge.ts";
import { randomProgram } from "./random-program.ts";
import { runs } from "../../support/suite.ts";

const programs = runs({ quick: 40, long: 400 });
const mostStates = 20_000;

describe("the judge", () => {
  it(`agrees with a search through all orders of ${programs} programs`, () => {
    const seen = { searched: 0, deadlocks: 0, races: 0, overruns: 0, clean: 0 };
    for (let seed = 0; seed < programs; seed++) {
      const random = createRandom(seed);
      const runs = seed % 4 === 3 ? 2 : 1;
      const program = randomProgram(random, (runs === 2 ? 4 : 7) + random.integer(5));
      const synchronous = searchAll(program, runs, "synchronous", mostStates);
      const eager = searchAll(program, runs, "eager", mostStates);
      if (synchronous === null || eager === null) continue;
      const verdict = judge(program, runs);
      seen.searched++;
      expect({ seed, overrun: verdict.overrun }).toEqual({ seed, overrun: eager.overrun });
      // After an overrun, which signal is lost depends on the order.
      if (eager.overrun) {
        seen.overruns++;
        continue;
      }
      expect({ seed, deadlock: verdict.deadlock, races: verdict.races.toSorted() }).toEqual({
        seed,
        deadlock: synchronous.deadlock,
        races: eager.races,
      });
      if (verdict.deadlock) seen.deadlocks++;
      if (verdict.races.length > 0) seen.races++;
      if (!verdict.deadlock && verdict.races.length === 0) seen.clean++;
    }
    expect(seen.searched).toBeGreaterThan(0.9 * programs);
    for (const count of Object.values(seen)) expect(count, JSON.stringify(seen)).toBeGreaterThan(programs / 27);
  }, 120_000);
});

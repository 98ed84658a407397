/**
 * Damaged dumps: each is parsed or rejected with a diagnostic within 50 ms, and a parsed program survives its own dump.
 */
import { expect, it } from "vitest";
import { outcomeOf, startingDumps, survives } from "./fuzz-dumps.ts";
import { mutatedDump } from "./mutate-dump.ts";
import { runs } from "../../support/suite.ts";

const limit = 50;
const dumps = runs({ quick: 800, long: 20_000 });

it("damaged dumps are read or refused, in time", () => {
  const refused = new Map<string, number>();
  let read = 0;
  for (let seed = 0; seed < dumps; seed++) {
    const text = mutatedDump(seed, startingDumps);
    const { containers, code, milliseconds } = outcomeOf(text, limit);
    if (milliseconds > limit) expect.fail(`seed ${seed}: ${milliseconds} ms\n${text}`);
    if (code !== null) refused.set(code, (refused.get(code) ?? 0) + 1);
    for (const container of containers ?? []) {
      if (!survives(container)) expect.fail(`seed ${seed} does not survive its dump\n${text}`);
      read++;
    }
  }
  // If damage were always rejected, or never, the test would show little.
  expect(read).toBeGreaterThan(0.075 * dumps);
  const codes = ["dump-syntax", "dump-contradiction", "dump-incomplete", "dump-unsupported", "dump-container"];
  expect([...refused.keys()]).toEqual(expect.arrayContaining([...codes, "host-program-invalid"]));
}, 120_000);

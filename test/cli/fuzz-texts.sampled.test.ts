/**
 * Damaged command lines, profiles, configuration files, interleavings, headers of tensor files and plans are read or
 * refused with a diagnostic, in time.
 */
import { expect, it } from "vitest";
import { fuzzText, readers } from "./fuzz-texts.ts";
import { runs } from "../support/suite.ts";

const limit = 2_000;
const texts = runs({ quick: 2_000, long: 20_000 });

it("any text is read or refused", async () => {
  const read = new Map<string, number>();
  const refused = new Map<string, number>();
  for (let seed = 0; seed < texts; seed++) {
    const outcome = await fuzzText(seed);
    if (outcome.milliseconds > limit) expect.fail(`seed ${seed}: ${outcome.milliseconds} ms\n${outcome.text}`);
    const counts = outcome.refused ? refused : read;
    counts.set(outcome.name, (counts.get(outcome.name) ?? 0) + 1);
  }
  // If damage were always rejected, or never, the test would show little.
  for (const name of Object.keys(readers)) {
    expect([name, (read.get(name) ?? 0) > 0, (refused.get(name) ?? 0) > 0]).toEqual([name, true, true]);
  }
}, 120_000);

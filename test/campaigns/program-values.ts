import { fuzzPrograms } from "../verify/fuzz-programs.ts";
import type { Campaign } from "./campaign.ts";

/** Seeds that the tests, which begin at 0, do not reach. */
const firstSeed = 10_000_000;
const limit = 5_000;

export const programValues: Campaign = {
  what: `Programs with one to three fields changed to anything: verify never throws or takes ${limit / 1000} s, and what it says is right is right by the closure`,
  count: 200_000,
  run: (count) => {
    const { refused, right, slowest, failures } = fuzzPrograms(count, firstSeed);
    for (const line of failures.slice(0, 20)) console.log(line);
    return Promise.resolve({
      ok: failures.length === 0 && slowest <= limit,
      text: `${refused} refused, ${right} right, ${failures.length} failures, slowest ${slowest.toFixed(0)} ms`,
    });
  },
};

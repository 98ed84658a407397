import { fuzzText } from "../cli/fuzz-texts.ts";
import type { Campaign } from "./campaign.ts";

const limit = 2_000;

/** Seeds that the tests, which begin at 0, do not reach. */
const firstSeed = 10_000_000;

export const fuzz: Campaign = {
  what: `damaged command lines, bench --impl, profiles, configuration files, interleavings, headers of tensor files and plans are read or refused with a diagnostic within ${limit / 1000} s`,
  count: 1_000_000,
  run: async (count) => {
    let read = 0;
    let slowest = 0;
    let failures = 0;
    for (let i = 0; i < count; i++) {
      const seed = firstSeed + i;
      try {
        const { refused, milliseconds } = await fuzzText(seed);
        slowest = Math.max(slowest, milliseconds);
        if (milliseconds > limit) throw new Error(`${milliseconds} ms`);
        if (!refused) read++;
      } catch (error) {
        failures++;
        console.log(
          `seed ${seed}: ${error instanceof Error ? `${error.message} ${String(error.cause)}` : String(error)}`,
        );
      }
    }
    const text = `${read} read, ${failures} failures, slowest ${slowest.toFixed(1)} ms`;
    return { ok: failures === 0, text };
  },
};

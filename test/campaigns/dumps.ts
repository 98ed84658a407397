import { outcomeOf, startingDumps, survives } from "../host/parse/fuzz-dumps.ts";
import { mutatedDump } from "../host/parse/mutate-dump.ts";
import type { Campaign } from "./campaign.ts";

const limit = 50;

/** Seeds that the tests, which begin at 0, do not reach. */
const firstSeed = 10_000_000;

function heapMegabytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

export const dumps: Campaign = {
  what: `damaged dumps are read or refused with a diagnostic within ${limit} ms, what is read survives its own dump, and the heap does not grow`,
  count: 1_000_000,
  run: async (count) => {
    let read = 0;
    let slowest = 0;
    let failures = 0;
    let warm = heapMegabytes();
    for (let i = 0; i < count; i++) {
      if (i === Math.min(10_000, count >> 1)) warm = heapMegabytes();
      const seed = firstSeed + i;
      try {
        const { containers, milliseconds } = outcomeOf(mutatedDump(seed, startingDumps), limit);
        slowest = Math.max(slowest, milliseconds);
        if (milliseconds > limit) throw new Error(`${milliseconds} ms`);
        if (containers?.every(survives) === false) throw new Error("does not survive its dump");
        if (containers !== null) read++;
      } catch (error) {
        failures++;
        console.log(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    const grown = heapMegabytes() - warm;
    return {
      ok: failures === 0 && grown <= 20,
      text: `${read} read, ${failures} failures, slowest ${slowest.toFixed(1)} ms, heap ${grown >= 0 ? "+" : ""}${grown.toFixed(1)} MB after the first 10,000`,
    };
  },
};

/**
 * A million damaged dumps, of which CI does 20,000: each is read or refused with a diagnostic within 50 ms, and what is read survives its
 * own dump; memory does not grow. Says what it found; exit status 1 where something does not hold.
 *
 *     node --expose-gc node_modules/jiti/lib/jiti-cli.mjs bench/fuzz-parse.ts [COUNT] [FIRST SEED]
 */
import { outcomeOf, startingDumps, survives } from "../test/host/parse/fuzz-dumps.ts";
import { mutatedDump } from "../test/host/parse/mutate-dump.ts";

const count = Number(process.argv[2] ?? 1_000_000);
const first = Number(process.argv[3] ?? 0);
const limit = 50;

function heapMegabytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 1e6;
}

const codes = new Map<string, number>();
let read = 0;
let slowest = 0;
let failures = 0;
let warm = 0;
for (let seed = first; seed < first + count; seed++) {
  if (seed === first + Math.min(10_000, count >> 1)) warm = heapMegabytes();
  const text = mutatedDump(seed, startingDumps);
  try {
    const { containers, code, milliseconds } = outcomeOf(text, limit);
    slowest = Math.max(slowest, milliseconds);
    if (milliseconds > limit) throw new Error(`${milliseconds} ms`);
    if (code !== null) codes.set(code, (codes.get(code) ?? 0) + 1);
    if (containers?.every(survives) === false) throw new Error("does not survive its dump");
    if (containers !== null) read++;
  } catch (error) {
    failures++;
    console.log(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
const grown = heapMegabytes() - warm;
console.log(`${count} texts: ${read} read, ${failures} failures, slowest ${slowest.toFixed(1)} ms`);
console.log(`heap after ${warm.toFixed(1)} MB of the first texts: ${grown >= 0 ? "+" : ""}${grown.toFixed(1)} MB`);
console.log([...codes].map(([code, times]) => `${code} ${times}`).join(", "));
if (failures > 0 || grown > 20) process.exitCode = 1;

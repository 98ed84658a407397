/**
 * How often the functions and loops of this project's sources run: a measure of work that no load of the machine
 * changes. Counts are V8's, one per block of code; what a built-in function does inside is not among them.
 */
import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";
import { vi } from "vitest";

export interface StepCounter {
  /**
   * The steps of `run`, which must have run before: what runs for the first time is compiled, with counters, and fills
   * tables.
   */
  readonly count: (run: () => void) => Promise<number>;
  readonly stop: () => Promise<void>;
}

/**
 * Counts the code of modules that are imported from now on, anew if they were loaded before: code that was compiled
 * earlier has no counters.
 */
export async function startCounting(): Promise<StepCounter> {
  // V8 would else take code that an earlier test file compiled, without counters, from its cache.
  setFlagsFromString("--no-compilation-cache");
  // Calls that an optimizing compiler has inlined are not counted, and when it compiles is a matter of time.
  setFlagsFromString("--no-opt");
  setFlagsFromString("--no-maglev");
  vi.resetModules();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return {
    count: async (run) => {
      await session.post("Profiler.takePreciseCoverage");
      run();
      const { result } = await session.post("Profiler.takePreciseCoverage");
      const blocks = result
        .filter(({ url }) => url.includes("/src/"))
        .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges));
      return blocks.reduce((total, { count }) => total + count, 0);
    },
    stop: async () => {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
      setFlagsFromString("--opt");
      setFlagsFromString("--compilation-cache");
    },
  };
}

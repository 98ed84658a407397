/** Which rewrites a Program gets, by name of the option, and in which order they run: docs/schedules.md says what each is for. */
import type { Program } from "../commands/program.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { keysOf } from "../support/keys-of.ts";
import { batchSignals } from "./rewrites/batch-signals.ts";
import { earlySums } from "./rewrites/early-sums.ts";
import type { Grouping } from "./draft/grouping.ts";
import { kernelCopies } from "./rewrites/kernel-copies.ts";
import { mergeProducts } from "./rewrites/merge-gemms.ts";
import { ownChunkLast } from "./rewrites/own-chunk-last.ts";
import { placeStreams } from "./rewrites/place-streams.ts";
import type { Rewrite } from "./rewrite.ts";
import { smMargin } from "./rewrites/sm-margin.ts";
import { splitChunks } from "./rewrites/split-chunks.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";

export interface ScheduleOptions {
  /** Local copies are left out where their readers can read the original, or its maker write their place. */
  readonly inPlace?: boolean;
  /** Gemms that no other rank waits for come behind those that one does. */
  readonly ownLast?: boolean;
  /** Copies over links, and the products that they feed or that feed them, are cut into so many parts each. */
  readonly splitChunks?: number;
  /** Sizes of the groups of chunk products that become one product, in order of arrival; the last is that of all that follow. */
  readonly mergeProducts?: Grouping;
  /** Gemms take turns on so many streams, copies over links have one of their own. 1: products run on the caller's stream. */
  readonly computeStreams?: number;
  /**
   * Sizes of the groups of partial results that are added as they arrive, on a stream of their own; the last is that of all that follow. The
   * sum is then in the order of arrival, so that its last bits may be others.
   */
  readonly earlySums?: Grouping;
  /** Copies over links of at most so many bytes are made by a kernel of few blocks on GPUs, not by the copy engines. */
  readonly kernelCopies?: number;
  /** Waits for peers to be ready stand together before the first copy, signals that only the end waits for behind the last. */
  readonly batchSignals?: boolean;
  /** Gemms beside kernels in peers' memory, or that copy over links, leave so many multiprocessors of a GPU free for them. */
  readonly smMargin?: number;
}

interface Step {
  /** What is expected of the value; null where it is right. */
  readonly expected: (options: ScheduleOptions) => string | null;
  readonly apply: (program: Program, options: ScheduleOptions) => Program;
}

/** In the order in which they run: what changes the commands, what gives them streams, and what goes by the streams. */
const steps: { readonly [K in keyof Required<ScheduleOptions>]: Step } = {
  inPlace: flag(useInPlace, ({ inPlace }) => inPlace),
  ownLast: flag(ownChunkLast, ({ ownLast }) => ownLast),
  splitChunks: step(splitChunks, ({ splitChunks: parts }) => parts, expectedCount),
  mergeProducts: step(mergeProducts, ({ mergeProducts: sizes }) => sizes, expectedSizes),
  computeStreams: step(placeStreams, ({ computeStreams }) => computeStreams, expectedCount),
  earlySums: step(earlySums, ({ earlySums: sizes }) => sizes, expectedSizes),
  kernelCopies: step(kernelCopies, ({ kernelCopies: bytes }) => bytes, expectedCount),
  batchSignals: flag(batchSignals, ({ batchSignals: isAsked }) => isAsked),
  smMargin: step(smMargin, ({ smMargin: count }) => count, expectedCount),
};

/** Rewrites applied one by one in this order make the same Program as all at once. */
export const rewriteOrder: readonly (keyof ScheduleOptions)[] = keysOf(steps);

/** The Program under a schedule; the same object where nothing is asked for or nothing applies. Throws `bad-option`. */
export function applySchedule(program: Program, options: ScheduleOptions): Program {
  requireSchedule(options);
  return keysOf(steps).reduce((left, key) => steps[key].apply(left, options), program);
}

/** Throws `bad-option` for a value that an option does not take. */
export function requireSchedule(options: ScheduleOptions): void {
  for (const key of keysOf(steps)) {
    const expected = steps[key].expected(options);
    if (expected === null) continue;
    fail({
      code: "bad-option",
      message: "a schedule option has a value that it does not take",
      place: { kind: "option", text: `schedule.${key}` },
      found: JSON.stringify(options[key]),
      expected,
      help: "give such a value, or leave the option out",
    });
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}

function expectedCount(value: number): string | null {
  return isCount(value) ? null : "a whole number of at least 1";
}

function expectedSizes(sizes: Grouping): string | null {
  return sizes.length > 0 && sizes.every(isCount) ? null : "sizes of at least 1, such as [1, 3, 4]";
}

function flag(rewrite: Rewrite<true>, valueOf: (options: ScheduleOptions) => boolean | undefined): Step {
  return {
    expected: () => null,
    apply: (program, options) => (valueOf(options) === true ? rewrite.run(program, true) : program),
  };
}

function step<T>(
  rewrite: Rewrite<T>,
  valueOf: (options: ScheduleOptions) => T | undefined,
  expected: (value: T) => string | null,
): Step {
  return {
    expected: (options) => {
      const value = valueOf(options);
      return value === undefined ? null : expected(value);
    },
    apply: (program, options) => {
      const value = valueOf(options);
      return value === undefined ? program : rewrite.run(program, value);
    },
  };
}

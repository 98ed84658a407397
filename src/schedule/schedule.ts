/**
 * The schedule rewrites, one row each, in the order in which they run. docs/schedules.md describes each, and
 * src/compile/options/ checks their values.
 */
import type { Program } from "../commands/program.ts";
import { keysOf } from "../support/invariant.ts";
import { createDraftReader, type DraftReader } from "./draft/draft-reader.ts";
import type { Rewrite } from "./rewrite.ts";
import { batchSignals } from "./rewrites/batch-signals.ts";
import { type CopyStream, copyStream } from "./rewrites/copy-stream.ts";
import { dropSignals } from "./rewrites/drop-signals.ts";
import { earlyGathers } from "./rewrites/early-gathers.ts";
import { gemmSums } from "./rewrites/gemm-sums.ts";
import { ownChunkLast } from "./rewrites/own-chunk-last.ts";
import { placeStreams } from "./rewrites/place-streams.ts";
import { smMargin } from "./rewrites/sm-margin.ts";
import { splitChunks } from "./rewrites/split-chunks.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";

export interface ScheduleOptions {
  /** Leaves out signals between ranks, and the waits for them, where other signals order everything already. */
  readonly dropSignals?: boolean;
  /** Removes local copies whose readers can read the original, or whose writer can write to the copy's destination. */
  readonly inPlace?: boolean;
  /** Moves GEMMs that no other rank waits for after those that another rank waits for. */
  readonly ownLast?: boolean;
  /** Splits peer copies, and the GEMMs that read or write their data, into this many chunks each. */
  readonly splitChunks?: number;
  /** Issues communication that waits for no kernel before everything else, such as the gathers of all chunks. */
  readonly earlyGathers?: boolean;
  /**
   * Where two partial results are added, the GEMM of the rank's own one adds its result to the other and rounds once,
   * which may change the last bits.
   */
  readonly gemmSums?: boolean;
  /**
   * GEMMs alternate over this many streams, and peer copies run on a separate stream. With 1, GEMMs run on the caller's
   * stream.
   */
  readonly computeStreams?: number;
  /**
   * Moves all waits for peers before the first copy, and signals that only the end of a run waits for after the last
   * copy.
   */
  readonly batchSignals?: boolean;
  /** GEMMs that run concurrently with kernels in peers' memory leave this many SMs free for them. */
  readonly smMargin?: number;
  /** `dedicated`: peer copies run on one copy stream per device. `inline`: on the streams of the host program. */
  readonly copyStream?: CopyStream;
}

type Name = keyof ScheduleOptions;

type Choices = { readonly [K in Name]-?: Exclude<ScheduleOptions[K], false | undefined> };

/** An option that is false asks for no rewrite. */
export function isAsked<K extends Name>(value: ScheduleOptions[K]): value is ScheduleOptions[K] & Choices[K] {
  return value !== undefined && value !== false;
}

interface ScheduleRow<Choice> {
  readonly rewrite: Rewrite<Choice>;
  /** The rewrite keeps every recorded event, so a missing event is still missing after it. */
  readonly keepsEvents?: true;
}

/**
 * In the order in which they run: rewrites that change commands, then rewrites that assign streams, then rewrites that
 * depend on streams. The schema of options (src/compile/options/) lists the values of each.
 */
const rewrites: { readonly [K in Name]: ScheduleRow<Choices[K]> } = {
  dropSignals: { rewrite: dropSignals },
  inPlace: { rewrite: useInPlace },
  ownLast: { rewrite: ownChunkLast },
  splitChunks: { rewrite: splitChunks },
  earlyGathers: { rewrite: earlyGathers },
  gemmSums: { rewrite: gemmSums },
  computeStreams: { rewrite: placeStreams },
  batchSignals: { rewrite: batchSignals },
  smMargin: { rewrite: smMargin },
  copyStream: { rewrite: copyStream, keepsEvents: true },
};

/** Applying the rewrites one by one in this order gives the same Program as applying all at once. */
export const rewriteOrder: readonly Name[] = keysOf(rewrites);

/**
 * The rewritten Program, or the same object if no rewrite applies. Rewrites of several Programs that were made from one
 * share a `reader`.
 */
export function applySchedule(program: Program, options: ScheduleOptions, reader = createDraftReader()): Program {
  return rewriteOrder.reduce((rewritten, name) => applyRow(name, rewritten, options, reader), program);
}

/** Whether one of the rewrites changes the Program. */
export function scheduleApplies(program: Program, options: ScheduleOptions, reader: DraftReader): boolean {
  return rewriteOrder.some((name) => rowApplies(name, program, options, reader));
}

/**
 * Whether one of the requested rewrites regenerates events. It then orders everything that the recorded list orders,
 * which would mask a missing event.
 */
export function regeneratesEvents(options: ScheduleOptions): boolean {
  return rewriteOrder.some((name) => isAsked(options[name]) && rewrites[name].keepsEvents !== true);
}

function applyRow<K extends Name>(name: K, program: Program, options: ScheduleOptions, reader: DraftReader): Program {
  const value = options[name];
  return isAsked<K>(value) ? rewrites[name].rewrite.run(program, value, reader) : program;
}

function rowApplies<K extends Name>(name: K, program: Program, options: ScheduleOptions, reader: DraftReader): boolean {
  const value = options[name];
  return isAsked<K>(value) && rewrites[name].rewrite.applies(program, value, reader);
}

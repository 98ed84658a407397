/** The schedule rewrites, one row each, in the order in which they run: docs/schedules.md says what each is for. */
import type { Program } from "../commands/program.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { keysOf } from "../support/keys-of.ts";
import type { Grouping } from "./draft/grouping.ts";
import type { Rewrite } from "./rewrite.ts";
import { batchSignals } from "./rewrites/batch-signals.ts";
import { type CopyStream, copyStream, copyStreams } from "./rewrites/copy-stream.ts";
import { earlySums } from "./rewrites/early-sums.ts";
import { kernelCopies } from "./rewrites/kernel-copies.ts";
import { mergeGemms } from "./rewrites/merge-gemms.ts";
import { ownChunkLast } from "./rewrites/own-chunk-last.ts";
import { placeStreams } from "./rewrites/place-streams.ts";
import { smMargin } from "./rewrites/sm-margin.ts";
import { splitChunks } from "./rewrites/split-chunks.ts";
import { useInPlace } from "./rewrites/use-in-place.ts";

export interface ScheduleOptions {
  /** Leaves out local copies whose readers can read the original, or whose writer can write to the copy's place. */
  readonly inPlace?: boolean;
  /** Moves GEMMs that no other rank waits for after those that one does. */
  readonly ownLast?: boolean;
  /** Cuts peer copies, and the GEMMs that they feed or that feed them, into this many parts each. */
  readonly splitChunks?: number;
  /** Sizes of the groups of chunk GEMMs that become one GEMM, in order of arrival; the last size is that of all further groups. */
  readonly mergeGemms?: Grouping;
  /** GEMMs take turns on this many streams, peer copies have a stream of their own. 1: GEMMs run on the caller's stream. */
  readonly computeStreams?: number;
  /**
   * Sizes of the groups of partial results that are added as they arrive, on a stream of their own; the last size is that of all further
   * groups. The sum is then in the order of arrival, which may change its last bits.
   */
  readonly earlySums?: Grouping;
  /** Peer copies of at most this many bytes are made by a kernel of few blocks on GPUs, not by the copy engines. */
  readonly kernelCopies?: number;
  /** Groups all waits for peers before the first copy, and signals that only the end waits for after the last. */
  readonly batchSignals?: boolean;
  /** GEMMs that run beside kernel copies, or beside kernels in peers' memory, leave this many SMs of a GPU free for them. */
  readonly smMargin?: number;
  /** `dedicated`: peer copies run on a copy stream of each device; `inline`: on the streams of the host program. */
  readonly copyStream?: CopyStream;
}

type Values = Required<ScheduleOptions>;
type Name = keyof Values;

/** What values an option takes. Flags and checks derive from it. */
export type ScheduleValue =
  { readonly kind: "switch" | "count" | "groups" } | { readonly kind: "choice"; readonly choices: readonly string[] };

export interface ScheduleRow<Value> {
  readonly value: ScheduleValue;
  /** One sentence, for the command line. */
  readonly help: string;
  readonly run: Rewrite<Value>["run"];
  /** The rewrite moves commands but keeps every recorded event: an edge that was missing is still missing after it. */
  readonly keepsEvents?: true;
}

/** In the order in which they run: rewrites that change commands, those that give streams, and those that need the streams. */
export const scheduleRows: { readonly [K in Name]: ScheduleRow<Values[K]> } = {
  inPlace: {
    value: { kind: "switch" },
    help: "leave out local copies where the original, or the copy's place, can be used instead",
    run: whereAsked(useInPlace),
  },
  ownLast: {
    value: { kind: "switch" },
    help: "compute what no other device waits for last",
    run: whereAsked(ownChunkLast),
  },
  splitChunks: {
    value: { kind: "count" },
    help: "cut each copy over a link, and the product beside it, into n parts",
    run: splitChunks.run,
  },
  mergeGemms: {
    value: { kind: "groups" },
    help: "make one product of several chunks': sizes of groups in order of arrival, such as 1-3-4",
    run: mergeGemms.run,
  },
  computeStreams: {
    value: { kind: "count" },
    help: "products take turns on n streams, copies over links have one of their own",
    run: placeStreams.run,
  },
  earlySums: {
    value: { kind: "groups" },
    help: "add partial results as they arrive: sizes of groups, such as 4; may change the last bits",
    run: earlySums.run,
  },
  kernelCopies: {
    value: { kind: "count" },
    help: "copies over links of at most so many bytes by a small kernel instead of the copy engines (--on cuda)",
    run: kernelCopies.run,
  },
  batchSignals: {
    value: { kind: "switch" },
    help: "wait for all peers before the first copy, tell all behind the last",
    run: whereAsked(batchSignals),
  },
  smMargin: {
    value: { kind: "count" },
    help: "products leave n multiprocessors free for kernels in peers' memory beside them (--on cuda)",
    run: smMargin.run,
  },
  copyStream: {
    value: { kind: "choice", choices: copyStreams },
    help: "copies from and to peers on a stream of their own per device, or where the host program has them (default: dedicated with --on cuda)",
    run: copyStream.run,
    keepsEvents: true,
  },
};

/** Applying the rewrites one by one in this order makes the same Program as all at once. */
export const rewriteOrder: readonly Name[] = keysOf(scheduleRows);

/** The rewritten Program; the same object where nothing is asked for or nothing applies. Throws `bad-option`. */
export function applySchedule(program: Program, options: ScheduleOptions): Program {
  requireSchedule(options);
  return rewriteOrder.reduce((rewritten, name) => applyRow(name, rewritten, options), program);
}

/**
 * Whether a rewrite that is asked for regenerates events. It then orders everything that the recorded list orders, which would mask a
 * missing event.
 */
export function regeneratesEvents(options: ScheduleOptions): boolean {
  return rewriteOrder.some((name) => {
    const value = options[name];
    return value !== undefined && value !== false && scheduleRows[name].keepsEvents !== true;
  });
}

/** Throws `bad-option` for a value that an option does not take. */
export function requireSchedule(options: ScheduleOptions): void {
  for (const name of rewriteOrder) {
    const value = options[name];
    const expected = value === undefined ? null : expectedInstead(scheduleRows[name].value, value);
    if (expected === null) continue;
    fail({
      code: "bad-option",
      message: "a schedule option has a value that it does not take",
      place: { kind: "option", text: `schedule.${name}` },
      found: JSON.stringify(value),
      expected,
      help: "give such a value, or leave the option out",
    });
  }
}

function applyRow<K extends Name>(name: K, program: Program, options: Partial<Values>): Program {
  const value = options[name];
  return value === undefined ? program : scheduleRows[name].run(program, value);
}

function whereAsked(rewrite: Rewrite<true>): Rewrite<boolean>["run"] {
  return (program, isAsked) => (isAsked ? rewrite.run(program, true) : program);
}

/** What is expected of the value; null where it is right. */
function expectedInstead(takes: ScheduleValue, value: unknown): string | null {
  switch (takes.kind) {
    case "switch":
      return typeof value === "boolean" ? null : "true or false";
    case "count":
      return isCount(value) ? null : "a whole number of at least 1";
    case "groups":
      return Array.isArray(value) && value.length > 0 && value.every(isCount)
        ? null
        : "sizes of at least 1, such as [1, 3, 4]";
    case "choice":
      return takes.choices.some((choice) => choice === value) ? null : takes.choices.join(" or ");
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 1;
}

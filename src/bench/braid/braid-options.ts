/**
 * The options of Braid's own implementations, by the names of `--impl braid;NAME=VALUE`. One table: a new schedule rewrite does not compile until it has its row here, and
 * then has its column value, its help and its message.
 */
import { type GraphUse, graphUses } from "../../cuda.ts";
import type { OptionValue } from "../../compile/options.ts";
import type { CommunicatorBackend } from "../../host/collectives.ts";
import { copyStreams } from "../../schedule/rewrites/copy-stream.ts";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { isOneOf } from "../../support/is-one-of.ts";
import { keysOf } from "../../support/keys-of.ts";
import { type LoopForm, loopForms } from "../primitives.ts";

/** What may be said of one implementation, in the terms of lowering, recording and the back end. */
interface ProgramOptions {
  readonly form?: LoopForm;
  readonly backend?: Extract<CommunicatorBackend, "nccl" | "cuda">;
  readonly protocol?: "get" | "put";
  /** Iterations of the loop of form `collective`. */
  readonly chunks?: number;
  /** Tensors that a loop over devices puts the rows of its result in: each is made for itself, so that its exchange can begin while the next is computed. */
  readonly outputs?: number;
  /** Streams that a loop alternates over. */
  readonly streams?: number;
  readonly interStreamSync?: boolean;
  readonly graph?: GraphUse;
  /** auto: what else is not said is chosen by simulating candidates on the machine of --profile. */
  readonly choice?: OptionValue<"scheduleChoice">;
}

export interface BraidOptions extends ProgramOptions {
  /** Rewrites of the recorded commands. */
  readonly schedule?: ScheduleOptions;
}

export type BraidOption = keyof ProgramOptions | keyof ScheduleOptions;

interface OptionRow {
  /** Of the value, for messages and the documentation. */
  readonly expected: string;
  /** Null for a text that is no such value. */
  readonly read: (text: string) => BraidOptions | null;
}

export const braidOptionTable: { readonly [K in BraidOption]: OptionRow } = {
  form: oneOf(loopForms, (form) => ({ form })),
  backend: oneOf(["nccl", "cuda"], (backend) => ({ backend })),
  protocol: oneOf(["get", "put"], (protocol) => ({ protocol })),
  chunks: count((chunks) => ({ chunks })),
  outputs: count((outputs) => ({ outputs })),
  streams: count((streams) => ({ streams })),
  interStreamSync: flag((interStreamSync) => ({ interStreamSync })),
  graph: oneOf(graphUses, (graph) => ({ graph })),
  choice: oneOf(["given", "auto"], (choice) => ({ choice })),
  inPlace: flag((inPlace) => ({ schedule: { inPlace } })),
  ownLast: flag((ownLast) => ({ schedule: { ownLast } })),
  splitChunks: count((splitChunks) => ({ schedule: { splitChunks } })),
  mergeGemms: groups((mergeGemms) => ({ schedule: { mergeGemms } })),
  computeStreams: count((computeStreams) => ({ schedule: { computeStreams } })),
  earlySums: groups((earlySums) => ({ schedule: { earlySums } })),
  kernelCopies: count((kernelCopies) => ({ schedule: { kernelCopies } })),
  batchSignals: flag((batchSignals) => ({ schedule: { batchSignals } })),
  smMargin: count((smMargin) => ({ schedule: { smMargin } })),
  copyStream: oneOf(copyStreams, (copyStream) => ({ schedule: { copyStream } })),
};

export const braidOptionNames: readonly BraidOption[] = keysOf(braidOptionTable);

/** What both say; of one option what `later` says. */
export function joinOptions(earlier: BraidOptions, later: BraidOptions): BraidOptions {
  return { ...earlier, ...later, schedule: { ...earlier.schedule, ...later.schedule } };
}

function oneOf<T extends string>(values: readonly T[], make: (value: T) => BraidOptions): OptionRow {
  return {
    expected: `one of ${values.join(", ")}`,
    read: (text) => (isOneOf(values, text) ? make(text) : null),
  };
}

function flag(make: (value: boolean) => BraidOptions): OptionRow {
  return {
    expected: "true or false",
    read: (text) => (text === "true" || text === "false" ? make(text === "true") : null),
  };
}

function count(make: (value: number) => BraidOptions): OptionRow {
  return {
    expected: "a whole number of at least 1",
    read: (text) => {
      const value = wholeNumber(text);
      return value === null ? null : make(value);
    },
  };
}

function groups(make: (sizes: readonly number[]) => BraidOptions): OptionRow {
  return {
    expected: "sizes of groups with - between them, such as 1-3-4",
    read: (text) => {
      const sizes = text.split("-").map(wholeNumber);
      const known = sizes.filter((size) => size !== null);
      return known.length === sizes.length ? make(known) : null;
    },
  };
}

function wholeNumber(text: string): number | null {
  const value = Number(text);
  return /^\d+$/.test(text) && Number.isSafeInteger(value) && value >= 1 ? value : null;
}

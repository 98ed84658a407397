/** Schedule options: rewrites of the linked Program, which --schedule names, and how they are chosen. */
import * as v from "valibot";
import type { ScheduleOptions } from "../../schedule/schedule.ts";
import { isOneOf, keysOf } from "../../support/invariant.ts";
import { assignments, changeValues, kindOf, oneOf, text, toggle, wholeNumber } from "./kinds.ts";
import { onPrograms, type OptionRow, type RowsFor } from "./row.ts";

const schedule = { group: "schedule", commands: onPrograms } as const;

/** Values that --schedule assigns: no flags of their own. */
const rewrite = { group: "schedule", commands: [], within: "schedule" } as const;
const rewriteOff = { ...rewrite, kind: toggle, default: false } as const;

/** The rewrites, in the order of `ScheduleOptions`. */
export const scheduleRows = {
  copyStream: {
    ...rewrite,
    kind: oneOf(["dedicated", "inline"]),
    otherwise: "dedicated with --on cuda, else inline",
    help: "run copies between devices on a copy stream of each device, or where the host program issues them",
  },
  dropSignals: { ...rewriteOff, help: "leave out signals between devices where others order everything already" },
  inPlace: { ...rewriteOff, help: "leave out local copies whose source, or destination, can be used instead" },
  ownLast: { ...rewriteOff, help: "compute the chunks that no other device waits for last" },
  splitChunks: {
    ...rewrite,
    kind: wholeNumber(1, 2),
    help: "cut each copy between devices, and the GEMM that uses its chunk, into n parts",
  },
  earlyGathers: {
    ...rewriteOff,
    help: "issue communication that waits for no kernel, such as the gathers of all chunks, before everything else",
  },
  gemmSums: {
    ...rewriteOff,
    help: "let the GEMM of a device's own partial result add the other one; may change the last bits",
  },
  computeStreams: {
    ...rewrite,
    kind: wholeNumber(1, 1),
    help: "run GEMMs on n compute streams in turn, and copies between devices on a copy stream",
  },
  batchSignals: { ...rewriteOff, help: "wait for all peers before the first copy, signal all peers after the last" },
  smMargin: {
    ...rewrite,
    kind: wholeNumber(1, 8),
    help: "SMs that GEMMs leave free for kernels that access peers' memory at the same time (--on cuda)",
  },
} as const satisfies RowsFor<ScheduleOptions>;

/**
 * auto: the form, streams and rewrites that are predicted to be the fastest. as-written: what the program says, in its
 * order. An object: these rewrites of it.
 */
export type Schedule = "auto" | "as-written" | ScheduleOptions;

/** The rewrites among the options that compile a program. */
export function rewritesOf(schedule: Schedule | undefined): { readonly schedule?: ScheduleOptions } {
  return typeof schedule === "object" ? { schedule } : {};
}

export const scheduleWords = ["auto", "as-written"] as const;
const rewriteRows: Readonly<Record<string, OptionRow>> = scheduleRows;

const scheduleKind = kindOf<Schedule>({
  schema: v.custom<Schedule>((value) =>
    typeof value === "string" ? isOneOf(scheduleWords, value) : areRewrites(value),
  ),
  expected: `auto, as-written, or some of ${keysOf(scheduleRows).join(", ")} with commas between them`,
  argument: "auto|as-written|name=value,..",
  example: "inPlace,computeStreams=2",
  parse: (given) => (isOneOf(scheduleWords, given) ? given : rewritesIn(given)),
  print: (value) =>
    typeof value === "string"
      ? value
      : Object.entries(value)
          .filter(([, each]) => each !== undefined)
          .map(([name, each]) => (each === true ? name : `${name}=${String(each)}`))
          .join(","),
  separator: ",",
});

function areRewrites(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).every(([name, each]) => rewriteRows[name]?.kind.accepts(each) ?? false)
  );
}

/**
 * Rewrites are of what is written, so they may stand beside that word. A name alone turns a rewrite on. Undefined for an
 * unknown name, a bad value and a name that stands twice.
 */
function rewritesIn(given: string): object | undefined {
  const parts = given.split(",").filter((part) => part !== "as-written");
  const pairs = parts.map((part): readonly [string, unknown] => {
    const [name = "", value = "true"] = part.trim().split("=");
    return [name, rewriteRows[name]?.kind.read(value)];
  });
  const values = new Map(pairs.filter(([, value]) => value !== undefined));
  return values.size === pairs.length ? Object.fromEntries(values) : undefined;
}

export const choiceRows = {
  schedule: {
    ...schedule,
    kind: scheduleKind,
    otherwise: "auto with a profile of the machine, else as-written",
    help: "take the schedule that is predicted to be the fastest, or what the program says, or rewrite that (docs/schedules.md)",
  },
  profile: {
    ...schedule,
    commands: [...onPrograms, "bench"],
    kind: text("file", "4xH200"),
    otherwise: "with --on cuda, the shipped profile of this machine's GPUs if there is one",
    help: "machine profile to choose with: a file that braid calibrate wrote, or the name of a shipped profile",
  },
  whatIf: {
    ...schedule,
    commands: ["explain"],
    kind: assignments(changeValues, "gemm=1.2x"),
    default: new Map(),
    help: "also predict for another machine: gemm=1.2x, link=2x, link=900GB/s, memory=2x, network=50GB/s, devices=16, hosts=2; may be repeated",
  },
} as const satisfies Readonly<Record<string, OptionRow>>;

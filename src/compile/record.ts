/** `record` of the API: checks its options and fills in defaults. */
import type { CommandList } from "../commands/command-list.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/arguments.ts";
import { mostDevices } from "../host/program-file.ts";
import { byClass } from "../host/alike/classes.ts";
import { hostOn } from "../host/alike/rank-rules.ts";
import type { HostProgram } from "../host/nodes.ts";
import { recordAlike, recordHost } from "../record/record.ts";
import type { RecorderOptions } from "../record/recorder.ts";
import { createCommon } from "../record/common.ts";
import type { AlikeRecording } from "../record/alike/alike-lists.ts";
import { replicaSize, withoutOthers } from "../record/alike/replicas.ts";
import type { HostClass } from "./lowering-class.ts";
import { type OptionValue, recordingNames } from "./options.ts";
import type { OnProgress } from "../support/progress.ts";
import { resolveOptions } from "./options/resolve.ts";

/** Numbers by name: a Map or an object. */
export type NamedNumbers = ReadonlyMap<string, number> | Readonly<Record<string, number>>;

export interface RecordOptions {
  /** The rank whose commands are recorded. */
  readonly rank: number;
  /**
   * Sizes of symbolic extents in elements, by printed name (`i0`). A sharded axis without one takes its size from the
   * mesh.
   */
  readonly sizes?: NamedNumbers;
  /** Values of the program's other scalars, by name. */
  readonly scalars?: NamedNumbers;
  /** Worker streams that a Stream loop alternates over (`numberOfStreams` in the program); 4 if omitted. */
  readonly streams?: OptionValue<"streams">;
  /** Who copies in one-sided point-to-point: "get" (the receiver) or "put" (the sender); "get" if omitted. */
  readonly protocol?: OptionValue<"protocol">;
  /**
   * Where freed memory may be used again: on the stream that allocated it ("pytorch") or that frees it ("braid");
   * "braid" if omitted.
   */
  readonly allocator?: OptionValue<"allocator">;
  /**
   * On which communicator NCCL runs a send or receive outside a coalesced group: one of all ranks ("team"), or of the
   * two ("pair"); "team" if omitted.
   */
  readonly communicators?: OptionValue<"communicators">;
  /** The number of ranks. With "pair", groups and collectives of all of them share a communicator if it is given. */
  readonly devices?: number;
}

/** The options of `record` in the schema. */
export const recordNames = ["protocol", ...recordingNames] as const;

/**
 * The command list of one rank's host program for given sizes. Throws `bad-option`, `option-unknown`, `bad-extent` and
 * `bad-argument` for options, and the diagnostics of `record` for a program that is invalid or does not fit the sizes.
 */
export function record(program: HostProgram, { rank, ...given }: RecordOptions): CommandList {
  requireWholeNumber("record(program, { rank })", rank, 0);
  return recordHost(program, { rank, ...checked(given) });
}

/** The command lists of all ranks of the classes, in order. */
export function recordAll(
  classes: readonly HostClass[],
  given: Omit<RecordOptions, "rank">,
  { protocols, onProgress, oneReplica }: RecordAllOptions = {},
): readonly CommandList[] {
  const options = { ...checked(given), ...(protocols === undefined ? {} : { protocols }) };
  const common = createCommon();
  onProgress?.("recording");
  const count = classes.reduce((sum, { ranks }) => sum + ranks.length, 0);
  const lists: CommandList[] = [];
  const together: AlikeRecording[] = [];
  for (const { ranks, host, rules } of classes) {
    const attempt = (part: readonly number[]): AlikeRecording | null =>
      part.length < (oneReplica === undefined ? fewestAlike : 2)
        ? null
        : recordAlike(host, rules, part, options, common);
    for (const { ranks: own, made } of byClass(ranks, attempt)) {
      onProgress?.("recording ranks", lists.length, count);
      if (made !== null) together.push(made);
      else lists.push(...own.map((rank) => recordHost(hostOn(rules, host, rank), { rank, ...options }, common)));
    }
  }
  const size = oneReplica === undefined || lists.length > 0 ? count : replicaSize(together, oneReplica);
  for (const { alike, listOn } of together) {
    for (const [k, rank] of alike.ranks.entries())
      if (rank < size) lists.push(size < count ? withoutOthers(listOn(k), size) : listOn(k));
  }
  return lists.sort((a, b) => a.rank - b.rank);
}

export interface RecordAllOptions {
  /** By region, if not all have the same. */
  readonly protocols?: RecorderOptions["protocols"] | undefined;
  readonly onProgress?: OnProgress | undefined;
  /** Where the ranks are replicas that each lie on one host, the lists of the first alone, or of those with `least` ranks. */
  readonly oneReplica?: { readonly devicesPerHost: number; readonly least: number } | undefined;
}

/** With fewer ranks, recording each takes less time. */
const fewestAlike = 3;

function checked({ devices, sizes, scalars, ...others }: Omit<RecordOptions, "rank">): Omit<RecorderOptions, "rank"> {
  if (devices !== undefined) requireWholeNumber("record(program, { devices })", devices, 1, mostDevices);
  const { allocator = "braid", communicators = "team", ...options } = resolveOptions(recordNames, others);
  const named = { sizes: sizesByName(sizes), scalars: scalarsByName(scalars) };
  return { devices: devices ?? null, ...named, ...options, allocator, communicators };
}

/** Throws `bad-extent`. */
function sizesByName(given: NamedNumbers | undefined): ReadonlyMap<string, number> {
  const sizes = numbersByName(given);
  for (const [name, size] of sizes) {
    if (Number.isSafeInteger(size) && size >= 0) continue;
    fail("bad-extent", `the size of ${name} is not a whole number of at least 0`, {
      place: { kind: "call", text: "record(program, { sizes })" },
      found: String(size),
      expected: "a whole number of at least 0",
      help: `give ${name} the number of elements along its axis`,
    });
  }
  return sizes;
}

/** Throws `bad-argument`. */
function scalarsByName(given: NamedNumbers | undefined): ReadonlyMap<string, number> {
  const scalars = numbersByName(given);
  for (const [name, value] of scalars) {
    if (Number.isSafeInteger(value)) continue;
    fail("bad-argument", `scalar ${name} is not a whole number`, {
      place: { kind: "call", text: "record(program, { scalars })" },
      found: String(value),
      expected: "a whole number (0 and 1 for false and true)",
      help: `give ${name} a whole number`,
    });
  }
  return scalars;
}

export function numbersByName(numbers: NamedNumbers = new Map()): ReadonlyMap<string, number> {
  return isMap(numbers) ? numbers : new Map(Object.entries(numbers));
}

function isMap(numbers: NamedNumbers): numbers is ReadonlyMap<string, number> {
  return numbers instanceof Map;
}

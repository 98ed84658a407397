/**
 * A flight record of PyTorch: the last transfers that one rank gave to its communication library, oldest first, and its
 * process groups. PyTorch writes it as a pickle (`nccl_trace_rank_3`) or as JSON, with the same fields but for stack
 * frames, which JSON lacks. Neither says the rank: the file's name does.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { at } from "../../support/invariant.ts";
import { utf8Text } from "../../support/json-document.ts";
import {
  type Document,
  field,
  fieldsIn,
  isAbsent,
  type Json,
  listIn,
  numberIn,
  jsonPlaceText,
  textIn,
  wholeIn,
  wrongValue,
} from "../json.ts";
import { readPickle } from "./pickle.ts";

export interface TorchRecord {
  readonly path: string;
  readonly rank: number;
  /** The members of each process group by its name. Subgroups of one split share a name. */
  readonly groups: ReadonlyMap<string, GroupConfig>;
  readonly entries: readonly TorchEntry[];
}

export interface GroupConfig {
  readonly description: string;
  /** In the group's order. */
  readonly ranks: readonly number[];
}

/** A call of the communication library. */
export interface TorchEntry {
  /** How many entries the rank had recorded before. The buffer has forgotten those before the first entry. */
  readonly id: number;
  readonly group: string;
  readonly description: string;
  /** `all_reduce`, or `send` and `recv` with their peers. */
  readonly op: string;
  /** For a send or recv: positions in the group. */
  readonly peers: { readonly source: number; readonly destination: number } | null;
  readonly isPointToPoint: boolean;
  /** Of its group: counted on each rank, over collectives, or over sends, recvs and batches of them. */
  readonly number: number;
  readonly inputs: readonly RecordedShape[];
  readonly outputs: readonly RecordedShape[];
  /** `scheduled` may have started, unless the record has times of starts. */
  readonly state: "scheduled" | "started" | "completed";
  /** Whether its start was seen apart from its end: records without events of starts have none. */
  readonly hasStart: boolean;
  /** That the library's watchdog let go of it: if it has not completed, it timed out. */
  readonly isRetired: boolean;
  readonly timeoutMilliseconds: number | null;
  /** The innermost first; empty if the record has none. */
  readonly frames: readonly StackFrame[];
}

export interface RecordedShape {
  readonly dtype: string;
  readonly sizes: readonly number[];
}

export interface StackFrame {
  readonly name: string;
  readonly file: string;
  readonly line: number;
}

const help = "pass the file as PyTorch wrote it: docs/flight-records.md says how to get one of each rank";

/** Throws `record-invalid`. */
export function readTorchRecord(bytes: Uint8Array, path: string): TorchRecord {
  const document: Document = {
    path,
    entry: null,
    invalid: { code: "record-invalid", message: "a flight record has another form than PyTorch's", help },
  };
  const value = bytes[0] === 0x80 ? readPickle(bytes, path) : parsed(bytes, path);
  const root: Json = { value, document, parent: null, key: "" };
  requireVersion(field(root, "version"));
  const entries = field(root, "entries");
  return {
    path,
    rank: rankOf(path),
    groups: new Map(fieldsIn(field(root, "pg_config")).map(([name, config]) => [name, groupOf(config)])),
    // The JSON of a rank that recorded nothing leaves them out.
    entries: isAbsent(entries) ? [] : listIn(entries).map(entryOf),
  };
}

function parsed(bytes: Uint8Array, path: string): unknown {
  try {
    return JSON.parse(utf8Text(bytes));
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof URIError)) throw error;
    return fail("record-invalid", "a flight record is neither JSON nor a pickle", {
      place: { kind: "file", path },
      found: error.message,
      expected: "what PyTorch's flight recorder writes",
      help,
    });
  }
}

function requireVersion(version: Json): void {
  const text = textIn(version);
  if (/^2\.\d+$/u.test(text)) return;
  fail("record-invalid", "a flight record has a version that Braid does not read", {
    place: { kind: "file", path: jsonPlaceText(version) },
    found: text,
    expected: "2.0 or a later 2",
    help: "record the run with a newer PyTorch",
  });
}

/** The last number of the name: `nccl_trace_rank_3`, `fr_3.json`, `trace_node02_3`. */
function rankOf(path: string): number {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);
  const digits = /(\d+)\D*$/u.exec(name)?.[1];
  if (digits !== undefined && digits.length < 8) return Number(digits);
  return fail("record-invalid", "the name of a flight record has no rank", {
    place: { kind: "file", path },
    found: name,
    expected: "a name that ends in the rank, such as nccl_trace_rank_3 or fr_3.json",
    help: "name the file after its rank: PyTorch's records do not say it",
  });
}

/** `{ name, desc, ranks: "[0, 1]" }`. */
function groupOf(config: Json): GroupConfig {
  const ranks = field(config, "ranks");
  const text = textIn(ranks);
  if (!/^\[[\d, ]*\]$/u.test(text)) wrongValue(ranks, "the ranks of a group, as a text such as [0, 1]");
  return { description: textIn(field(config, "desc")), ranks: (text.match(/\d+/gu) ?? []).map(Number) };
}

function entryOf(json: Json): TorchEntry {
  const names = field(json, "process_group");
  const [group, description] = listIn(names);
  if (group === undefined || description === undefined) return wrongValue(names, "the name of a group and its text");
  const { op, peers } = opOf(field(json, "profiling_name"));
  // Early versions do not say it.
  const given = field(json, "is_p2p");
  const isPointToPoint = isAbsent(given) ? peers !== null : given.value === true;
  const state = field(json, "state");
  const timeout = field(json, "timeout_ms");
  const frames = field(json, "frames");
  return {
    id: wholeIn(field(json, "record_id")),
    group: textIn(group),
    description: textIn(description),
    op,
    peers,
    isPointToPoint,
    number: wholeIn(field(json, isPointToPoint ? "p2p_seq_id" : "collective_seq_id")),
    inputs: shapesIn(json, "input"),
    outputs: shapesIn(json, "output"),
    state: stateOf(textIn(state)) ?? wrongValue(state, "scheduled, started or completed"),
    hasStart: state.value === "started" || timeIn(json, "started") < timeIn(json, "completed"),
    isRetired: field(json, "retired").value === true,
    timeoutMilliseconds: isAbsent(timeout) ? null : numberIn(timeout),
    frames: isAbsent(frames) ? [] : listIn(frames).map(frameOf),
  };
}

/** Infinity if there is none: a pickle has None, JSON 0. */
function timeIn(json: Json, what: "started" | "completed"): number {
  const time = field(json, `time_discovered_${what}_ns`);
  return isAbsent(time) || time.value === 0 ? Infinity : numberIn(time);
}

function stateOf(text: string): TorchEntry["state"] | undefined {
  return (["scheduled", "started", "completed"] as const).find((state) => state === text);
}

/** `nccl:all_reduce`, `nccl:send 0->1`, `nccl:recv 1<-0`: a library, an op and its peers. */
function opOf(json: Json): Pick<TorchEntry, "op" | "peers"> {
  const text = textIn(json);
  const [, op, rest] = /^[^:]+:(\S+)(?: (.*))?$/u.exec(text) ?? [];
  if (op === undefined) return wrongValue(json, "a library and an op, such as nccl:all_reduce");
  if (op !== "send" && op !== "recv") return { op, peers: null };
  const [, first, arrow, second] = /^(\d+)(->|<-)(\d+)$/u.exec(rest ?? "") ?? [];
  if (first === undefined || arrow !== (op === "send" ? "->" : "<-"))
    return wrongValue(json, "the peers, such as nccl:send 0->1 or nccl:recv 1<-0");
  const [a, b] = [Number(first), Number(second)];
  return { op, peers: op === "send" ? { source: a, destination: b } : { source: b, destination: a } };
}

/** Early versions have no dtypes. */
function shapesIn(json: Json, side: "input" | "output"): readonly RecordedShape[] {
  const dtypes = field(json, `${side}_dtypes`);
  const names = isAbsent(dtypes) ? null : listIn(dtypes).map(textIn);
  const sizes = listIn(field(json, `${side}_sizes`));
  if (names !== null && names.length !== sizes.length) wrongValue(dtypes, `${sizes.length} dtypes, one for each size`);
  return sizes.map((each, i) => ({
    dtype: names === null ? "" : at(names, i),
    sizes: listIn(each).map(wholeIn),
  }));
}

function frameOf(json: Json): StackFrame {
  return {
    name: textIn(field(json, "name")),
    file: textIn(field(json, "filename")),
    line: wholeIn(field(json, "line")),
  };
}

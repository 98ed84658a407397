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

/*
 * A reader of pickled plain data: dicts with texts as keys, lists, tuples, texts, numbers, bools and None, as protocols
 * 2 to 5 write them. A pickle is a program for a machine with a stack. Of its instructions only those that plain data
 * needs are here: none that names, imports or calls anything exists.
 */

/** Where a MARK instruction marked the stack. */
const mark = Symbol("mark");

interface Machine {
  readonly stack: unknown[];
  readonly memo: Map<number, unknown>;
  readonly view: DataView;
  /** Steps over the next `count` bytes and answers where they begin. */
  readonly skip: (count: number) => number;
  readonly text: (count: number) => string;
}

type Instruction = (machine: Machine) => void;

/** Python's code for each instruction, one byte. */
const instructions: ReadonlyMap<number, Instruction> = new Map<number, Instruction>([
  [code("("), ({ stack }) => void stack.push(mark)],
  [code("N"), ({ stack }) => void stack.push(null)],
  [0x88, ({ stack }) => void stack.push(true)],
  [0x89, ({ stack }) => void stack.push(false)],
  [code("K"), ({ stack, view, skip }) => void stack.push(view.getUint8(skip(1)))],
  [code("M"), ({ stack, view, skip }) => void stack.push(view.getUint16(skip(2), true))],
  [code("J"), ({ stack, view, skip }) => void stack.push(view.getInt32(skip(4), true))],
  [0x8a, (machine) => void machine.stack.push(wholeOf(machine))],
  [code("G"), ({ stack, view, skip }) => void stack.push(view.getFloat64(skip(8)))],
  [0x8c, ({ stack, view, skip, text }) => void stack.push(text(view.getUint8(skip(1))))],
  [code("X"), ({ stack, view, skip, text }) => void stack.push(text(view.getUint32(skip(4), true)))],
  [code("]"), ({ stack }) => void stack.push([])],
  [code(")"), ({ stack }) => void stack.push([])],
  [code("}"), ({ stack }) => void stack.push({})],
  [0x85, ({ stack }) => void stack.push(popped(stack, 1))],
  [0x86, ({ stack }) => void stack.push(popped(stack, 2))],
  [0x87, ({ stack }) => void stack.push(popped(stack, 3))],
  [code("t"), ({ stack }) => void stack.push(marked(stack))],
  [code("a"), ({ stack }) => append(popped(stack, 1), stack)],
  [code("e"), ({ stack }) => append(marked(stack), stack)],
  [code("s"), ({ stack }) => setItems(popped(stack, 2), stack)],
  [code("u"), ({ stack }) => setItems(marked(stack), stack)],
  [code("q"), ({ stack, memo, view, skip }) => void memo.set(view.getUint8(skip(1)), stack.at(-1))],
  [code("r"), ({ stack, memo, view, skip }) => void memo.set(view.getUint32(skip(4), true), stack.at(-1))],
  [0x94, ({ stack, memo }) => void memo.set(memo.size, stack.at(-1))],
  [code("h"), ({ stack, memo, view, skip }) => recall(stack, memo, view.getUint8(skip(1)))],
  [code("j"), ({ stack, memo, view, skip }) => recall(stack, memo, view.getUint32(skip(4), true))],
  // A frame says how many bytes belong together, which a reader of a whole file need not know.
  [0x95, ({ skip }) => void skip(8)],
]);

const protocolByte = 0x80;
const protocols = { first: 2, last: 5 } as const;
const stop = code(".");

/** What the pickle holds; tuples become lists. Throws `record-invalid`. */
function readPickle(bytes: Uint8Array, path: string): unknown {
  let offset = 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const damaged = (found: string): never => pickleInvalid(path, `${found} at byte ${offset}`);
  const skip = (count: number): number => {
    if (offset + count > bytes.length) damaged(`the end of the file, ${bytes.length - offset} of ${count} bytes`);
    offset += count;
    return offset - count;
  };
  const text = (count: number): string => {
    const start = skip(count);
    try {
      return utf8Text(bytes.subarray(start, start + count));
    } catch (error) {
      if (!(error instanceof URIError)) throw error;
      return damaged("a text that is no UTF-8");
    }
  };
  const machine: Machine = { stack: [], memo: new Map(), view, skip, text };
  if (view.getUint8(skip(1)) !== protocolByte) damaged("no pickle of protocol 2 or later");
  const protocol = view.getUint8(skip(1));
  if (protocol < protocols.first || protocol > protocols.last) damaged(`protocol ${protocol}`);
  for (;;) {
    const start = offset;
    const byte = view.getUint8(skip(1));
    if (byte === stop) break;
    const instruction = instructions.get(byte);
    if (instruction === undefined) {
      offset = start;
      return damaged(`instruction 0x${byte.toString(16)}`);
    }
    try {
      instruction(machine);
    } catch (error) {
      if (!(error instanceof PickleError)) throw error;
      damaged(error.message);
    }
  }
  const [value, ...more] = machine.stack;
  return value === undefined || value === mark || more.length > 0
    ? damaged("another number of values than one")
    : value;
}

/** What an instruction did not find. */
class PickleError extends Error {}

function pickleInvalid(path: string, found: string): never {
  return fail("record-invalid", "a flight record is no pickle of plain data", {
    place: { kind: "file", path },
    found,
    expected: "dicts, lists, tuples, texts, numbers, bools and None: what PyTorch's flight recorder writes",
    help: "pass the file as PyTorch wrote it; a pickle of anything else would run code, and is not read",
  });
}

function code(character: string): number {
  return character.charCodeAt(0);
}

/** A little-endian two's complement number. Those beyond 2^53, times in nanoseconds, lose their last bits. */
function wholeOf({ view, skip }: Machine): number {
  const count = view.getUint8(skip(1));
  const start = skip(count);
  if (count === 8) return Number(view.getBigInt64(start, true));
  let value = 0n;
  for (let i = count - 1; i >= 0; i--) value = (value << 8n) | BigInt(view.getUint8(start + i));
  return Number(BigInt.asIntN(8 * count, value));
}

function popped(stack: unknown[], count: number): unknown[] {
  const values = stack.splice(Math.max(0, stack.length - count), count);
  if (values.length < count || values.includes(mark)) throw new PickleError("too few values on the stack");
  return values;
}

/** The values above the last mark, which goes too. */
function marked(stack: unknown[]): unknown[] {
  const start = stack.lastIndexOf(mark);
  if (start < 0) throw new PickleError("no mark on the stack");
  return stack.splice(start).slice(1);
}

function append(values: readonly unknown[], stack: readonly unknown[]): void {
  const list = stack.at(-1);
  if (!Array.isArray(list)) throw new PickleError("no list to append to");
  for (const value of values) list.push(value);
}

function setItems(values: readonly unknown[], stack: readonly unknown[]): void {
  const dict = stack.at(-1);
  if (!isDict(dict)) throw new PickleError("no dict to set in");
  for (let i = 0; i < values.length; i += 2) {
    const key = values[i];
    if (typeof key !== "string") throw new PickleError("a key of a dict that is no text");
    if (i + 1 === values.length) throw new PickleError("a key of a dict without a value");
    if (key === "__proto__") throw new PickleError("a key named __proto__");
    dict[key] = values[i + 1];
  }
}

function isDict(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recall(stack: unknown[], memo: ReadonlyMap<number, unknown>, key: number): void {
  if (!memo.has(key)) throw new PickleError(`no value ${key} in the memo`);
  stack.push(memo.get(key));
}

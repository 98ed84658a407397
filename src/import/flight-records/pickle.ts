/**
 * A reader of pickled plain data: dicts with texts as keys, lists, tuples, texts, numbers, bools and None, as protocols
 * 2 to 5 write them. A pickle is a program for a machine with a stack. Of its instructions only those that plain data
 * needs are here: none that names, imports or calls anything exists.
 */
import { fail } from "../../diagnostics/diagnostic.ts";
import { utf8Text } from "../../support/json-document.ts";

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
export function readPickle(bytes: Uint8Array, path: string): unknown {
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

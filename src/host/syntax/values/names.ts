/**
 * Names that a dump prints in place of a value: slice indices, peers and roots. `i84` may be defined after the
 * container (`i84 = i82 % 8;`), be the index of an enclosing loop, or be an extent. The run binds a word without a
 * number (`streamIdx`, `rank`). Eras without index definitions print names that they never define, which is an error.
 *
 * Definitions follow the container and are located before it is parsed. A definition is parsed only when its name is
 * used: nvFuser also prints parts of sizes there, in forms that Braid's scalars do not have.
 */
import type { Scalar } from "../../../ir/scalar/scalar.ts";
import { makeId } from "../../../support/invariant.ts";
import type { HostStream, StreamId } from "../../nodes.ts";
import {
  expectAcrossLines,
  expectNumber,
  failExpected,
  isDigit,
  isWordStart,
  peek,
  readWord,
  type DumpScanner,
  skipBlanks,
} from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { leafOf, type LookupName, parseDefinition, parseScalar } from "./scalar.ts";
import { largestNumber } from "./tensor-table.ts";
import { failNumber } from "./tensor.ts";

// The streams of a container. A stream without an index prints its number, or since 2026 an address. A stream with an
// index prints the index, and gets an unused number.

export interface StreamTable {
  /** By number, without numbers that the dump does not have. */
  readonly streams: Map<number, HostStream>;
  /** By the text after `Stream `. */
  readonly byText: Map<string, StreamId>;
  /** Numbers that the dump prints. */
  readonly printed: ReadonlySet<number>;
  /** Whether streams without an index print an address, as since 2026. A number is then an index. */
  readonly addresses: boolean;
  /** All smaller numbers are in use. */
  next: number;
}

export function createStreamTable(text: string, addresses: boolean): StreamTable {
  const printed = addresses ? smallAddresses(text) : printedNumbers(text);
  return { streams: new Map(), byText: new Map(), printed, addresses, next: 0 };
}

/** Collected first, so that a stream with an index does not take a number that is printed later. */
function printedNumbers(text: string): ReadonlySet<number> {
  const numbers = new Set<number>();
  for (let found = text.indexOf(title); found >= 0; found = text.indexOf(title, found + title.length)) {
    let value = 0;
    let position = found + title.length;
    if (!isDigit(text.charCodeAt(position))) continue;
    while (isDigit(text.charCodeAt(position)) && value <= largestNumber) {
      value = value * 10 + text.charCodeAt(position++) - 48;
    }
    numbers.add(value);
  }
  return numbers;
}

const title = "Stream ";

/** Braid prints a stream's number as its address. */
function smallAddresses(text: string): ReadonlySet<number> {
  const numbers = [...text.matchAll(/\bStream (0x[0-9a-fA-F]{1,4})\b/gu)].map(([, address]) => Number(address));
  return new Set(numbers);
}

/** The text after `Stream `: `0`, `( streamIdx % numberOfStreams )` or `0x174e5c80`. */
export function parseStream(scanner: DumpScanner, table: StreamTable): StreamId {
  const start = scanner.position;
  const address = scanner.text.startsWith("0x", start)
    ? /^0x[0-9a-fA-F]+/u.exec(scanner.text.slice(start, start + 24))?.[0]
    : undefined;
  if (address !== undefined) {
    scanner.position += address.length;
    const number = Number(address);
    return table.byText.get(address) ?? add(table, address, number <= largestNumber ? number : free(table), null);
  }
  if (!table.addresses && isDigit(peek(scanner))) {
    const number = expectNumber(scanner, "the number of a stream");
    if (number > largestNumber) failNumber(scanner, start, `Stream ${number}`);
    return table.byText.get(String(number)) ?? add(table, String(number), number, null);
  }
  const index = parseScalar(scanner);
  if (scanner.position === start) failExpected(scanner, "the number or index of a stream");
  const text = scanner.text.slice(start, scanner.position);
  return table.byText.get(text) ?? add(table, text, free(table), index);
}

function free(table: StreamTable): number {
  while (table.streams.has(table.next) || table.printed.has(table.next)) table.next++;
  return table.next;
}

function add(table: StreamTable, text: string, number: number, index: HostStream["index"]): StreamId {
  const id = makeId<StreamId>(number);
  table.streams.set(number, { id, index });
  table.byText.set(text, id);
  return id;
}

/** The streams by number. A number that the dump does not show gets a stream that nothing uses. */
export function streamsOf({ streams }: StreamTable): readonly HostStream[] {
  let count = 0;
  for (const number of streams.keys()) count = Math.max(count, number + 1);
  return Array.from({ length: count }, (_, i) => streams.get(i) ?? { id: makeId<StreamId>(i), index: null });
}

export interface Names {
  readonly definitions: IndexDefinitions;
  /** Extents and scalar inputs. */
  readonly symbols: ReadonlySet<string>;
  /** Indices of the loops around the statement. */
  readonly loops: readonly string[];
}

/** The index definitions of a dump. */
export interface IndexDefinitions {
  /** Where the right-hand side of a name starts. */
  readonly starts: ReadonlyMap<string, number>;
  /** The values of names that were used. */
  readonly known: Map<string, Defined>;
  /** Names whose definitions are being parsed, to find cycles. */
  readonly open: Set<string>;
}

interface Defined {
  readonly scalar: Scalar;
  /** The number of leaves when written out in full. */
  readonly leaves: number;
}

/** Names may refer to names many times over. Index arithmetic of nvFuser has a handful of leaves. */
const mostLeaves = 1024;

export const noDefinitions: IndexDefinitions = { starts: new Map(), known: new Map(), open: new Set() };

const definitionLine = /^[^\S\n]*(?<name>[A-Za-z_]\w*) = (?<value>[^;\n]*);[^\S\n]*\r?$/u;

/** Locates the definitions in the lines from `position` to `end`, the first other line. */
export function collectDefinitions(
  text: string,
  position: number,
): { readonly definitions: IndexDefinitions; readonly end: number } {
  const starts = new Map<string, number>();
  let start = position;
  while (start < text.length) {
    const next = text.indexOf("\n", start);
    const end = next < 0 ? text.length : next;
    const line = text.slice(start, end);
    const match = definitionLine.exec(line);
    if (match?.groups === undefined) break;
    const { name = "" } = match.groups;
    starts.set(name, start + line.indexOf("=") + 2);
    start = end + 1;
  }
  return { definitions: { starts, known: new Map(), open: new Set() }, end: Math.min(start, text.length) };
}

/**
 * A value at a position where dumps print names. An expression without a name prints in full. `what` is for
 * diagnostics: "a slice index".
 */
export function parseNamed(scanner: DumpScanner, names: Names, what: string): Scalar {
  const start = scanner.position;
  const word = isWordStart(peek(scanner)) ? readWord(scanner) : "";
  if (word === "" || scanner.text[scanner.position] === "(") {
    scanner.position = start;
    return parseScalar(scanner);
  }
  const leafAt: LookupName = (name, position) => knownLeaf(scanner, names, name, position, what);
  return lookUp(scanner, names.definitions, word, leafAt)?.scalar ?? leafAt(word, start);
}

export function knownLeaf(scanner: DumpScanner, names: Names, word: string, position: number, what: string): Scalar {
  const leaf = leafOf(word);
  if (leaf.kind === "named" || names.loops.includes(word) || names.symbols.has(word)) return leaf;
  return failAt(scanner.source, position, {
    code: "dump-incomplete",
    message: `${word} is used in ${what}, and the dump does not define it`,
    found: word,
    expected: `a line "${word} = ...;" under "Index definitions:" after the container`,
    help: "dump with index definitions (nvFuser from 2025-10 prints them, later with NVFUSER_DUMP='host_ir(indices)'), or add the line by hand",
  });
}

/** The value of a defined name in full, with the leaves of `leafAt`; null for a name without a definition. */
function lookUp(scanner: DumpScanner, definitions: IndexDefinitions, name: string, leafAt: LookupName): Defined | null {
  const { starts, known, open } = definitions;
  const ready = known.get(name);
  if (ready !== undefined) return ready;
  const start = starts.get(name);
  if (start === undefined) return null;
  if (open.has(name)) failCircle(scanner, start, name);
  open.add(name);
  let leaves = 0;
  const inner: DumpScanner = { ...scanner, position: start };
  const value = parseDefinition(inner, (part, position) => {
    const defined = lookUp(scanner, definitions, part, leafAt);
    leaves += defined?.leaves ?? 1;
    if (leaves > mostLeaves) failSize(scanner, start, name);
    return defined?.scalar ?? leafAt(part, position);
  });
  skipBlanks(inner);
  expectAcrossLines(inner, ";");
  open.delete(name);
  const scalar: Scalar = value.kind === "binary" ? { ...value, name } : value;
  const defined = { scalar, leaves };
  known.set(name, defined);
  return defined;
}

function failCircle(scanner: DumpScanner, position: number, name: string): never {
  failAt(scanner.source, position, "dump-contradiction", `the index definition of ${name} leads back to ${name}`, {
    expected: "definitions in terms of other values",
    help: "correct the index definitions",
  });
}

function failSize(scanner: DumpScanner, position: number, name: string): never {
  failAt(scanner.source, position, "dump-unsupported", `the index definition of ${name} is too large`, {
    found: `more than ${mostLeaves} values when written out`,
    expected: "index arithmetic of a few values",
    help: "simplify the index definitions",
  });
}

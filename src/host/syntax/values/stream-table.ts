/**
 * The streams of a container. A stream without an index prints its number, or since 2026 an address. A stream with an
 * index prints the index, and gets an unused number.
 */
import { makeId } from "../../../support/ids.ts";
import type { HostStream, StreamId } from "../../nodes.ts";
import { largestNumber } from "./tensor-table.ts";
import { failNumber } from "./tensor.ts";
import { parseScalar } from "./scalar.ts";
import { expectNumber, failExpected, isDigit, peek, type Scanner } from "../text/scanner.ts";

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
export function parseStream(scanner: Scanner, table: StreamTable): StreamId {
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

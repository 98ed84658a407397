/**
 * Rows of a plan's tables that repeat: the layers of a model, and chunks, differ by nothing but numbers. A block stands
 * for `$times` copies of its rows; what differs says in the row how:
 *
 *     {"$times":79,"$rows":[
 *     {"kind":"record","stream":0,"command":{"$from":60,"$step":105},"event":{"$from":9,"$step":12}},
 *     {"kind":"copy", ... "offset":{"$each":[8388608,41943040,0, ...]}, ...}
 *     ]}
 *
 * and of a text {"$text":["Deallocate { T",{"$from":70,"$step":88}," }"]}. Blocks stand in the lists of a rank's
 * document, and in those of its memory, and hold none themselves.
 */
import { at, getOrMake } from "../support/invariant.ts";
import { repeatsOf } from "../support/repeats.ts";

/** Copies of the rows, which say in what they differ. */
interface Block {
  readonly $times: number;
  readonly $rows: readonly unknown[];
}

/** Rows that the blocks of one list stand for. Two hundred layers of a block have a hundred thousand. */
const mostRows = 2 ** 21;

// Writing.

/** Blocks that save fewer rows stay written out, for who reads a small plan. */
const leastSaved = 48;

/** A rank's document with blocks for the rows that repeat. */
export function foldLists(document: object): object {
  return ofLists(document, (rows) => (rows.length < leastSaved ? rows : foldedRows(rows)));
}

function foldedRows(rows: readonly unknown[]): readonly unknown[] {
  const shapes = new Map<string, number>();
  const numbers: number[][] = [];
  const ids = rows.map((row) => {
    const own: number[] = [];
    numbers.push(own);
    return getOrMake(shapes, shapeOf(row, own), () => shapes.size);
  });
  const folded: unknown[] = [];
  let done = 0;
  for (const { start, period, times } of repeatsOf(ids, leastSaved)) {
    folded.push(...rows.slice(done, start));
    const $rows = rows.slice(start, start + period).map((row, j) => {
      const copies = Array.from({ length: times }, (_, time) => at(numbers, start + j + time * period));
      let position = 0;
      return withNumbers(row, () => {
        const values = copies.map((copy) => at(copy, position));
        position++;
        return numberOf(values);
      });
    });
    folded.push({ $times: times, $rows } satisfies Block);
    done = start + period * times;
  }
  return [...folded, ...rows.slice(done)];
}

/** What is equal in two rows that differ by whole numbers alone, which are appended to `numbers`. */
function shapeOf(value: unknown, numbers: number[]): string {
  if (isWhole(value)) {
    numbers.push(value);
    return "#";
  }
  if (typeof value === "string") {
    const parts = partsOf(value);
    numbers.push(...parts.filter((part) => typeof part === "number"));
    return JSON.stringify(parts.map((part) => (typeof part === "string" ? part : 0)));
  }
  if (isList(value)) return `[${value.map((each) => shapeOf(each, numbers)).join()}]`;
  if (!isObject(value)) return String(value);
  return `{${Object.entries(value)
    .map(([name, each]) => `${name}:${shapeOf(each, numbers)}`)
    .join()}}`;
}

/** The value with what `next` gives for each of its whole numbers, in the order of `shapeOf`. */
function withNumbers(value: unknown, next: () => unknown): unknown {
  if (isWhole(value)) return next();
  if (typeof value === "string") {
    const parts = partsOf(value).map((part) => (typeof part === "string" ? part : next()));
    return parts.some((part) => typeof part === "object") ? { $text: parts } : parts.join("");
  }
  if (isList(value)) return value.map((each) => withNumbers(each, next));
  return isObject(value) ? mapped(value, (each) => withNumbers(each, next)) : value;
}

function numberOf(values: readonly number[]): unknown {
  const [first = 0, second = first] = values;
  const step = second - first;
  if (values.some((value, i) => value !== first + i * step)) return { $each: values };
  return step === 0 ? first : { $from: first, $step: step };
}

/** The text, cut before and after its numbers. Digits that are no number as JavaScript writes it stay text. */
function partsOf(text: string): readonly (string | number)[] {
  return text.split(/(\d+)/u).map((part, i) => (i % 2 === 1 && String(Number(part)) === part ? Number(part) : part));
}

// Reading.

/** The document with its lists written out. What is no block of the right form stays, for the schema to refuse. */
export function unfoldLists(document: unknown): unknown {
  return isObject(document) ? ofLists(document, unfoldedRows) : document;
}

function unfoldedRows(rows: readonly unknown[]): readonly unknown[] {
  let count = 0;
  return rows.flatMap((entry): readonly unknown[] => {
    if (!isBlock(entry)) return [entry];
    const { $times, $rows } = entry;
    count += $times * $rows.length;
    if (count > mostRows) return [entry];
    return Array.from({ length: $times }, (_, time) => $rows.map((row) => copyOf(row, time))).flat();
  });
}

function copyOf(value: unknown, time: number): unknown {
  if (isList(value)) return value.map((each) => copyOf(each, time));
  if (!isObject(value)) return value;
  const { $from: from, $step: step, $each: each, $text: parts } = value;
  if (isWhole(from) && isWhole(step)) return from + time * step;
  if (isList(each)) return each[time] ?? null;
  if (isList(parts)) {
    const texts = parts.map((part) => copyOf(part, time));
    if (texts.every((text) => typeof text === "string" || isWhole(text))) return texts.join("");
  }
  return mapped(value, (member) => copyOf(member, time));
}

// Both.

export function isBlock(entry: unknown): entry is Block {
  return isObject(entry) && isWhole(entry["$times"]) && entry["$times"] > 0 && isList(entry["$rows"]);
}

/** The lists of the document and of its memory, changed. */
function ofLists(document: object, change: (rows: readonly unknown[]) => readonly unknown[]): object {
  const changed = (value: unknown): unknown => (isList(value) ? change(value) : value);
  const lists = mapped(document, changed);
  return "memory" in lists && isObject(lists.memory) ? { ...lists, memory: mapped(lists.memory, changed) } : lists;
}

function mapped(value: object, change: (member: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, change(member)]));
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
